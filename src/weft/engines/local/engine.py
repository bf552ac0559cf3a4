"""The local engine behind the common interface: Arrow tables in, Arrow tables out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from weft.aggregates.base import is_built_in
from weft.cost.batch.work import total
from weft.engines.base import Unsupported
from weft.engines.local.joins.batch import run_joins
from weft.engines.local.node_clock import NodeClock
from weft.engines.local.output.tables import result_table
from weft.engines.local.running_scopes import SlicedBatch, families_of, running_scopes
from weft.engines.local.windows.events import read_scan
from weft.engines.local.windows.timed_plan import is_timed
from weft.engines.measures import Measures, counted_work, node_rows, peak_resident_bytes
from weft.engines.schema import call_type, result_schema
from weft.kernels.parallel import over_parts
from weft.plan import Roll, Slice
from weft.plan.nodes import regroups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from weft.engines.local.operator import ScopeOperator
    from weft.engines.local.output.closed import Closed
    from weft.engines.local.running_scopes import Running
    from weft.engines.local.windows.events import Timed
    from weft.plan import Emit, Node, Plan, Scan


Given = TypeVar("Given")
Made = TypeVar("Made")


class LocalEngine:
    """Runs plans in this process, on whole columns."""

    name = "local"

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Every plan is run, except where windows are regrouped and not slices."""
        why = "it regroups windows; here slices are regrouped"
        return tuple(
            Unsupported(node, why)
            for node in plan.nodes
            if isinstance(node, Roll) and isinstance(node.feeder, Roll) and regroups(node)
        )

    def run(self, plan: Plan, sources: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Process every source once, then close all windows."""
        return BatchRun(plan, sources).results()

    def run_measured(
        self, plan: Plan, sources: Mapping[str, pa.Table]
    ) -> tuple[dict[str, pa.Table], Measures]:
        """Run a plan; return the results and what it took."""
        start = perf_counter()
        batch = BatchRun(plan, sources, measured=True)
        results = batch.results()
        return results, batch.measures(perf_counter() - start)


@dataclass(slots=True)
class BatchRun:
    """One run of a plan over whole tables."""

    plan: Plan
    sources: Mapping[str, pa.Table]
    measured: bool = False
    scopes: dict[Scan, list[Running]] = field(default_factory=dict)
    closed: dict[str, list[Closed]] = field(default_factory=dict)
    spans_us: dict[str, int] = field(default_factory=dict)
    clock: NodeClock = field(default_factory=NodeClock)

    def results(self) -> dict[str, pa.Table]:
        """Read, slice and close everything."""
        queries = {query.name: query for query in self.plan.queries}
        schemas = {n: result_schema(q, self.sources[q.source].schema) for n, q in queries.items()}
        self.closed = {name: [] for name in queries}
        self.scopes = running_scopes(self.plan)
        operators: dict[str, ScopeOperator] = {}
        for scan, running in self.scopes.items():
            table = self.sources[scan.source]
            with self.clock.of(scan):
                timed = read_scan(scan, table)
            if self.measured:
                self._note_span(scan.source, timed)
            work = partial(self._closed, timed=timed, schema=table.schema)
            for found in self._side_by_side(work, families_of(running), timed.times_us.size):
                for closed in found:
                    self.closed[closed.query].append(closed)
            for one in running:
                operators.update((emit.query, one.operator) for emit in one.operator.emits)
        tables = run_joins(self.plan, self.sources)

        def made(name: str) -> pa.Table:
            labels, codes = labels_of(self.plan, name), operators[name].codes
            with self.clock.of(*(emit for emit in self.plan.emits if emit.query == name)):
                return result_table(schemas[name], labels, codes, self.closed[name])

        rows = [sum(one.keys.size for one in parts) for parts in self.closed.values()]
        # What is less than the largest can be done beside it. Where that is little, threads gain
        # nothing, and they take memory of their own where what is free lies in the first one's.
        beside = sum(rows) - max(rows, default=0)
        tables |= zip(queries, self._side_by_side(made, list(queries), beside), strict=True)
        return {emit.query: tables[emit.query] for emit in self.plan.emits}

    def _closed(self, family: Sequence[Running], timed: Timed, schema: pa.Schema) -> list[Closed]:
        """Slice the events for scopes of which some regroup the slices of others, and close all."""
        batch = SlicedBatch(timed)
        for one in family:
            one.operator.plan.clock = self.clock if self.measured else None
            one.process(batch)
        batch.slices.clear()  # operators have them, and give them back as they close
        operators = [one.operator for one in family]
        return [c for one in operators for c in one.advance(None, types_of(one.emits, schema))]

    def _side_by_side(
        self, work: Callable[[Given], Made], parts: Sequence[Given], rows: int
    ) -> list[Made]:
        """Work on parts on several threads; one after another where each is timed by itself.

        So it is where functions of the user's are called, which may not expect several threads.
        """
        nodes = [node for node in self.plan.nodes if isinstance(node, Slice | Roll)]
        own = any(not is_built_in(p.kind) for node in nodes for p in node.partials)
        timed = all(is_timed(node.window) for node in nodes if isinstance(node, Roll))
        if self.measured or own or not timed or len(parts) == 1:
            return list(map(work, parts))
        return over_parts(work, parts, rows)

    def _note_span(self, source: str, timed: Timed) -> None:
        if timed.times_us.size:
            first, last = timed.bounds_us
            self.spans_us[source] = max(self.spans_us.get(source, 0), last - first)

    def measures(self, seconds: float) -> Measures:
        """Say what `results` did."""
        running = [one for those in self.scopes.values() for one in those]
        operators = [one.operator for one in running]
        rows = self._rows(running)
        return Measures(
            engine="local",
            scans=len(self.scopes),
            shuffles=0,
            events=sum(operator.events for operator in operators),
            combines=sum(operator.combines for operator in operators),
            seconds=seconds,
            peak_bytes=peak_resident_bytes(),
            nodes=node_rows(self.plan, rows, self.spans_us, self._seconds(running)),
            work=total(*counted_work(self.plan, rows, self.spans_us).values()),
        )

    def _seconds(self, running: list[Running]) -> dict[Node, float]:
        """Return the time of every node of the plan."""
        found: dict[Node, float] = {}
        names = {cut: node for one in running if one.cut for cut, node in one.cut.originals.items()}
        for node, seconds in self.clock.seconds.items():
            known = names.get(node, node)
            found[known] = found.get(known, 0.0) + seconds
        return found

    def _rows(self, running: list[Running]) -> dict[Node, int]:
        """Count the rows of every node: of windows handed out, those handed out."""
        found: dict[Node, int] = {}
        for one in running:
            operator = one.operator
            found[operator.scan] = max(found.get(operator.scan, 0), operator.events)
            found.update({one.original(node): rows for node, rows in operator.plan.rows.items()})
        places = {
            name: np.concatenate([np.empty(0, np.int64), *(one.places for one in parts)])
            for name, parts in self.closed.items()
        }
        for name, rows in places.items():
            emits = [emit for emit in self.plan.emits if emit.query == name]
            counts = np.bincount(rows, minlength=len(emits)).tolist()
            for emit, count in zip(emits, counts, strict=True):
                found[emit] = count
                found.update(dict.fromkeys(emit.inputs, count))
        return found


def labels_of(plan: Plan, query: str) -> list[str]:
    """Return the labels of a query's windows, in its own order."""
    return [emit.label for emit in plan.emits if emit.query == query]


def types_of(emits: tuple[Emit, ...], source: pa.Schema) -> dict[Emit, tuple[pa.DataType, ...]]:
    """Return the types of every emit's aggregates over a source of this schema."""
    return {emit: tuple(call_type(call, source) for _, call in emit.outputs) for emit in emits}
