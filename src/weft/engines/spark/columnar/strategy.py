"""The `columnar` strategy: rows go through Arrow to the kernels, clustered by key.

They are slices where Catalyst can make them, else the events themselves. Rows of a key meet in
one partition, in the order of time, and stream through the local engine's operator in chunks. The
watermark follows the time reached, so an executor holds open windows and one chunk, never all
rows of a key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.cost.strategies import columnar_obstacles, slices_to_ship
from weft.engines.base import Unsupported
from weft.engines.local.state.custom_partials import Trust
from weft.engines.spark.columnar.arrow_batches import chunks_of, in_batches
from weft.engines.spark.columnar.hosted_operator import END, HostedScope
from weft.engines.spark.columnar.keyless import Merger, can_gather, gathered
from weft.engines.spark.columnar.regrouped_slices import finest_of, regrouped, slices_shared
from weft.engines.spark.columnar.salted_slices import (
    add_salted,
    can_salt,
    rows_schema,
    salted_slices,
)
from weft.engines.spark.columnar.shipped_slices import add_slices, slices_of
from weft.engines.spark.columnar.shipping import Shipment
from weft.engines.spark.executors import prepare_executors
from weft.engines.spark.scopes import Compiled
from weft.engines.spark.session import spark_schema
from weft.engines.spark.shared_rows import IN_MEMORY
from weft.engines.spark.sql.fan_out import NODE, START
from weft.engines.spark.sql.timestamps import timestamp_of
from weft.engines.spark.text_rows import TextRows, taken
from weft.errors import InternalError
from weft.expression import column, literal
from weft.plan.body import COLUMNAR
from weft.plan.regrouping import cut_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from weft.aggregates import AggregateCall
    from weft.engines.spark.columnar.hosted_operator import Host
    from weft.engines.spark.shared_rows import Keep
    from weft.engines.spark.text_rows import Rows
    from weft.plan import Emit
    from weft.plan.body import Ships
    from weft.plan.planned_scope import PlannedScope

COUNTS = ("count", "count_distinct", "approx_count_distinct")


class ColumnarStrategy:
    """Compiles a scope to one clustered pass of its events through the local operator."""

    name = COLUMNAR

    def __init__(
        self, ships: Ships = "slices", keep: Keep = IN_MEMORY, salt_us: int | None = None
    ) -> None:
        self._ships = ships
        self._keep = keep
        self._salt_us = salt_us

    def unsupported(self, scope: PlannedScope) -> tuple[Unsupported, ...]:
        """Sketches of Spark's own; the operator runs every window and every other aggregate."""
        found = [Unsupported(node, why) for node in scope.nodes for why in columnar_obstacles(node)]
        return tuple(found)

    def compile(self, scope: PlannedScope, source: DataFrame) -> Compiled:
        """Return the lazy result of each query; those of one scope share their rows."""
        prepare_executors(source.sparkSession)
        shipment = Shipment.of(scope, source)
        return self._compiled(scope, shipment, self._rows(shipment))

    def compile_together(self, scopes: Sequence[PlannedScope], source: DataFrame) -> Compiled:
        """Return the lazy results of scopes of which all but one regroup the slices of that one."""
        prepare_executors(source.sparkSession)
        finest = finest_of(scopes)
        feeder = slices_shared(scopes[0])
        if finest is None or feeder is None:
            raise InternalError("slices are regrouped that no scope ships")
        shipment = Shipment.of(finest, source)
        slices = self._keep.hold(taken(slices_of(shipment)), shipment.keys or (START,))
        results: dict[str, Rows] = {}
        kept = [slices]
        for scope in scopes:
            own, rows = shipment, slices
            if scope is not finest:
                cut = cut_scope(scope).scope
                own = Shipment.of(cut, source)
                rows = regrouped(slices, feeder, cut, own)
            compiled = self._compiled(scope, own, _from_slices(own, rows))
            results |= compiled.results
            kept += compiled.kept
        return Compiled(results, tuple(kept))

    def _compiled(self, scope: PlannedScope, shipment: Shipment, rows: DataFrame) -> Compiled:
        """Pick the results of each query from the rows of all."""
        shared = len(scope.queries) > 1
        if shared:
            rows = self._keep.hold(rows, tuple(f"k{i}" for i in range(len(scope.keys))) or (START,))
        results = {
            query: result_of(rows, scope.emits, query, shipment.hosted, shipment.time_type)
            for query in scope.queries
        }
        return Compiled(results, (rows,) if shared else ())

    def _rows(self, shipment: Shipment) -> DataFrame:
        """Return the rows of all queries of the scope."""
        if self._ships == "slices" and slices_to_ship(shipment.scope.nodes) is not None:
            return _from_slices(shipment, slices_of(shipment))
        described, schema = shipment.hosted.dump(), spark_schema(shipment.hosted.output)
        if can_gather(shipment.scope):
            trust = Trust.within_a_run()
            slices = gathered(shipment.frame, described, trust)
            return slices.mapInArrow(Merger(described, trust), schema)
        if self._salt_us is not None and can_salt(shipment.hosted):
            rows = rows_schema(shipment.hosted)
            slices = salted_slices(shipment, described, self._salt_us, rows, spark_schema(rows))
            together = clustered(slices, shipment.keys, (START,))
            return together.mapInArrow(Feeder(described, add_salted), schema)
        events = clustered(shipment.frame, shipment.keys, shipment.order)
        return events.mapInArrow(Feeder(described), schema)


def _from_slices(shipment: Shipment, slices: Rows) -> DataFrame:
    """Send rows of slices to the kernels, and return the rows of all queries of the scope."""
    hosted = shipment.hosted
    together = clustered(slices, shipment.keys, (START,))
    return together.mapInArrow(Feeder(hosted.dump(), add_slices), spark_schema(hosted.output))


def clustered(rows: Rows, keys: Sequence[str], order: Sequence[str]) -> DataFrame:
    """Bring the rows of each key together, in order."""
    if isinstance(rows, TextRows) and keys:
        return rows.repartition(*keys).sortWithinPartitions(*order).taken()
    frame, by = taken(rows), [F.expr(text) for text in keys]
    together = frame.repartition(*by) if by else frame.repartition(1)
    return together.sortWithinPartitions(*(F.expr(text) for text in order))


@dataclass(frozen=True, slots=True)
class Feeder:
    """Runs on executors: one partition of rows in the order of time in, closed windows out."""

    described: bytes
    add: Callable[[Host, pa.Table], int] | None = None  # rows are slices, and not events

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Feed the operator chunk by chunk."""
        host = None
        for chunk in chunks_of(batches):
            host = host or HostedScope.load(self.described).open()
            reached = host.process(chunk) if self.add is None else self.add(host, chunk)
            if reached is not None:
                yield from in_batches(host.advance(reached))
        if host is not None:
            yield from in_batches(host.advance(None))


def result_of(
    rows: DataFrame,
    emits: Sequence[Emit],
    query: str,
    hosted: HostedScope,
    time_type: DataType,
) -> DataFrame:
    """Pick the rows of one query, under the names it gave.

    `emits` are those of the plan, and `hosted` numbers its rows and aggregates alike. Every column
    is text: as objects of Java, each word of it would be a round trip.
    """
    own = {number: emit for number, emit in enumerate(emits) if emit.query == query}
    first, emit = next(iter(own.items()))
    chosen = f"{NODE} BETWEEN {min(own)} AND {max(own)}"  # a scope has them side by side
    calls = dict(zip(hosted.calls, range(len(hosted.calls)), strict=True))
    outputs = {
        alias: _value(f"v{calls[call]}", call)
        for (alias, _), (_, call) in zip(emit.outputs, hosted.emits[first].outputs, strict=True)
    }
    return rows.where(chosen).selectExpr(*_columns(own, emit, outputs, time_type))


def _value(value: str, call: AggregateCall) -> str:
    # What comes from Python may be NULL by its type; stock Spark's counts may not.
    return f"coalesce({value}, 0L)" if call.function in COUNTS else value


def _columns(
    own: Mapping[int, Emit], emit: Emit, outputs: Mapping[str, str], time_type: DataType
) -> list[str]:
    labels = [own[n].label if n in own else None for n in range(min(own), max(own) + 1)]
    # One literal, however many windows.
    known = f"from_json({literal(json.dumps(labels))}, 'array<string>')"
    label = f"get({known}, {NODE} - {min(own)})"
    window = (label, timestamp_of(START, time_type), timestamp_of(END, time_type))
    named = [
        *((f"k{i}", name) for i, (name, _) in enumerate(emit.keys)),
        *zip(window, emit.window_columns, strict=True),
        *((value, alias) for alias, value in outputs.items()),
    ]
    return [f"{text} AS {column(name)}" for text, name in named]
