"""The server itself: where it listens, and what it asks of those who come."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

import uvicorn

from weft.errors import InputError
from weft.ui.application import application
from weft.ui.settings import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weft.ui.settings import Settings

_LEAST_TOKEN = 16
_GRACE_S = 2  # for pages that are open when it ends


def token_for(host: str, file: Path | None) -> str | None:
    """Return the token that visitors need: none where only this machine can reach the page.

    >>> token_for("127.0.0.1", None)
    >>> len(token_for("0.0.0.0", None)) > 30
    True
    """
    if file is None:
        return None if is_loopback(host) else secrets.token_urlsafe(24)
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the token in {file}", hint="name a file with one line of text"
        ) from error
    if len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable():
        raise InputError(
            f"the token in {file} is too short, or no plain text",
            hint=f"give {_LEAST_TOKEN} letters and digits at least",
        )
    return token


def serve(settings: Settings, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve the pages until somebody stops it; say where they are."""
    config = uvicorn.Config(
        application(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_GRACE_S,
    )
    listening = _listening(host, port)
    at = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    token = "" if settings.token is None else f"/?token={settings.token}"
    changes = "" if settings.allow_changes else "; it only looks"
    say(f"weft ui: http://{shown}:{at}{token} (Ctrl-C ends it{changes})")
    uvicorn.Server(config).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen()
    except OSError as error:
        raise InputError(
            f"cannot listen at {host}:{port}: {(error.strerror or str(error)).lower()}",
            hint="choose another --port, or 0 for a free one",
        ) from error
    return found
