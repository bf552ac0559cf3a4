"""Curves as SVG: drawn here, so that a page needs no script to show them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HEIGHT = 110
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 10, 18


@dataclass(frozen=True, slots=True)
class Curve:
    """Figures in the order of time; None where there was none."""

    name: str
    values: Sequence[float | None]
    text: Callable[[float], str]  # how a figure is written
    ends: tuple[str, str] = ("", "")  # below the first figure and the last
    hint: str = ""
    width: int = 320

    def svg(self) -> str:
        """Draw it, with its last figure and its greatest written out."""
        known = [v for v in self.values if v is not None and isfinite(v)]
        last = self.text(known[-1]) if known else "–"
        top = max(known, default=0.0)
        low = min(0.0, min(known, default=0.0))
        most = f'<span class="soft">at most {escape(self.text(top))}</span>' if known else ""
        hint = f' title="{escape(self.hint)}"' if self.hint else ""
        return (
            f'<figure class="curve"><figcaption{hint}>{escape(self.name)} <b>{escape(last)}</b> '
            f'{most}</figcaption><svg viewBox="0 0 {self.width} {_HEIGHT}" role="img" '
            f'aria-label="{escape(self.name)}: {escape(last)} at last">'
            f'<line class="axis" x1="{_LEFT}" x2="{self.width - _RIGHT}" '
            f'y1="{_HEIGHT - _BOTTOM}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'{self._line(low, top)}<text class="tick" x="{_LEFT}" y="{_HEIGHT - 4}">'
            f'{escape(self.ends[0])}</text><text class="tick end" x="{self.width - _RIGHT}" '
            f'y="{_HEIGHT - 4}">{escape(self.ends[1])}</text></svg></figure>'
        )

    def _line(self, low: float, top: float) -> str:
        """Draw the figures; a gap where one is missing, a dot where one stands alone."""
        across = (self.width - _LEFT - _RIGHT) / max(len(self.values) - 1, 1)
        up = (_HEIGHT - _TOP - _BOTTOM) / ((top - low) or 1.0)
        path, pen, x, y = "", "M", 0.0, 0.0
        for at, value in enumerate(self.values):
            if value is None or not isfinite(value):
                pen = "M"
                continue
            x, y = _LEFT + at * across, _HEIGHT - _BOTTOM - (value - low) * up
            path += f"{pen}{x:.1f} {y:.1f}"
            pen = "L"
        if not path:
            return ""
        return (
            f'<path class="line" d="{path}"/><circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
        )


def count_text(value: float) -> str:
    """Write a count, or a rate.

    >>> count_text(1234.4), count_text(0.25)
    ('1,234', '0.25')
    """
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"


def seconds_text(value: float) -> str:
    """Write a time that passed.

    >>> [seconds_text(s) for s in (0.25, 12.0, 7200.0, 9.5e7)]
    ['250 ms', '12 s', '2 h', '1,100 days']
    """
    for least, unit, word in ((172_800, 86_400, "days"), (7_200, 3_600, "h"), (120, 60, "min")):
        if value >= least:
            units = value / unit
            return f"{units:,.0f} {word}" if units >= 100 else f"{units:.2g} {word}"
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"
