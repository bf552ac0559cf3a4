"""Windows without keys, in parallel: every partition slices its own events, one task merges.

For partials that only the operator can make. Each chunk of events, wherever it is read, becomes
the operator's own slices as bytes; they are far fewer than the events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.engines.local.state.chunks import flow_chunk, read_flow
from weft.engines.local.windows.timed_plan import is_timed
from weft.engines.spark.columnar.arrow_batches import chunks_of, in_batches
from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.plan import Roll

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from weft.engines.local.state.custom_partials import Trust
    from weft.plan.planned_scope import PlannedScope

_BASE, _SLICES = "base", "slices"
_FIELDS: list[pa.Field[Any]] = [pa.field(_BASE, pa.int32()), pa.field(_SLICES, pa.binary())]
_SCHEMA = pa.schema(_FIELDS)


def can_gather(scope: PlannedScope) -> bool:
    """Tell whether events may be sliced wherever they are: no keys, no order among them."""
    timed = all(is_timed(node.window) for node in scope.nodes if isinstance(node, Roll))
    return timed and not scope.keys and all(p.laws().commutative for p in scope.partials)


def gathered(events: DataFrame, described: bytes, trust: Trust) -> DataFrame:
    """Slice events partition by partition, and bring all slices to one."""
    slices = events.mapInArrow(Gatherer(described, trust), f"{_BASE} int, {_SLICES} binary")
    return slices.repartition(1)


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Runs on executors: events of one partition in, slices as bytes out."""

    described: bytes
    trust: Trust

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Slice chunk by chunk; nothing is kept in between."""
        scope = None
        for chunk in chunks_of(batches):
            scope = scope or HostedScope.load(self.described)
            host = scope.open()
            host.process(chunk)
            found = host.operator.slices()
            rows = [{_BASE: base, _SLICES: flow_chunk(flow, self.trust)} for base, flow in found]
            yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)


@dataclass(frozen=True, slots=True)
class Merger:
    """Runs on one executor: slices of all partitions in, windows out."""

    described: bytes
    trust: Trust

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Put all slices into one operator's state, then close everything."""
        host = HostedScope.load(self.described).open()
        operator = host.operator
        partials = operator.sliced
        for batch in batches:
            for at, blob in zip(*(batch.column(n).to_pylist() for n in _SCHEMA.names), strict=True):
                operator.add_slices(at, read_flow(blob, partials[at], self.trust))
        yield from in_batches(host.advance(None))
