"""The Spark engine for streams: streaming DataFrames in, streaming DataFrames out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from weft.cost.strategies import check_strategy
from weft.engines.base import Unsupported
from weft.engines.spark.joins.compile import unsupported_joins
from weft.engines.spark.streaming.columnar.strategy import ColumnarStreamStrategy, has_store
from weft.engines.spark.streaming.joins import compile_stream_joins
from weft.engines.spark.streaming.native.strategy import NativeStreamStrategy
from weft.engines.spark.streaming.streams import Stream, StreamStrategy, streams_of
from weft.engines.spark.versions import state_obstacle
from weft.errors import QueryError
from weft.plan import Join
from weft.plan.body import COLUMNAR, NATIVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from weft.engines.spark.streaming.streams import CompiledStream
    from weft.plan import Plan

_STRATEGIES: dict[str, StreamStrategy] = {
    NATIVE: NativeStreamStrategy(),
    COLUMNAR: ColumnarStreamStrategy(),
}


class Choice(NamedTuple):
    """The strategy of a stream, and why it is not the other."""

    name: str
    reason: str

    @property
    def strategy(self) -> StreamStrategy:
        """The strategy itself."""
        return _STRATEGIES[self.name]


class SparkStreamEngine:
    """Compiles plans stream by stream: native where the plan says so and states can do it.

    `strategy` overrules the plan. Every result is a streaming DataFrame of its own: started one by
    one, they read the source one by one. `weft.start` reads it once for all.
    """

    name = "spark-stream"

    def __init__(self, strategy: str | None = None) -> None:
        check_strategy(strategy)
        self._forced = strategy

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Name the nodes that the strategy of their stream cannot compile, and why."""
        joins = unsupported_joins(plan)
        if self._forced == COLUMNAR:
            why = "joins of streams are native plans, with no state of ours"
            joins += [Unsupported(node, why) for node in plan.nodes if isinstance(node, Join)]
        found = [
            problem
            for stream in streams_of(plan)
            for problem in self.choice(stream, plan).strategy.unsupported(stream)
        ]
        return (*joins, *found)

    def choice(self, stream: Stream, plan: Plan) -> Choice:
        """Choose the strategy of a stream: all its scopes are compiled alike, so their costs add.

        Of a plan without costs, made by hand or counted as papers do, the first that can.
        """
        if self._forced is not None:
            return Choice(self._forced, "forced")
        own = [c for c in plan.strategies if not set(stream.queries).isdisjoint(c.queries)]
        problems = _STRATEGIES[NATIVE].unsupported(stream)
        if problems:
            if own and all(c.strategy == COLUMNAR and c.native is not None for c in own):
                return Choice(COLUMNAR, own[0].reason)  # so it names what only kernels run
            return Choice(COLUMNAR, f"native cannot run it as a stream: {problems[0].reason}")
        native, columnar = (sum(c.native or 0.0 for c in own), sum(c.columnar or 0.0 for c in own))
        too_old = state_obstacle()
        if too_old is not None:
            return Choice(NATIVE, too_old)
        costs = {NATIVE: native, COLUMNAR: columnar}
        cheaper, dearer = sorted(costs, key=lambda name: costs[name])
        if {c.strategy for c in own} == {dearer}:  # what is not known of the source may matter more
            return Choice(dearer, own[0].reason)
        return Choice(cheaper, _less(costs[cheaper], costs[dearer]))

    def has_stores(self, plan: Plan, sources: Mapping[str, DataFrame]) -> bool:
        """Tell whether the sessions of the sources have a place for the states of a plan."""
        columnar = [s for s in streams_of(plan) if self.choice(s, plan).name == COLUMNAR]
        return all(has_store(sources[stream.source].sparkSession) for stream in columnar)

    def chosen(self, plan: Plan) -> Plan:
        """Return the plan with the strategies that its streams really run by, for EXPLAIN."""
        choices = {q: self.choice(s, plan) for s in streams_of(plan) for q in s.queries}
        return replace(
            plan,
            strategies=tuple(
                one._replace(
                    strategy=choices[q].name,
                    reason=choices[q].reason,
                    ships="events",
                    salt_us=None,
                )
                for one in plan.strategies
                for q in one.queries[:1]
            ),
        )

    def run(self, plan: Plan, sources: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Return a streaming DataFrame for each query, in the order of the plan."""
        results: dict[str, DataFrame] = {}
        for compiled in self.compile(plan, sources):
            results |= {query: of(compiled.rows) for query, of in compiled.results.items()}
        return {emit.query: results[emit.query] for emit in plan.emits}

    def compile(self, plan: Plan, sources: Mapping[str, DataFrame]) -> list[CompiledStream]:
        """Return the rows of every stream of the plan, and how results are read off them."""
        streams = [
            self.choice(stream, plan).strategy.compile(stream, _streaming(stream, sources))
            for stream in streams_of(plan)
        ]
        return [*streams, *compile_stream_joins(plan, sources)]


def _less(own: float, other: float) -> str:
    return f"the other costs {other / own:.3g}x" if own else "it is the first that can"


def _streaming(stream: Stream, sources: Mapping[str, DataFrame]) -> DataFrame:
    source = sources[stream.source]
    if not source.isStreaming:
        raise QueryError(
            f"the table {stream.source!r} is no stream, and others are",
            hint="read it with spark.readStream, or run all as a batch",
        )
    return source
