"""Whom the page answers, and what it never does."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from pages import Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SQL = "SELECT COUNT(*) AS n FROM t GROUP BY window(ts, '1 minute')"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guard")
    (folder / "inside").mkdir()
    (folder / "inside" / "own.sql").write_text(SQL)
    (folder / "secret.sql").write_text("-- name: secret\n" + SQL)
    (folder / "inside" / "link.sql").symlink_to(folder / "secret.sql")
    with serving("--root", "inside", "--name", "lab.example", cwd=folder) as running:
        yield running


def test_names_that_nobody_gave_are_refused(server: Server) -> None:
    for host in ("evil.example", "evil.example:7700", "127.0.0.1.evil.example", ""):
        status, _, text = server.answer("/", Host=host)
        assert status in (400, 421), host
        assert "svg" not in text
    for host in ("localhost", "lab.example:80", "[::1]:7700", server.address):
        assert server.answer("/", Host=host)[0] == 200, host


def test_other_origins_may_not_ask(server: Server) -> None:
    form = urlencode({"sql": SQL})
    own = f"http://{server.address}"
    assert server.answer("/", form, Origin=own)[0] == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        assert server.answer("/", form, Origin=origin)[0] == 403, origin
    assert server.answer("/", form)[0] == 403, "a form without an origin is no browser's"
    assert server.answer("/runs", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert server.answer("/runs", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200


def test_the_policy_lets_nothing_in_from_elsewhere(server: Server) -> None:
    for path in ("/", "/runs", "/streams", "/nothing", "/style.css", "/weft.js"):
        _, headers, text = server.answer(path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers
        assert "https://" not in text
        assert "style=" not in text, "the policy would refuse it"


def test_nothing_outside_of_the_roots_is_read(server: Server) -> None:
    assert "own.sql" in server.answer("/?file=0/own.sql")[2]
    for name in (
        "0/../secret.sql",
        "0/link.sql",
        "0//etc/passwd",
        "1/own.sql",
        "/etc/x.sql",
        "0/x",
    ):
        status, _, text = server.answer(f"/?{urlencode({'file': name})}")
        assert status == 400, name
        assert "-- name: secret" not in text
        assert "error" in text


def test_what_users_type_is_text_and_nothing_else(server: Server) -> None:
    evil = SQL.replace("AS n", "AS `<script>alert(1)</script>`")
    own = f"http://{server.address}"
    _, _, text = server.answer("/", urlencode({"sql": evil, "rate": "<b>"}), Origin=own)
    assert "<script>alert" not in text
    assert "cannot read &#x27;&lt;b&gt;&#x27; as a rate" in text
    _, _, text = server.answer("/", urlencode({"sql": evil}), Origin=own)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_forms_that_are_too_large_are_refused(server: Server) -> None:
    own = f"http://{server.address}"
    status, _, text = server.answer("/", "sql=" + "x" * (2 << 20), Origin=own)
    assert (status, "too much for a page" in text) == (400, True)


def test_beyond_loopback_everybody_needs_the_token(tmp_path: Path) -> None:
    with serving("--host", "0.0.0.0", cwd=tmp_path) as server:
        token = server.url.partition("token=")[2]
        assert len(token) > 30
        for told in ({}, {"Authorization": "Bearer nonsense"}, {"Cookie": "weft_token=nonsense"}):
            assert server.answer("/", **told)[0] == 401
        assert server.answer("/?token=nonsense")[0] == 401
        status, headers, _ = server.answer(f"/runs?token={token}")
        assert (status, headers["location"]) == (303, "/runs")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert server.answer("/runs", Cookie=cookie.partition(";")[0])[0] == 200
        assert server.answer("/runs", Authorization=f"Bearer {token}")[0] == 200


def test_a_port_that_is_taken_is_one_clear_message(server: Server, tmp_path: Path) -> None:
    import subprocess
    import sys

    port = server.address.rpartition(":")[2]
    command = [sys.executable, "-m", "weft", "ui", "--port", port]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: cannot listen at 127.0.0.1:{port}: ")
    assert "hint: choose another --port" in done.stderr
