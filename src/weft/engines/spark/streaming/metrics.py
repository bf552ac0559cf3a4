"""Figures of a running stream for monitors: served as Prometheus text and as lines of JSON."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from weft.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from weft.engines.spark.streaming.progress import Progress

_KEPT = 100  # micro-batches as lines of JSON
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_LINES = "application/x-ndjson"


@dataclass
class Metrics:
    """What a stream did so far, and how its last micro-batch left it.

    >>> from weft.engines.spark.streaming.progress import Progress
    >>> seen = Metrics()
    >>> seen.take(Progress(3, 1000, 500.0, 2.0, "2024-01-01T00:00:00.000Z", 24, 9, 2, 8192))
    >>> print(seen.prometheus(now_s=1704067290.0).splitlines()[2])
    weft_events_total 1000
    >>> [line for line in seen.prometheus(now_s=1704067290.0).splitlines() if "lag" in line][-1]
    'weft_watermark_lag_seconds 90'
    """

    events: int = 0
    late: int = 0
    batches: int = 0
    last: Progress | None = None
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def take(self, progress: Progress) -> None:
        """Add the figures of a micro-batch."""
        self.events += progress.rows
        self.late += progress.late
        self.batches += 1
        self.last = progress
        self._lines.append(progress.to_json())

    def json_lines(self) -> str:
        """Return the last micro-batches, the oldest first, each as a line of JSON."""
        return "".join(f"{line}\n" for line in list(self._lines))

    def prometheus(self, now_s: float | None = None) -> str:
        """Return all figures in the text format of Prometheus."""
        return "".join(
            f"# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value:.15g}\n"
            for name, kind, help, value in self._figures(time.time() if now_s is None else now_s)
            if value is not None
        )

    def _figures(self, now_s: float) -> Iterator[tuple[str, str, str, float | None]]:
        yield "weft_events_total", "counter", "Events read.", self.events
        yield "weft_late_events_total", "counter", "Events that came too late.", self.late
        yield "weft_batches_total", "counter", "Micro-batches done.", self.batches
        last = self.last
        if last is None:
            return
        watermark_s = _seconds(last.watermark)
        lag_s = None if watermark_s is None else now_s - watermark_s
        told = (
            ("weft_batch", "Number of the last micro-batch.", last.batch),
            ("weft_batch_rows", "Events of the last micro-batch.", last.rows),
            ("weft_batch_seconds", "Time that the last micro-batch took.", last.seconds),
            ("weft_rows_per_second", "Events a second while it ran.", last.rows_per_second),
            ("weft_watermark_seconds", "Watermark, as Unix time.", watermark_s),
            ("weft_watermark_lag_seconds", "How far the watermark is behind the clock.", lag_s),
            ("weft_open_windows", "Pairs of key and instance that wait.", last.open_windows),
            ("weft_open_slices", "Pairs of key and slice that are kept.", last.open_slices),
            ("weft_state_bytes", "Size of the state.", last.state_bytes),
        )
        for name, help, value in told:
            yield name, "gauge", help, value


def _seconds(instant: str | None) -> float | None:
    return None if instant is None else datetime.fromisoformat(instant).timestamp()


class MetricsServer:
    """Serves the figures of a stream: `/metrics` to Prometheus, `/progress` as lines of JSON."""

    def __init__(self, address: str, metrics: Metrics) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise InputError(
                f"cannot serve metrics at {address!r}", hint="write :9464, or 127.0.0.1:9464"
            )
        pages: dict[str, tuple[str, Callable[[], str]]] = {
            "/metrics": (_TEXT, metrics.prometheus),
            "/progress": (_LINES, metrics.json_lines),
        }
        try:
            self._server = ThreadingHTTPServer((host, int(port)), _handler(pages))
        except OSError as error:
            raise InputError(
                f"cannot serve metrics at {address}: {(error.strerror or str(error)).lower()}",
                hint="name a free port of this machine",
            ) from error
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> MetricsServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(pages: dict[str, tuple[str, Callable[[], str]]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, page = pages.get(self.path.partition("?")[0], (_TEXT, None))
            if page is None:
                self.send_error(404, f"there are {' and '.join(pages)}")
                return
            content = page().encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: standard error is the user's."""

    return Handler
