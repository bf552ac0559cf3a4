"""Named invariants of plans; the portfolio checks every proposal against them."""

from __future__ import annotations

from typing import assert_never

from weft.aggregates import Partial
from weft.errors import InternalError
from weft.expression import column, inputs_of, qualified_columns
from weft.plan.conditions import implies
from weft.plan.nodes import (
    FOLD,
    PICK,
    RANGES,
    READS,
    STAIR,
    Emit,
    Join,
    Node,
    Roll,
    Scan,
    Slice,
    scan_below,
)
from weft.techniques import TECHNIQUES
from weft.window import CalendarWindow, CumulatingWindow, Edges, PeriodicWindow, Window

_BY_THE_CLOCK = (PeriodicWindow, CumulatingWindow, CalendarWindow)


def validate(nodes: tuple[Node, ...]) -> None:
    """Raise InternalError with the invariant's name unless the nodes are a legal plan."""
    seen: set[Node] = set()
    for node in nodes:
        _require(all(i in seen for i in node.inputs), "inputs-come-first", node)
        _require(node not in seen, "each-node-once", node)
        match node:
            case Scan():
                pass
            case Join():
                _check_join(node)
            case Slice():
                _check_slice(node)
            case Roll():
                _check_roll(node)
            case Emit():
                _check_emit(node)
            case _:
                assert_never(node)
        seen.add(node)
    read = {i for node in nodes for i in node.inputs}
    for node in nodes:
        _require(isinstance(node, Emit) or node in read, "nothing-is-computed-in-vain", node)


def _require(holds: bool, invariant: str, node: Node) -> None:
    if not holds:
        what = f"{type(node).__name__} {getattr(node, 'window', getattr(node, 'query', ''))}"
        raise InternalError(f"plan breaks the invariant {invariant} at {what.strip()}")


def _check_slice(node: Slice) -> None:
    _require(bool(node.edges.classes or node.edges.windows), "slices-have-edges", node)
    _require(not any(p.laws().holistic for p in node.partials), "holistic-is-not-sliced", node)
    if isinstance(node.input, Slice):
        finer = node.input
        _check_keys(node, finer)
        _require(set(node.partials) <= set(finer.partials), "partials-come-from-the-feeder", node)
        cut = all(finer.edges.contains(c) for c in node.edges.classes)
        _require(
            cut and set(node.edges.windows) <= set(finer.edges.windows), "edges-are-coarser", node
        )


def _check_roll(node: Roll) -> None:
    _require(node.read in READS, "reading-is-known", node)
    if node.technique is not None:
        _require(node.technique in TECHNIQUES, "technique-is-known", node)
        _require(node.read != PICK, "picks-combine-nothing", node)
        for partial in node.partials:
            # A float sum loses `invertible`; engines check again when they know the types.
            missing = partial.laws(exact=True).missing(TECHNIQUES[node.technique].needs)
            _require(partial.monoid.grows or not missing, "technique-is-legal", node)
    for feeder in node.inputs:
        if isinstance(feeder, Scan):
            _require(node.read == FOLD, "events-are-folded", node)
            continue
        _check_keys(node, feeder)
        _require(set(node.partials) <= set(feeder.partials), "partials-come-from-the-feeder", node)
        if isinstance(feeder, Slice):
            if node.read != STAIR:
                _require(cuts(feeder.edges, node.window), "slices-end-at-the-window", node)
        elif node.read == STAIR:
            _check_stair(node)
        else:
            _check_feeder(node, feeder)


def _check_keys(node: Slice | Roll, feeder: Slice | Roll) -> None:
    """Check that a node has the keys of its feeder, or regroups to fewer of them."""
    if node.keys == feeder.keys:
        return
    _require(set(node.keys) < set(feeder.keys), "keys-only-shrink", node)
    if isinstance(node, Roll):
        _require(node.read in (FOLD, RANGES), "regrouping-combines", node)
        _require(isinstance(node.window, _BY_THE_CLOCK), "events-of-others-move-no-window", node)
    if isinstance(feeder, Slice):
        cut = all(isinstance(window, _BY_THE_CLOCK) for window in feeder.edges.windows)
        _require(cut, "events-of-others-move-no-window", node)
    laws = [p.laws() for p in node.partials]
    _require(not any(own.holistic for own in laws), "holistic-is-not-combined", node)
    _require(all(own.commutative for own in laws), "regrouping-needs-commutativity", node)


def _check_feeder(node: Roll, feeder: Roll) -> None:
    inner, outer = feeder.window, node.window
    if inner == outer and node.keys != feeder.keys:
        return
    if not isinstance(inner, PeriodicWindow) or not isinstance(outer, PeriodicWindow):
        _require(inner == outer, "only-periodic-windows-feed-windows", node)
        return
    if node.read == PICK:
        _require(inner.reuses(outer), "picked-instances-exist", node)
        return
    _require(not any(p.laws().holistic for p in node.partials), "holistic-is-not-combined", node)
    if not inner.tiles(outer):
        _require(inner.covers(outer), "feeder-covers-the-window", node)
        _require(_idempotent(node.partials), "overlap-needs-idempotence", node)


def _check_stair(node: Roll) -> None:
    inner, slices = node.inputs
    legal = (
        isinstance(inner, Roll)
        and isinstance(slices, Slice)
        and isinstance(inner.window, PeriodicWindow)
        and isinstance(node.window, PeriodicWindow)
        and encloses(inner.window, node.window)
        and cuts_begin(slices.edges, node.window)
        and cuts_begin(slices.edges, inner.window)
    )
    _require(legal, "stair-encloses-its-step", node)


def _check_join(node: Join) -> None:
    counts = Partial("count_rows", ())
    for side in node.sides:
        _require(counts in side.partials, "early-inputs-carry-counts", node)
        if isinstance(side.input, Slice):
            held, window = side.input, side.window
            _require(side.early and held.keys == side.keys, "same-keys-as-the-feeder", node)
            _require(
                set(side.partials) <= set(held.partials), "partials-come-from-the-feeder", node
            )
            sliced = isinstance(window, PeriodicWindow) and cuts(held.edges, window)
            _require(sliced, "slices-end-at-the-window", node)
    own = {(p.kind, len(p.args)) for side in node.sides for p in side.partials}
    joint = [p for p in node.partials if len(inputs_of(p.args)) > 1]
    needed = {(p.kind, len(p.args)) for p in node.partials if p not in joint}
    _require(needed <= own, "results-have-their-partials", node)
    kept = {(side.alias, text) for side in node.sides for _, text in side.keys}
    read = [pair for p in joint for text in p.args for pair in qualified_columns(text)]
    carried = {(alias, column(name)) for alias, name in read}
    _require(carried <= kept, "columns-of-several-inputs-are-carried", node)
    _require(bool(node.on), "inputs-are-tied", node)


def _check_emit(node: Emit) -> None:
    if node.exists is not None:
        _check_condition(node, node.exists)
    available = {p for feeder in node.inputs for p in feeder.partials}
    _require(set(node.needed) <= available, "results-have-their-partials", node)
    conditions = {call.where for _, call in node.outputs}
    _require(conditions == {node.where}, "results-are-of-the-events-of-their-query", node)
    _require(len({i.keys for i in node.inputs}) == 1, "same-keys-as-the-feeder", node)
    windows = {i.window for i in node.inputs if isinstance(i, Roll)}
    _require(len(windows) <= 1, "one-window-per-emit", node)


def _check_condition(node: Emit, exists: Partial) -> None:
    """Check a query that keeps fewer events than its scan."""
    rolls = [feeder for feeder in node.inputs if isinstance(feeder, Roll)]
    _require(len(rolls) == len(node.inputs), "joins-filter-their-inputs", node)
    _require(exists.kind == "count", "rows-exist-by-a-count", node)
    kept = exists.where is None or implies(exists.where, scan_below(node).where)
    _require(kept, "the-scan-keeps-the-events-of-its-queries", node)
    timed = all(isinstance(roll.window, _BY_THE_CLOCK) for roll in rolls)
    _require(timed, "events-of-others-move-no-window", node)


def encloses(inner: PeriodicWindow, outer: PeriodicWindow) -> bool:
    """True when every instance of `outer` ends where an instance of the shorter `inner` ends.

    >>> from weft.window import PeriodicWindow
    >>> encloses(PeriodicWindow(4, 2), PeriodicWindow(12, 4))
    True
    """
    ends_apart = (outer.offset_us + outer.range_us) - (inner.offset_us + inner.range_us)
    return (
        inner.range_us < outer.range_us
        and outer.slide_us % inner.slide_us == 0
        and ends_apart % inner.slide_us == 0
    )


def cuts_begin(edges: Edges, window: Window) -> bool:
    """True when slices are cut wherever an instance of the window begins."""
    if isinstance(window, PeriodicWindow):
        return edges.contains((window.offset_us, window.slide_us))
    if isinstance(window, CumulatingWindow):
        return edges.contains((0, window.range_us))
    return window in edges.windows


def cuts(edges: Edges, window: Window) -> bool:
    """True when instances of the window are whole numbers of slices.

    With begins-only slicing a window ends inside the newest slice, which the engine reads open.
    """
    if not cuts_begin(edges, window):
        return False
    if isinstance(window, PeriodicWindow):
        end = ((window.offset_us + window.range_us) % window.slide_us, window.slide_us)
        return edges.slicing == "begins" or edges.contains(end)
    if isinstance(window, CumulatingWindow):
        return edges.contains((0, window.step_us))
    return True


def _idempotent(partials: tuple[Partial, ...]) -> bool:
    return all(p.laws().idempotent for p in partials)
