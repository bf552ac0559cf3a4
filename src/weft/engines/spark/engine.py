"""The Spark engine behind the common interface: DataFrames in, lazy DataFrames out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.cost.strategies import check_strategy, in_one_chain
from weft.engines.base import Unsupported
from weft.engines.spark.columnar.regrouped_slices import finest_of, slices_shared
from weft.engines.spark.columnar.strategy import ColumnarStrategy
from weft.engines.spark.joins.compile import compile_joins, unsupported_joins
from weft.engines.spark.measures.run_measures import measured
from weft.engines.spark.native.strategy import NativeStrategy
from weft.engines.spark.shared_rows import IN_MEMORY, SharedResults
from weft.engines.spark.text_rows import taken
from weft.errors import UnsupportedError
from weft.plan.body import NATIVE
from weft.plan.planned_scope import PlannedScope, planned_scopes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from weft.engines.measures import Measures
    from weft.engines.spark.scopes import Strategy
    from weft.engines.spark.shared_rows import Keep
    from weft.engines.spark.text_rows import TextRows
    from weft.plan import Plan

_NATIVE = NativeStrategy()


class SparkEngine:
    """Compiles plans scope by scope, each with the strategy that the plan names.

    `strategy` overrules the plan. Rows of a result come in no particular order, as those of any
    DataFrame. `keep` makes rows that several results share be computed once.
    """

    name = "spark"

    def __init__(self, strategy: str | None = None, keep: Keep = IN_MEMORY) -> None:
        check_strategy(strategy)
        self._forced = strategy
        self._keep = keep

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Name the nodes that the strategy of their scope cannot compile, and why."""
        found: list[Unsupported] = []
        for scopes in self._read_together(plan):
            strategy = self._strategy(scopes[0], plan)
            found += [one for scope in scopes for one in strategy.unsupported(scope)]
            regrouping = [scope for scope in scopes if scope.regroups]
            if strategy.name == NATIVE:
                able = all(in_one_chain(scope.nodes) for scope in regrouping)
                why = "natively slices of more keys are regrouped of partials in one row alone"
            else:
                able = not regrouping or finest_of(scopes) is not None
                why = "columnar regroups slices of more keys alone that Catalyst ships to a query"
            if not able:
                found += [Unsupported(roll, why) for scope in regrouping for roll in scope.rolls]
        return (*unsupported_joins(plan), *found)

    def run(self, plan: Plan, sources: Mapping[str, DataFrame]) -> SharedResults:
        """Return a lazy DataFrame for each query, in the order of the plan."""
        results, kept = self.untaken(plan, sources)
        return SharedResults({query: taken(rows) for query, rows in results.items()}, kept)

    def untaken(
        self, plan: Plan, sources: Mapping[str, DataFrame]
    ) -> tuple[dict[str, DataFrame | TextRows], list[DataFrame]]:
        """Return results, some as text that Spark has not seen, and rows that they share."""
        results: dict[str, DataFrame | TextRows] = {}
        kept: list[DataFrame] = []
        for scopes in self._read_together(plan):
            source = sources[scopes[0].scan.source]
            if source.isStreaming:
                raise UnsupportedError(
                    f"the table {scopes[0].scan.source!r} is a stream, and this is a batch run",
                    hint="start streams with weft.start",
                )
            strategy = self._strategy(scopes[0], plan)
            if len(scopes) > 1 or scopes[0].regroups:
                compiled = strategy.compile_together(scopes, source)
            else:
                compiled = strategy.compile(scopes[0], source)
            results |= compiled.results
            kept += compiled.kept
        joined, shared = compile_joins(plan, sources)
        results |= joined
        kept += shared
        return {emit.query: results[emit.query] for emit in plan.emits}, kept

    def _read_together(self, plan: Plan) -> list[tuple[PlannedScope, ...]]:
        """Put scopes of one source together that can be computed from one read of it."""
        found: dict[object, list[PlannedScope]] = {}
        for scope in planned_scopes(plan):
            alike: object = scope
            if self._strategy(scope, plan).name != NATIVE:
                alike = slices_shared(scope) or scope
            elif in_one_chain(scope.nodes):
                alike = (scope.scan.source, scope.scan.time)
            found.setdefault(alike, []).append(scope)
        return [tuple(scopes) for scopes in found.values()]

    def run_measured(
        self, plan: Plan, sources: Mapping[str, DataFrame]
    ) -> tuple[dict[str, pa.Table], Measures]:
        """Run a plan to its end; return the results as Arrow tables, and what it took."""
        strategies = {scope: self._strategy(scope, plan) for scope in planned_scopes(plan)}
        return measured(plan, sources, lambda: self.run(plan, sources), strategies)

    def _strategy(self, scope: PlannedScope, plan: Plan) -> Strategy:
        """Return the forced strategy, else the plan's; of a plan by hand, the first that can."""
        choice = next((c for c in plan.strategies if scope.queries[0] in c.queries), None)
        name = self._forced or (choice and choice.strategy)
        if name == NATIVE or (name is None and not _NATIVE.unsupported(scope)):
            return NativeStrategy(self._keep)
        if choice is None:
            return ColumnarStrategy(keep=self._keep)
        return ColumnarStrategy(choice.ships, self._keep, choice.salt_us)
