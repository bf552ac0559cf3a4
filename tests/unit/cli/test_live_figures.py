"""Figures of a running stream: as monitors read them, and as a terminal shows them."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import replace

import pytest
from rich.console import Console

import weft
from weft.cli.live_table import LiveTable
from weft.engines.spark.streaming.metrics import Metrics, MetricsServer
from weft.engines.spark.streaming.progress import Progress

FIRST = Progress(3, 1000, 500.0, 2.0, "2024-01-01T00:00:00.000Z", 24, 9, 2, 8192)


def read(port: int, path: str) -> tuple[str, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


def test_prometheus_and_json_readers_get_the_same_figures() -> None:
    metrics = Metrics()
    with MetricsServer("127.0.0.1:0", metrics) as server:
        before, _ = read(server.port, "/metrics")
        assert "weft_events_total 0\n" in before
        assert "weft_state_bytes" not in before, "nothing is known of the state yet"
        metrics.take(FIRST)
        metrics.take(replace(FIRST, batch=4, rows=10, late=1, open_windows=None, watermark=None))
        text, kind = read(server.port, "/metrics")
        assert kind.startswith("text/plain; version=0.0.4")
        line = re.compile(r"# (HELP|TYPE) weft_\w+ .+|weft_\w+ [0-9.e+-]+")
        assert all(line.fullmatch(one) for one in text.splitlines()), text
        figures = dict(one.split() for one in text.splitlines() if not one.startswith("#"))
        assert figures["weft_events_total"] == "1010"
        assert figures["weft_late_events_total"] == "3"
        assert figures["weft_batch"] == "4"
        assert figures["weft_state_bytes"] == "8192"
        assert "weft_open_windows" not in figures, "only native knows, and did not say"
        lines, _ = read(server.port, "/progress")
        assert [json.loads(one)["rows"] for one in lines.splitlines()] == [1000, 10]
        with pytest.raises(urllib.error.HTTPError, match="there are /metrics and /progress"):
            read(server.port, "/")
        with pytest.raises(weft.InputError, match="address already in use"):
            MetricsServer(f"127.0.0.1:{server.port}", metrics)


@pytest.mark.parametrize("address", ["9464x", "host", ":70000", ""])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(weft.InputError, match="cannot serve metrics"):
        MetricsServer(address, Metrics())


def test_a_terminal_shows_where_a_stream_is() -> None:
    metrics = Metrics()
    shown = LiveTable(metrics)
    console = Console(width=100, force_terminal=False)

    def drawn() -> str:
        with console.capture() as capture:
            console.print(shown.table())
        return capture.get()

    assert "waits for its first micro-batch" in drawn()
    for number, rate in enumerate((100.0, 400.0, 200.0)):
        progress = replace(FIRST, batch=number, rows_per_second=rate)
        metrics.take(progress)
        shown.take(progress)
    text = drawn()
    for wanted in ("3,000, 6 late", "200  ▂█▄", "2024-01-01 00:00:00, ", "behind the clock"):
        assert wanted in text
    assert "24 windows, 9 slices" in text
    assert "8.0 KiB" in text
