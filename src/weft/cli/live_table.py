"""A table that shows how a stream gets on, while it does; on a terminal alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from weft.engines.spark.streaming.metrics import Metrics
    from weft.engines.spark.streaming.progress import Progress

_BARS = "▁▂▃▄▅▆▇█"
_SHOWN = 40  # micro-batches in the picture of rates


@dataclass
class LiveTable:
    """Redraws the figures of a stream in their place, twice a second, so that the lag moves on."""

    metrics: Metrics
    _rates: list[float] = field(default_factory=list)
    _live: Live | None = None

    def __enter__(self) -> LiveTable:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(
            console=Console(stderr=True), get_renderable=self.table, refresh_per_second=2
        )
        self._live.start()
        return self

    def __exit__(self, *ended: object) -> None:
        assert self._live is not None
        self._live.stop()

    def take(self, progress: Progress) -> None:
        """Note the rate of a micro-batch; the metrics have the rest."""
        if progress.rows:
            self._rates = [*self._rates, progress.rows_per_second][-_SHOWN:]

    def table(self) -> Table:
        """Lay the figures out."""
        from rich import box
        from rich.table import Table

        layout = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
        layout.add_column(style="dim")
        layout.add_column()
        for name, value in self._lines():
            layout.add_row(name, value)
        return layout

    def _lines(self) -> list[tuple[str, str]]:
        last = self.metrics.last
        if last is None:
            return [("stream", "waits for its first micro-batch")]
        watermark = last.watermark
        lag = "none yet"
        if watermark is not None:
            at_s = datetime.fromisoformat(watermark).timestamp()
            watermark = watermark.replace("T", " ").removesuffix("Z").removesuffix(".000")
            lag = f"{watermark}, {lasting(time.time() - at_s)} behind the clock"
        waiting = f"{last.open_slices:,} slices"
        if last.open_windows:
            waiting = f"{last.open_windows:,} windows, {waiting}"
        return [
            ("micro-batch", f"{last.batch:,}, took {last.seconds:.1f} s"),
            ("events", f"{self.metrics.events:,}, {self.metrics.late:,} late"),
            ("rows/s", f"{last.rows_per_second:,.0f}  {spark_line(self._rates)}"),
            ("watermark", lag),
            ("open", waiting),
            ("state", last.state_size),
        ]


def spark_line(values: list[float]) -> str:
    """Draw values as bars, the highest of them full.

    >>> spark_line([0, 5, 10])
    '▁▄█'
    """
    top = max(values, default=0.0)
    if top <= 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[min(7, int(value / top * 7.5))] for value in values)


def lasting(seconds: float) -> str:
    """Write how long something lasts, to two units.

    >>> lasting(4.2), lasting(75), lasting(200_000)
    ('4 s', '1 min 15 s', '2 d 7 h')
    """
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    left = max(int(seconds), 0)
    parts: list[str] = []
    for name, size in units:
        count, left = divmod(left, size)
        if count or parts or name == "s":
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])
