"""Plans of a running workload: a query is embedded into what is sliced already, or taken out.

A query that comes later reads the slices of the others where they are cut at its edges and hold
its partials; they have the past it needs. Where they do not suffice, it is planned by itself. A
query that goes takes with it what it alone needs. Patroumpas & Sellis, "Subsuming Multiple Sliding
Windows for Shared Stream Computation", hand parts of windows over to other windows; here only
slices are kept, which all windows read, so nothing moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from weft.cost.batch.model import LocalModel
from weft.cost.volumes import Volumes
from weft.errors import InternalError
from weft.plan import FOLD, Emit, Join, Node, Plan, Roll, Scan, Slice
from weft.plan.conditions import implies
from weft.plan.nodes import scan_below, topological
from weft.plan.regrouping import emits_apart
from weft.plan.scope import Demand, Scope, scopes_of
from weft.plan.validate import cuts, validate
from weft.planners.naming import named
from weft.planners.portfolio import longest_range_us, optimize
from weft.query import Query, Workload
from weft.window import CalendarWindow, CumulatingWindow, Edges, PeriodicWindow, Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from weft.aggregates import Partial

Sources = tuple[str, str | None, str | None]  # source, time column and filter: one scan


def embed_query(plan: Plan, query: Query, technique: str | None = None) -> Plan:
    """Add a query to a running plan: windows read live slices that suffice, or slices of their own.

    `technique` puts their overlapping instances together; without it laws and costs decide.

    >>> from weft import agg, hopping, tumbling
    >>> ask = {"source": "s", "time": "ts", "aggs": {"n": agg.sum("x")}}
    >>> running = optimize(Workload([Query("a", windows={"6/2": hopping(6, 2)}, **ask)]),
    ...                    "slice", "local")
    >>> both = embed_query(running, Query("b", windows={"4": tumbling(4)}, **ask))
    >>> [type(node).__name__ for node in both.nodes]
    ['Scan', 'Slice', 'Roll', 'Emit', 'Roll', 'Emit']
    """
    (asked,) = scopes_of(Workload([query]))
    found = _embedded(plan, asked) or _planned(plan, query, asked)
    order = {label: at for at, (label, _) in enumerate(query.windows)}
    added = tuple(sorted(found, key=lambda emit: order[emit.label]))
    return _assembled(plan, (*plan.emits, *added), (*plan.queries, query), technique=technique)


def _embedded(plan: Plan, asked: Scope) -> tuple[Emit, ...]:
    """Read all that is asked off slices that keep more events than the query; empty if none has it.

    Slices of other filters serve where they hold the query's partials under its own condition.
    """
    own = asked.scan
    for scan in dict.fromkeys(scan_below(emit) for emit in plan.emits):
        if (scan.source, scan.time) != (own.source, own.time) or scan.where == own.where:
            continue
        if not asked.may_be_mixed or not implies(own.where, scan.where):
            continue
        emits = [e for e in plan.emits if scan_below(e) == scan and e.keys == asked.keys]
        demands = [demand.under(own.where) for demand in asked.demands]
        rolls = [_found(emits, demand) for demand in demands]
        if all(rolls):
            return tuple(_emit(d, inputs) for d, inputs in zip(demands, rolls, strict=True))
    return ()


def _planned(plan: Plan, query: Query, asked: Scope) -> tuple[Emit, ...]:
    """Let windows read slices of the query's own events where they suffice, and plan the rest."""
    emits = [e for e in plan.emits if _scan(e) == _read_by(query) and e.keys == query.keys]
    pairs = [(demand, _found(emits, demand)) for demand in asked.demands]
    found = [_emit(demand, rolls) for demand, rolls in pairs if rolls]
    missing = {demand.label: demand.window for demand, rolls in pairs if not rolls}
    if missing:
        alone = Workload([query.with_windows(missing)])
        found += optimize(alone, "auto", plan.engine, plan.statistics).emits
    return tuple(found)


def _found(emits: Sequence[Emit], demand: Demand) -> tuple[Roll, ...]:
    needed = demand.needed
    return _same_window(emits, demand.window, needed) or _from_slices(emits, demand.window, needed)


def _emit(demand: Demand, rolls: tuple[Roll, ...]) -> Emit:
    return Emit(
        rolls, demand.query, demand.label, demand.outputs, demand.window_columns, demand.exists
    )


def without_query(plan: Plan, name: str) -> Plan:
    """Take a query out of a running plan, with all that it alone needs.

    >>> from weft import agg, tumbling
    >>> ask = {"source": "s", "time": "ts"}
    >>> two = Workload([Query("a", windows={"2": tumbling(2)}, aggs={"n": agg.sum("x")}, **ask),
    ...                 Query("b", windows={"4": tumbling(4)}, aggs={"m": agg.max("y")}, **ask)])
    >>> left = without_query(optimize(two, "slice", "local"), "b")
    >>> left.scans[0].columns, [str(p) for p in left.nodes[1].partials]
    (('x',), ['sum(x)', 'count(x)'])
    """
    emits = tuple(emit for emit in plan.emits if emit.query != name)
    return _assembled(plan, emits, [query for query in plan.queries if query.name != name])


def as_cut(plan: Plan, edges: Mapping[Node, Edges]) -> Plan:
    """Write down where an engine cuts: its slices are then open to other windows.

    A window that an engine computes from events by slices of its own is written as such, and so
    are slices that it regroups from others: a query that goes takes no slices of others with it.
    """
    return _assembled(plan, emits_apart(plan), plan.queries, edges)


def _read_by(query: Query) -> Sources:
    return query.source, query.time, query.where


def _scan(node: Node) -> Sources:
    scan = scan_below(node)
    return scan.source, scan.time, scan.where


def _same_window(
    emits: Iterable[Emit], window: Window, needed: Sequence[Partial]
) -> tuple[Roll, ...]:
    """Return the Rolls of a query that asks no less of the same window; empty without one."""
    for emit in emits:
        rolls = tuple(roll for roll in emit.inputs if isinstance(roll, Roll))
        known = {p for roll in rolls for p in roll.partials}
        if rolls and rolls[0].window == window and known.issuperset(needed):
            return rolls
    return ()


def _from_slices(
    emits: Sequence[Emit], window: Window, needed: Sequence[Partial]
) -> tuple[Roll, ...]:
    """Roll the window from the coarsest slices of events that are cut at all its edges."""
    if not isinstance(window, PeriodicWindow | CumulatingWindow | CalendarWindow):
        return ()
    fitting = [
        node
        for node in topological(tuple(emits))
        if isinstance(node, Slice)
        and isinstance(node.input, Scan)
        and set(node.partials).issuperset(needed)
        and cuts(node.edges, window)
    ]
    if not fitting:
        return ()
    slices = min(fitting, key=lambda node: sum(1 / modulus for _, modulus in node.edges.classes))
    return (Roll((slices,), window, FOLD, slices.keys, tuple(needed)),)


def _assembled(
    plan: Plan,
    emits: tuple[Emit, ...],
    queries: Sequence[Query],
    edges: Mapping[Node, Edges] | None = None,
    technique: str | None = None,
) -> Plan:
    """Put emits together: one scan for all that keep the same events, no partial in vain."""
    nodes = topological(emits)
    rebuilding = _Rebuilding(_scans(emits, queries), _needs(nodes), edges or {})
    made: dict[Node, Node] = {}
    for node in nodes:
        made[node] = rebuilding.rebuilt(node, made)
    rebuilt = tuple(e for e in (made[emit] for emit in emits) if isinstance(e, Emit))
    chosen = topological(named(rebuilt, "incremental", lambda _: False, technique))
    validate(chosen)
    longest_us = longest_range_us(w for query in queries for _, w in query.windows)
    volumes = Volumes(plan.statistics, plan.statistics.lasts_us(longest_us))
    costs = LocalModel.of(volumes).node_costs(chosen)
    # What was considered and charged before is no longer about these nodes.
    return replace(
        plan, nodes=chosen, node_costs=costs, candidates=(), shares=(), notes=(), unit="ms"
    )


def _scans(emits: Iterable[Emit], queries: Sequence[Query]) -> dict[Sources, Scan]:
    asked = {query.name: query for query in queries}
    readers: dict[Sources, list[Query]] = {}
    for emit in emits:
        readers.setdefault(_scan(emit), []).append(asked[emit.query])
    return {
        read: Scan(
            *read,
            tuple(sorted({column for q in own for column in q.inputs})),
            any(q.needs_whole_events for q in own),
            max((q.watermark_us for q in own if q.watermark_us is not None), default=None),
        )
        for read, own in readers.items()
    }


def _needs(nodes: Sequence[Node]) -> dict[Node, dict[Partial, None]]:
    """Return the partials that anyone above reads of each node."""
    needs: dict[Node, dict[Partial, None]] = {node: {} for node in nodes}
    for node in reversed(nodes):
        own = dict.fromkeys(node.needed) if isinstance(node, Emit) else needs[node]
        for feeder in node.inputs:
            if isinstance(feeder, Slice | Roll):
                known = set(feeder.partials)
                needs[feeder].update((p, None) for p in own if p in known)
    return needs


@dataclass(frozen=True, slots=True)
class _Rebuilding:
    """What nodes are made anew from, inputs first."""

    scans: Mapping[Sources, Scan]
    needs: Mapping[Node, dict[Partial, None]]
    edges: Mapping[Node, Edges]

    def rebuilt(self, node: Node, made: Mapping[Node, Node]) -> Node:
        match node:
            case Scan():
                return self.scans[_scan(node)]
            case Slice():
                input = made[node.input]
                assert isinstance(input, Scan | Slice)
                edges = self.edges.get(node, node.edges)
                return Slice(input, node.keys, edges, self._partials(node))
            case Roll():
                return self._roll(node, made)
            case Emit():
                rolls = [made[i] for i in node.inputs]
                return replace(node, inputs=tuple(r for r in rolls if isinstance(r, Roll)))
            case Join():
                raise InternalError("a join in a running plan")
            case _:
                assert_never(node)

    def _partials(self, node: Slice | Roll) -> tuple[Partial, ...]:
        return tuple(p for p in node.partials if p in self.needs[node])

    def _roll(self, node: Roll, made: Mapping[Node, Node]) -> Roll:
        partials = self._partials(node)
        inputs = tuple(i for i in (made[i] for i in node.inputs) if not isinstance(i, Emit | Join))
        feeder = inputs[0]
        sliceable = not any(p.laws().holistic for p in partials)
        if isinstance(feeder, Scan) and node in self.edges and sliceable:
            inputs = (Slice(feeder, node.keys, self.edges[node], partials),)
        return Roll(inputs, node.window, node.read, node.keys, partials, node.technique)
