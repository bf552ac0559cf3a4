"""Whom the page answers, and what it never does."""

from __future__ import annotations

import http.client
import os
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

import weft
from pages import Server, serving
from weft.calibration.clocks import processor_seconds

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


@pytest.mark.soak
def test_a_page_that_is_open_costs_under_one_percent(tmp_path: Path) -> None:
    """A micro-batch a second, all of the history, one page: processor time over time."""
    from weft.engines.spark.streaming.checkpoint.places import Place
    from weft.engines.spark.streaming.checkpoint.record import Checkpoint, Record
    from weft.engines.spark.streaming.journal import MOST_BATCHES, Journal
    from weft.engines.spark.streaming.progress import Progress

    checkpoint = Checkpoint(Place.of(tmp_path / "c"))
    plan = weft.optimize(weft.parse(SQL))
    checkpoint.write(Record(plan, "native"), 0, {})
    (checkpoint.place / "offsets" / "0").write("")
    journal, at = Journal(checkpoint.own), "2024-01-01T00:20:00.000Z"

    def add(batch: int) -> float:
        start = time.process_time()
        journal.add(Progress(batch, 125_000, 2e5, 0.6, at, 90, 9, 2, 81_920, at=at))
        return time.process_time() - start

    for batch in range(MOST_BATCHES):
        add(batch)
    with serving("--checkpoint", "c", cwd=tmp_path) as server:
        line = http.client.HTTPConnection(server.address, timeout=60)
        line.request("GET", "/streams/0/events")
        page = line.getresponse()
        time.sleep(2)
        began, used = time.monotonic(), processor_seconds(server.process.pid)
        written = []
        while time.monotonic() - began < 30:
            written.append(add(MOST_BATCHES + len(written)))
            time.sleep(1)
        share = (processor_seconds(server.process.pid) - used) / (time.monotonic() - began)
        page.close()
        line.close()
    driver = sum(written) / len(written)
    print(f"page: {share:.2%} of a core; driver: {driver * 1e3:.2f} ms a micro-batch")
    assert share / (os.cpu_count() or 1) < 0.01
    assert driver < 0.002, "1 % of a micro-batch of 200 ms"
