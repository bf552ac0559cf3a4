"""What drawings of a plan show: boxes and arrows, thinned out until they can be looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, assert_never

from weft.plan.nodes import Emit, Join, Node, Roll, Scan, Slice
from weft.plan.render_words import (
    counted,
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
    title,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from weft.plan.plan import Plan

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
    leaf: bool = False  # feeds nothing that is drawn


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


def drawing(plan: Plan, most_boxes: int) -> Graph:
    """Draw the plan with at most so many boxes.

    A plan that is too large first loses the boxes of its results, which move into the boxes of
    their windows; then windows with the same feeder that feed nobody become one box; then the
    tail is left out, and the note says so.
    """
    graph = _whole(plan) if len(plan.nodes) <= most_boxes else None
    if graph is None:
        graph = _without_results(plan)
        if len(graph.boxes) > most_boxes:
            graph = _grouped(graph)
        graph = _cut(graph, most_boxes)
    return graph


def _whole(plan: Plan) -> Graph:
    graph = _without_results(plan, fold=False)
    ids = node_ids(plan.nodes)
    costs = dict(zip(plan.nodes, plan.node_costs, strict=True))
    boxes, arrows = list(graph.boxes), list(graph.arrows)
    for i, emit in enumerate(plan.emits):
        details = (title(emit), outputs_text(emit, None), f"columns {listing(emit.columns, None)}")
        named = f"{printable(emit.query)} · {printable(emit.label)}"
        boxes.append(Box(f"e{i}", "result", named, outputs_text(emit), costs[emit], details, True))
        arrows.extend(Arrow(ids[feeder], f"e{i}") for feeder in emit.inputs)
    return Graph(tuple(boxes), tuple(arrows))


def _without_results(plan: Plan, *, fold: bool = True) -> Graph:
    ids = node_ids(plan.nodes)
    factors = factor_windows(plan.nodes)
    costs = dict(zip(plan.nodes, plan.node_costs, strict=True))
    emits: dict[Node, list[Emit]] = {}
    for emit in plan.emits if fold else ():
        for feeder in emit.inputs:
            emits.setdefault(feeder, []).append(emit)
        costs[emit.inputs[0]] += costs[emit]
    feeding = {
        feeder for node in plan.nodes if not isinstance(node, Emit) for feeder in node.inputs
    }
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    for node in plan.nodes:
        if isinstance(node, Emit):
            continue
        box = _box(node, ids, factors, costs[node])
        if node in emits:
            box = _with_results(box, emits[node])
        boxes.append(replace(box, leaf=node not in feeding))
        arrows.extend(_arrows(node, ids))
    note = f"{counted(len(plan.emits), 'result')} drawn inside their windows" if fold else ""
    return Graph(tuple(boxes), tuple(arrows), note)


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
            return Box(name, "slice", title(node), lifted_text(node), cost, details)
        case Roll():
            special = marks(node, factors)
            details = (title(node), f"technique {node.technique}", *special[-1:], *_computed(node))
            subtitle = ", ".join(special) or lifted_text(node)
            kind: Kind = "factor" if node in factors else "window"
            return Box(name, kind, title(node), subtitle, cost, tuple(dict.fromkeys(details)))
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


def _named(what: str, names: list[str]) -> tuple[str, ...]:
    rest = len(names) - _NAMES_IN_A_GROUP
    more = (f"... {rest:,} more",) if rest > 0 else ()
    return (f"{what}:", *(f"  {name}" for name in names[:_NAMES_IN_A_GROUP]), *more)


def _grouped(graph: Graph) -> Graph:
    """Draw windows that read the same feeders, and feed nobody, as one box."""
    read: dict[str, list[str]] = {}
    for arrow in graph.arrows:
        read.setdefault(arrow.target, []).append(arrow.source)
    groups: dict[tuple[str, ...], list[Box]] = {}
    for box in graph.boxes:
        if box.leaf and box.kind == "window":
            groups.setdefault(tuple(read[box.id]), []).append(box)
    merged = {boxes[0].id: _group(boxes) for boxes in groups.values() if len(boxes) > 1}
    gone = {b.id for boxes in groups.values() for b in boxes[1:]}
    kept = tuple(merged.get(b.id, b) for b in graph.boxes if b.id not in gone)
    arrows = tuple(
        replace(arrow, label="") if arrow.target in merged else arrow
        for arrow in graph.arrows
        if arrow.target not in gone
    )
    note = f"{graph.note}; windows that feed nobody are grouped by what they read"
    return Graph(kept, arrows, note)


def _group(boxes: list[Box]) -> Box:
    first, last = boxes[0], boxes[-1]
    span = first.title if first.title == last.title else f"{first.title} … {last.title}"
    return Box(
        first.id,
        "group",
        counted(len(boxes), "window"),
        span,
        sum(box.cost for box in boxes),
        _named("windows", [box.title for box in boxes]),
        leaf=True,
    )


def _cut(graph: Graph, most_boxes: int) -> Graph:
    """Keep the first boxes; all that they read comes before them."""
    rest = len(graph.boxes) - most_boxes
    if rest <= 0:
        return graph
    boxes = graph.boxes[:most_boxes]
    kept = {box.id for box in boxes}
    arrows = tuple(arrow for arrow in graph.arrows if arrow.target in kept)
    return Graph(boxes, arrows, f"{graph.note}; {counted(rest, 'more node')} not drawn")
