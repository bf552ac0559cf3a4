"""A plan's graph as inline SVG: boxes from left to right, with bars for their costs."""

from __future__ import annotations

from collections import Counter
from html import escape
from math import isfinite, log2
from typing import TYPE_CHECKING

from weft.plan.render.layout import layered
from weft.plan.render.words import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from weft.plan.render.graph import Box, Graph
    from weft.plan.render.layout import Layout

_WIDTH = 206  # of a box
_HEIGHT = 60
_RESULT_HEIGHT = 44
_BETWEEN = 62  # columns
_GAP = 16  # between boxes of a column
_MARGIN = 12
_PAD = 12  # from a box's edge to its text
_THICKEST = 7.0  # of an arrow
_PORT = 14  # between arrows that end at one box
_TITLE_PX = 7.4  # mean width of a character of a title, generously
_SMALL_PX = 7.2  # and of the smaller text below it


def svg(
    graph: Graph,
    *,
    cost_text: Callable[[float], str] = grouped,
    marked: Set[str] = frozenset(),
    shrinks: bool = True,
) -> str:
    """Draw the graph; everything the user named is escaped, hover texts say the rest.

    What more results rest on is drawn thicker. `cost_text` writes costs; titles in `marked` are
    of boxes that stand out. A drawing that does not shrink has no style of its own, which a strict
    content policy would refuse.
    """
    at = {box.id: i for i, box in enumerate(graph.boxes)}
    arrows = [(at[a.source], at[a.target]) for a in graph.arrows]
    results = [i for i, box in enumerate(graph.boxes) if box.kind == "result"]
    layout = layered([_height(box) for box in graph.boxes], arrows, _GAP, results)
    columns = max(layout.columns, default=0) + 1
    width = 2 * _MARGIN + columns * _WIDTH + (columns - 1) * _BETWEEN
    height = 2 * _MARGIN + layout.height
    most = max((box.cost for box in graph.boxes if isfinite(box.cost)), default=0.0)
    rest = _resting(graph)
    readers = Counter(source for source, _ in arrows)
    classes = [
        " shared" * (readers[i] > 1) + " new" * (box.title in marked)
        for i, box in enumerate(graph.boxes)
    ]
    # It may shrink to fit the page, but not until nobody can read it.
    least = f'style="min-width:{0.72 * width:.0f}px" ' if shrinks else ""
    parts = [
        f'<svg class="graph" role="img" aria-label="graph of the plan" width="{width}" '
        f'{least}height="{height:g}" viewBox="0 0 {width} {height:g}">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" '
        'markerUnits="userSpaceOnUse" '
        'markerHeight="9" orient="auto"><path d="M0 0.5L7.5 4L0 7.5z"/></marker></defs>',
        *_arrows(graph, layout, arrows, rest),
        *(
            _box(box, (layout.columns[i], layout.middles[i]), most, cost_text, classes[i])
            for i, box in enumerate(graph.boxes)
        ),
        "</svg>",
    ]
    return "\n".join(parts)


def _resting(graph: Graph) -> list[int]:
    """Count the windows, or results, that rest on each box: those it stands for, and above it."""
    at = {box.id: i for i, box in enumerate(graph.boxes)}
    above: list[set[int]] = [set() for _ in graph.boxes]
    readers: dict[int, list[int]] = {}
    for arrow in graph.arrows:
        readers.setdefault(at[arrow.source], []).append(at[arrow.target])
    for i in reversed(range(len(graph.boxes))):  # boxes come in topological order
        above[i].add(i)
        for reader in readers.get(i, ()):
            above[i] |= above[reader]
    own = [1 if box.kind == "result" else len(box.windows) for box in graph.boxes]
    return [max(sum(own[j] for j in those), 1) for those in above]


def _height(box: Box) -> int:
    return _RESULT_HEIGHT if box.kind == "result" else _HEIGHT


def _left(column: int) -> int:
    return _MARGIN + column * (_WIDTH + _BETWEEN)


def _arrows(
    graph: Graph, layout: Layout, arrows: list[tuple[int, int]], rest: list[int]
) -> list[str]:
    """Curves first and labels after them, so that no curve runs through a label."""
    arriving: dict[int, list[int]] = {}
    for n, (_, target) in enumerate(arrows):
        arriving.setdefault(target, []).append(n)
    port: dict[int, float] = {}
    for ends in arriving.values():
        # Arrows arrive in the order of where they come from, or they would cross at the end.
        ends.sort(key=lambda n: _came_from(layout, arrows, n))
        for place, n in enumerate(ends):
            port[n] = (place - (len(ends) - 1) / 2) * _PORT
    curves, labels = [], []
    for n, (source, target) in enumerate(arrows):
        end_x, end_y = _left(layout.columns[target]), _MARGIN + layout.middles[target] + port[n]
        stops = [(_left(column), _MARGIN + y) for column, y in layout.stops[n]]
        start = (_left(layout.columns[source]) + _WIDTH, _MARGIN + layout.middles[source])
        curves.append(_curve(start, stops, (end_x, end_y), 1 + log2(rest[target])))
        if label := graph.arrows[n].label:
            labels.append(f'<text class="times" x="{end_x - 14}" y="{end_y - 6:g}">{label}</text>')
    return curves + labels


def _came_from(layout: Layout, arrows: list[tuple[int, int]], n: int) -> float:
    stops = layout.stops[n]
    return stops[-1][1] if stops else layout.middles[arrows[n][0]]


def _curve(
    start: tuple[float, float],
    stops: list[tuple[int, float]],
    end: tuple[float, float],
    thickness: float,
) -> str:
    x, y = start
    path = f"M{x:g} {y:g}"
    for stop_x, stop_y in stops:
        path += _bend(x, y, stop_x, stop_y) + f"H{stop_x + _WIDTH:g}"
        x, y = stop_x + _WIDTH, stop_y
    width = f'stroke-width="{min(thickness, _THICKEST) + 0.4:.1f}"'
    return f'<path class="arrow" {width} marker-end="url(#tip)" d="{path}{_bend(x, y, *end)}"/>'


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    half = (x + to_x) / 2
    return f"C{half:g} {y:g} {half:g} {to_y:g} {to_x:g} {to_y:g}"


def _box(
    box: Box, place: tuple[int, float], most: float, cost_text: Callable[[float], str], classes: str
) -> str:
    height = _height(box)
    x, y = _left(place[0]), _MARGIN + place[1] - height / 2
    is_result = box.kind == "result"
    tag = "" if is_result else box.id
    cost = cost_text(box.cost) if box.cost or not is_result else ""
    hover = "\n".join((*box.details, f"cost {cost_text(box.cost)}"))
    right = _WIDTH - _PAD
    first, second = (19, 34) if is_result else (22, 40)
    title = _clip(box.title, (_WIDTH - 2 * _PAD - len(tag) * _SMALL_PX - 8) / _TITLE_PX)
    below = _clip(box.subtitle, (_WIDTH - 2 * _PAD - len(cost) * _TITLE_PX - 8) / _SMALL_PX)
    radius = height / 2 if is_result else 8
    return (
        f'<g class="box {box.kind}{classes}" transform="translate({x:g} {y:g})">'
        f"<title>{escape(hover)}</title>"
        f'<rect class="frame" width="{_WIDTH}" height="{height}" rx="{radius:g}"/>'
        f'<text class="name" x="{_PAD}" y="{first}">{escape(title)}</text>'
        f'<text class="tag" x="{right}" y="{first}">{escape(tag)}</text>'
        f'<text class="below" x="{_PAD}" y="{second}">{escape(below)}</text>'
        f'<text class="cost" x="{right}" y="{second}">{escape(cost)}</text>'
        f"{'' if is_result else _bar(box.cost, most)}</g>"
    )


def _bar(cost: float, most: float) -> str:
    full = _WIDTH - 2 * _PAD
    filled = full * cost / most if most > 0 and isfinite(cost) else 0.0
    track = f'<rect class="track" x="{_PAD}" y="48" width="{full}" height="4" rx="2"/>'
    if filled <= 0:
        return track
    # A bar under two pixels would look like none.
    width = f"{max(filled, 2.0):.1f}"
    return f'{track}<rect class="bar" x="{_PAD}" y="48" width="{width}" height="4" rx="2"/>'


def _clip(text: str, limit: float) -> str:
    """Cut a text that a box cannot hold; its hover text has the whole."""
    room = int(limit)
    return text if len(text) <= room else f"{text[: room - 1].rstrip()}…"
