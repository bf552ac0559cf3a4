"""Times side by side, as SVG that stands alone: light or dark as the reader's system."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from weft.plan.render.style import COLOURS

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH, _LEFT, _ROW = 760, 250, 34
_STYLE = """
text{font:14px system-ui,Roboto,Arial,sans-serif;fill:var(--ink)}
.soft{fill:var(--soft);font-size:12px}
.before{fill:var(--arrow)}.after{fill:var(--window)}.gain{font-weight:650}
"""


def gain_picture(times: Sequence[tuple[str, float]], note: str) -> str:
    """Draw seconds as bars, the last one as what was gained.

    >>> "3.0 times less" in gain_picture([("stock", 6.0), ("shared", 2.0)], "a run")
    True
    """
    most = max(seconds for _, seconds in times)
    rows = []
    for at, (name, seconds) in enumerate(times):
        wide = (_WIDTH - _LEFT - 150) * seconds / most
        kind = "after" if at == len(times) - 1 else "before"
        gain = f", {most / seconds:.1f} times less" if kind == "after" else ""
        rows.append(
            f'<text x="0" y="{at * _ROW + 22}">{escape(name)}</text>'
            f'<rect class="{kind}" x="{_LEFT}" y="{at * _ROW + 6}" width="{max(wide, 2):.1f}" '
            f'height="22" rx="4"/><text class="gain" x="{_LEFT + wide + 8:.1f}" '
            f'y="{at * _ROW + 22}">{seconds:.2f} s{gain}</text>'
        )
    height = len(times) * _ROW + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img"><title>{escape(note)}</title>'
        f"<style>{COLOURS}{_STYLE}</style>{''.join(rows)}"
        f'<text class="soft" x="0" y="{height - 6}">{escape(note)}</text></svg>\n'
    )
