"""The Spark engine for streams: streaming DataFrames in, streaming DataFrames out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.base import Unsupported
from weft.engines.spark.streaming.native import NativeStreamStrategy
from weft.engines.spark.streaming.streams import Stream, StreamStrategy, streams_of
from weft.errors import QueryError, UnsupportedError
from weft.plan import Join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from weft.engines.spark.streaming.streams import CompiledStream
    from weft.plan import Plan

STRATEGIES: tuple[StreamStrategy, ...] = (NativeStreamStrategy(),)


class SparkStreamEngine:
    """Compiles plans stream by stream, each with the first strategy that can.

    Every result is a streaming DataFrame of its own: started one by one, they read the source one
    by one. `weft.start` reads it once for all.
    """

    name = "spark-stream"

    def __init__(self, strategy: str | None = None) -> None:
        names = [s.name for s in STRATEGIES]
        if strategy is not None and strategy not in names:
            raise QueryError(
                f"unknown strategy {strategy!r}", hint=f"use one of {', '.join(names)}"
            )
        self._strategies = tuple(s for s in STRATEGIES if strategy in (None, s.name))

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Name the nodes of streams that no strategy can compile, and why the first cannot."""
        joins = [
            Unsupported(node, "joins are not compiled to streams")
            for node in plan.nodes
            if isinstance(node, Join)
        ]
        found = [p for stream in streams_of(plan) for p in self._problems(stream)]
        return (*joins, *found)

    def run(self, plan: Plan, sources: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Return a streaming DataFrame for each query, in the order of the plan."""
        results: dict[str, DataFrame] = {}
        for compiled in self.compile(plan, sources):
            results |= {query: of(compiled.rows) for query, of in compiled.results.items()}
        return {query.name: results[query.name] for query in plan.queries}

    def compile(self, plan: Plan, sources: Mapping[str, DataFrame]) -> list[CompiledStream]:
        """Return the rows of every stream of the plan, and how results are read off them."""
        return [
            self.strategy_of(stream).compile(stream, _streaming(stream, sources))
            for stream in streams_of(plan)
        ]

    def strategy_of(self, stream: Stream) -> StreamStrategy:
        """Return the strategy that compiles this stream."""
        for strategy in self._strategies:
            if not strategy.unsupported(stream):
                return strategy
        reason = self._problems(stream)[0].reason
        raise UnsupportedError(
            f"this plan cannot run as a stream: {reason}",
            hint="use another planner, or another strategy",
        )

    def _problems(self, stream: Stream) -> tuple[Unsupported, ...]:
        problems = [strategy.unsupported(stream) for strategy in self._strategies]
        return problems[0] if all(problems) else ()


def _streaming(stream: Stream, sources: Mapping[str, DataFrame]) -> DataFrame:
    source = sources[stream.source]
    if not source.isStreaming:
        raise QueryError(
            f"the table {stream.source!r} is no stream, and others are",
            hint="read it with spark.readStream, or run all as a batch",
        )
    return source
