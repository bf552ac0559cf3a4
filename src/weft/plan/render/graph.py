"""What drawings of a plan show: boxes and arrows, thinned out until they can be looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, assert_never

from weft.plan.nodes import Emit, Join, Node, Roll, Scan, Slice
from weft.plan.render.words import (
    counted,
    cuts_text,
    edges_text,
    factor_windows,
    keys_text,
    lifted_text,
    listing,
    marks,
    multiplier,
    node_ids,
    outputs_text,
    partials_text,
    printable,
    technique_text,
    title,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from weft.plan.body import PlanBody

Kind = Literal["scan", "slice", "window", "factor", "join", "result", "group"]
_NAMES_IN_A_GROUP = 30  # of the windows that one box stands for; its hover text lists them


@dataclass(frozen=True, slots=True)
class Box:
    """One box of a drawing; it may stand for several nodes."""

    id: str
    kind: Kind
    title: str
    subtitle: str
    cost: float
    details: tuple[str, ...]
    windows: tuple[str, ...] = ()  # all that the box stands for, if it is windows


@dataclass(frozen=True, slots=True)
class Arrow:
    """What flows from one box to another, and how often one reads the other."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """A drawing: boxes in topological order, and a note on what was left out."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a drawing may show before it is thinned out."""

    boxes: int
    results: int  # drawn as boxes of their own
    columns: int  # with results among them


def drawing(plan: PlanBody, limits: Limits) -> Graph:
    """Draw the plan within the limits.

    A plan that is too large first loses the boxes of its results, which move into the boxes of
    their windows; then windows with the same feeder that feed nobody become one box, level by
    level; and if that is not enough the tail is left out. The note says what was done.
    """
    most_boxes = limits.boxes
    if (
        len(plan.nodes) <= most_boxes
        and len(plan.emits) <= limits.results
        and _depth(plan) <= limits.columns
    ):
        return _whole(plan)
    graph = _without_results(plan)
    note = f"{counted(len(plan.emits), 'result')} drawn inside their windows"
    if len(graph.boxes) > most_boxes:
        note += "; windows that feed nobody else are drawn as one box per feeder"
    while len(graph.boxes) > most_boxes:
        smaller = _grouped(graph)
        if len(smaller.boxes) == len(graph.boxes):
            smaller = _absorbed(graph)
        if len(smaller.boxes) == len(graph.boxes):
            break
        graph = smaller
    rest = len(graph.boxes) - most_boxes
    if rest > 0:
        graph = _cut(graph, most_boxes)
        note += f"; {counted(rest, 'more node')} not drawn"
    return replace(graph, note=note)


def _depth(plan: PlanBody) -> int:
    depth: dict[Node, int] = {}
    for node in plan.nodes:
        depth[node] = 1 + max((depth[feeder] for feeder in node.inputs), default=0)
    return max(depth.values(), default=0)


def _whole(plan: PlanBody) -> Graph:
    graph = _without_results(plan, fold=False)
    ids = node_ids(plan.nodes)
    costs = dict(zip(plan.nodes, plan.node_costs, strict=True))
    boxes, arrows = list(graph.boxes), list(graph.arrows)
    for i, emit in enumerate(plan.emits):
        details = (title(emit), outputs_text(emit, None), f"columns {listing(emit.columns, None)}")
        named = f"{printable(emit.query)} · {printable(emit.label)}"
        boxes.append(Box(f"e{i}", "result", named, outputs_text(emit), costs[emit], details))
        arrows.extend(Arrow(ids[feeder], f"e{i}") for feeder in emit.inputs)
    return Graph(tuple(boxes), tuple(arrows))


def _without_results(plan: PlanBody, *, fold: bool = True) -> Graph:
    ids = node_ids(plan.nodes)
    factors = factor_windows(plan.nodes)
    costs = dict(zip(plan.nodes, plan.node_costs, strict=True))
    emits: dict[Node, list[Emit]] = {}
    for emit in plan.emits if fold else ():
        for feeder in emit.inputs:
            emits.setdefault(feeder, []).append(emit)
        costs[emit.inputs[0]] += costs[emit]
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    for node in plan.nodes:
        if isinstance(node, Emit):
            continue
        box = _box(node, ids, factors, costs[node])
        if node in emits:
            box = _with_results(box, emits[node])
        boxes.append(box)
        arrows.extend(_arrows(node, ids))
    return Graph(tuple(boxes), tuple(arrows))


def _box(
    node: Scan | Slice | Roll | Join, ids: Mapping[Node, str], factors: frozenset[Node], cost: float
) -> Box:
    name = ids[node]
    match node:
        case Scan():
            time = "" if node.time is None else f"by {printable(node.time)}"
            where = "" if node.where is None else f"where {printable(node.where)}"
            read = "all columns" if node.whole_events else f"columns {listing(node.columns, None)}"
            subtitle = " ".join(filter(None, (time, where)))
            return Box(
                name, "scan", f"SCAN {printable(node.source)}", subtitle, cost, (title(node), read)
            )
        case Slice():
            details = (f"SLICE {edges_text(node.edges, None)}", *_computed(node))
            return Box(
                name, "slice", f"SLICE {cuts_text(node.edges)}", lifted_text(node), cost, details
            )
        case Roll():
            window = title(node)
            factor = ("factor window",) if node in factors else ()
            named = (f"technique {technique_text(node)}",) if node.technique else ()
            details = (window, *factor, f"reads {node.read}", *named, *_computed(node))
            subtitle = ", ".join(marks(node, factors)) or lifted_text(node)
            kind: Kind = "factor" if factor else "window"
            return Box(name, kind, window, subtitle, cost, details, (window,))
        case Join():
            early = [printable(side.alias) for side in node.sides if side.early]
            aggregated = (f"aggregated early: {listing(early, None)}",) if early else ()
            details = (title(node), *aggregated, *_computed(node))
            return Box(name, "join", title(node), lifted_text(node), cost, details)
        case _:
            assert_never(node)


def _computed(node: Slice | Roll | Join) -> tuple[str, ...]:
    keys = (f"keys {keys_text(node.keys)}",) if node.keys else ()
    return (*keys, f"partials {partials_text(node.partials, None)}")


def _arrows(node: Node, ids: Mapping[Node, str]) -> Iterable[Arrow]:
    for feeder in dict.fromkeys(node.inputs):
        label = multiplier(node, feeder) if isinstance(node, Roll) else ""
        yield Arrow(ids[feeder], ids[node], label)


def _with_results(box: Box, emits: list[Emit]) -> Box:
    names = [f"{printable(e.query)} · {printable(e.label)}" for e in emits]
    shown = names[0] if len(names) == 1 else counted(len(names), "result")
    return replace(box, subtitle=f"→ {shown}", details=(*box.details, *_named("results", names)))


def _named(what: str, names: Sequence[str]) -> tuple[str, ...]:
    rest = len(names) - _NAMES_IN_A_GROUP
    more = (f"... {rest:,} more",) if rest > 0 else ()
    return (f"{what}:", *(f"  {name}" for name in names[:_NAMES_IN_A_GROUP]), *more)


def _grouped(graph: Graph) -> Graph:
    """Draw windows that read the same feeders, and feed nobody, as one box."""
    read = _sources(graph)
    feeding = {arrow.source for arrow in graph.arrows}
    groups: dict[tuple[str, ...], list[Box]] = {}
    for box in graph.boxes:
        if box.windows and box.id not in feeding:
            groups.setdefault(read[box.id], []).append(box)
    into = {box.id: boxes[0].id for boxes in groups.values() for box in boxes}
    return _merged(graph, into)


def _absorbed(graph: Graph) -> Graph:
    """Draw windows whose readers read nothing else, and feed nobody, together with these."""
    read = _sources(graph)
    windows = {box.id for box in graph.boxes if box.windows}
    feeding = {arrow.source for arrow in graph.arrows}
    kept = {
        arrow.source
        for arrow in graph.arrows
        if arrow.target in feeding or len(read[arrow.target]) > 1
    }
    into = {
        target: sources[0]
        for target, sources in read.items()
        if len(sources) == 1 and sources[0] in windows - kept
    }
    return _merged(graph, into)


def _sources(graph: Graph) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for arrow in graph.arrows:
        found.setdefault(arrow.target, []).append(arrow.source)
    return {target: tuple(sources) for target, sources in found.items()}


def _merged(graph: Graph, into: Mapping[str, str]) -> Graph:
    """Draw every box inside the one it goes into."""
    members: dict[str, list[Box]] = {}
    for box in graph.boxes:
        members.setdefault(into.get(box.id, box.id), []).append(box)
    boxes = tuple(b[0] if len(b) == 1 else _group(b) for b in members.values())
    labels: dict[tuple[str, str], set[str]] = {}
    for arrow in graph.arrows:
        source, target = (into.get(end, end) for end in (arrow.source, arrow.target))
        if source != target:
            labels.setdefault((source, target), set()).add(arrow.label)
    arrows = (
        Arrow(source, target, found.pop() if len(found) == 1 else "")
        for (source, target), found in labels.items()
    )
    return Graph(boxes, tuple(arrows))


def _group(boxes: list[Box]) -> Box:
    windows = tuple(window for box in boxes for window in box.windows)
    first, last = windows[0], windows[-1]
    return Box(
        boxes[0].id,
        "group",
        counted(len(windows), "window"),
        first if first == last else f"{first} … {last}",
        sum(box.cost for box in boxes),
        _named("windows", windows),
        windows,
    )


def _cut(graph: Graph, most_boxes: int) -> Graph:
    """Keep the first boxes; all that they read comes before them."""
    boxes = graph.boxes[:most_boxes]
    kept = {box.id for box in boxes}
    return Graph(boxes, tuple(arrow for arrow in graph.arrows if arrow.target in kept))
