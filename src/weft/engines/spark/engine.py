"""The Spark engine behind the common interface: DataFrames in, lazy DataFrames out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.base import Unsupported
from weft.engines.spark.columnar import ColumnarStrategy
from weft.engines.spark.native import NativeStrategy
from weft.engines.spark.results import SharedResults
from weft.engines.spark.scopes import PlannedScope, Strategy, scopes_of
from weft.errors import QueryError, UnsupportedError
from weft.plan import Join, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

STRATEGIES: tuple[Strategy, ...] = (NativeStrategy(), ColumnarStrategy())


class SparkEngine:
    """Compiles plans scope by scope, each with the first strategy that can.

    Rows of a result come in no particular order, as those of any DataFrame.
    """

    name = "spark"

    def __init__(self, strategy: str | None = None) -> None:
        names = [s.name for s in STRATEGIES]
        if strategy is not None and strategy not in names:
            raise QueryError(
                f"unknown strategy {strategy!r}", hint=f"use one of {', '.join(names)}"
            )
        self._strategies = tuple(s for s in STRATEGIES if strategy in (None, s.name))

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Name the nodes of scopes that no strategy can compile, and why the first cannot."""
        joins = [
            Unsupported(node, "joins are not compiled to Spark")
            for node in plan.nodes
            if isinstance(node, Join)
        ]
        found = [p for scope in scopes_of(plan) for p in self._problems(scope)]
        return (*joins, *found)

    def run(self, plan: Plan, sources: Mapping[str, DataFrame]) -> SharedResults:
        """Return a lazy DataFrame for each query, in the order of the plan."""
        results: dict[str, DataFrame] = {}
        kept: list[DataFrame] = []
        for scope in scopes_of(plan):
            source = sources[scope.scan.source]
            if source.isStreaming:
                raise UnsupportedError(
                    f"the table {scope.scan.source!r} is a stream, and this is a batch run",
                    hint="start streams with weft.start",
                )
            compiled = self._strategy(scope).compile(scope, source)
            results |= compiled.results
            kept += compiled.kept
        return SharedResults({query.name: results[query.name] for query in plan.queries}, kept)

    def _problems(self, scope: PlannedScope) -> tuple[Unsupported, ...]:
        problems = [strategy.unsupported(scope) for strategy in self._strategies]
        return problems[0] if all(problems) else ()

    def _strategy(self, scope: PlannedScope) -> Strategy:
        for strategy in self._strategies:
            if not strategy.unsupported(scope):
                return strategy
        reason = self._problems(scope)[0].reason
        raise UnsupportedError(
            f"the spark engine cannot run this plan: {reason}",
            hint="use another engine or another planner",
        )
