"""Who is let in: every request passes here before any page sees it."""

from __future__ import annotations

from hmac import compare_digest
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from weft.ui.settings import Settings

_COOKIE = "weft_token"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses other hosts, other origins and whoever has no token; adds the content policy."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no page speaks by other means
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, with_policy)

    def _answer(self, scope: Scope) -> Response | None:
        """Answer what goes no further."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._settings.answers_to(host):
            return _refused(421, f"this page does not answer to {host!r}; see weft ui --name")
        if not _same_origin(headers, scope["method"], host):
            return _refused(403, "this page answers to its own pages only")
        if self._settings.token is None:
            return None
        return self._without_token(scope, headers, self._settings.token)

    def _without_token(self, scope: Scope, headers: Headers, token: str) -> Response | None:
        cookie = SimpleCookie(headers.get("cookie", "")).get(_COOKIE)
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if any(_same(given, token) for given in (cookie.value if cookie else "", bearer)):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        asked = dict(query).get("token", "")
        if scope["method"] != "GET" or not _same(asked, token):
            return _refused(401, "this page needs its token; weft ui printed the address with it")
        # The token leaves the address bar, and with it the history.
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(_COOKIE, token, httponly=True, samesite="strict")
        return answer


def _same_origin(headers: Headers, method: str, host: str) -> bool:
    """Tell whether a request comes from a page of this origin, or was typed in by somebody."""
    origin = headers.get("origin")
    if origin is not None:
        return origin in (f"http://{host}", f"https://{host}")
    if method not in ("GET", "HEAD"):
        return False  # every browser names the origin of what may change something
    # Scripts and pictures of other pages may ask for nothing; links that lead here may.
    cross = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    return not cross or headers.get("sec-fetch-mode") == "navigate"


def _same(given: str, token: str) -> bool:
    return compare_digest(given.encode(), token.encode())


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status)
