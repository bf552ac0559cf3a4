"""The local engine behind the common interface: Arrow tables in, Arrow tables out."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from weft.cost.batch.work import total
from weft.engines.local.joins.batch import run_joins
from weft.engines.local.node_clock import NodeClock
from weft.engines.local.operator import ScopeOperator
from weft.engines.local.output.tables import result_table
from weft.engines.local.windows.events import read_scan
from weft.engines.measures import Measures, counted_work, node_rows, peak_resident_bytes
from weft.engines.schema import call_type, result_schema
from weft.kernels.grouping.dense import bounds_of
from weft.plan.planned_scope import planned_scopes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weft.engines.base import Unsupported
    from weft.engines.local.output.closed import Closed
    from weft.engines.local.windows.events import Timed
    from weft.plan import Emit, Node, Plan, Scan


class LocalEngine:
    """Runs plans in this process, on whole columns."""

    name = "local"

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Every plan is run."""
        return ()

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
    scopes: dict[Scan, list[ScopeOperator]] = field(default_factory=dict)
    closed: dict[str, list[Closed]] = field(default_factory=dict)
    spans_us: dict[str, int] = field(default_factory=dict)
    clock: NodeClock = field(default_factory=NodeClock)

    def results(self) -> dict[str, pa.Table]:
        """Read, slice and close everything."""
        queries = {query.name: query for query in self.plan.queries}
        schemas = {n: result_schema(q, self.sources[q.source].schema) for n, q in queries.items()}
        self.closed = {name: [] for name in queries}
        self.scopes = operators_of(self.plan)
        operators: dict[str, ScopeOperator] = {}
        for scan, operators_of_scan in self.scopes.items():
            table = self.sources[scan.source]
            with self.clock.of(scan):
                timed = read_scan(scan, table)
            if self.measured:
                self._note_span(scan.source, timed)
            for operator in operators_of_scan:
                operator.plan.clock = self.clock if self.measured else None
                operator.process(timed)
                types = types_of(operator.emits, table.schema)
                for one in operator.advance(None, types):
                    self.closed[one.query].append(one)
                operators.update((emit.query, operator) for emit in operator.emits)
        found = run_joins(self.plan, self.sources)
        for name in queries:
            labels, codes = labels_of(self.plan, name), operators[name].codes
            with self.clock.of(*(emit for emit in self.plan.emits if emit.query == name)):
                found[name] = result_table(schemas[name], labels, codes, self.closed[name])
        return {emit.query: found[emit.query] for emit in self.plan.emits}

    def _note_span(self, source: str, timed: Timed) -> None:
        if timed.times_us.size:
            first, last = bounds_of(timed.times_us)
            self.spans_us[source] = max(self.spans_us.get(source, 0), last - first)

    def measures(self, seconds: float) -> Measures:
        """Say what `results` did."""
        operators = [operator for those in self.scopes.values() for operator in those]
        rows = self._rows(operators)
        return Measures(
            engine="local",
            scans=len(self.scopes),
            shuffles=0,
            events=sum(operator.events for operator in operators),
            combines=sum(operator.combines for operator in operators),
            seconds=seconds,
            peak_bytes=peak_resident_bytes(),
            nodes=node_rows(self.plan, rows, self.spans_us, self.clock.seconds),
            work=total(*counted_work(self.plan, rows, self.spans_us).values()),
        )

    def _rows(self, operators: list[ScopeOperator]) -> dict[Node, int]:
        """Count the rows of every node: of windows handed out, those handed out."""
        found: dict[Node, int] = {}
        for operator in operators:
            found[operator.scan] = max(found.get(operator.scan, 0), operator.events)
            found.update(operator.plan.rows)
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


def operators_of(plan: Plan) -> dict[Scan, list[ScopeOperator]]:
    """Make one operator per scan and set of keys."""
    found: dict[Scan, list[ScopeOperator]] = {}
    for scope in planned_scopes(plan):
        operator = ScopeOperator.of(scope.scan, scope.keys, scope.nodes, scope.emits)
        found.setdefault(scope.scan, []).append(operator)
    return found


def labels_of(plan: Plan, query: str) -> list[str]:
    """Return the labels of a query's windows, in its own order."""
    return [emit.label for emit in plan.emits if emit.query == query]


def types_of(emits: tuple[Emit, ...], source: pa.Schema) -> dict[Emit, tuple[pa.DataType, ...]]:
    """Return the types of every emit's aggregates over a source of this schema."""
    return {emit: tuple(call_type(call, source) for _, call in emit.outputs) for emit in emits}
