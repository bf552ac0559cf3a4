"""Events of a frequent key, spread over many tasks: each slices its own, and slices are combined.

Without it all events of a key are one task's, and where one key has half of them, the others wait.
The salt is the time: events of a key go together that lie in the same stretch of it. What a task
makes of them are slices, which come together by key as rows: keys, `start`, the number of the set
that they belong to, and the partials of that set as plain columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from weft.aggregates.base import is_built_in
from weft.engines.local.partials.stored_columns import column_of_partials, partials_of_column
from weft.engines.local.state.custom_partials import NO_PICKLES
from weft.engines.local.values.frame import plain
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.events import events_of, read_scan
from weft.engines.local.windows.flow import Flow, slice_batch
from weft.engines.local.windows.rolls import coarser
from weft.engines.spark.columnar.arrow_batches import chunks_of, in_batches
from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.native.events import TIME
from weft.engines.spark.slice_rows import one_event
from weft.engines.spark.sql.fan_out import START
from weft.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from weft.aggregates import Partial
    from weft.engines.local.operator import ScopeOperator
    from weft.engines.spark.columnar.hosted_operator import Host
    from weft.engines.spark.columnar.shipping import Shipment

SET = "set"


def can_salt(hosted: HostedScope) -> bool:
    """Tell whether slices of a scope can be rows: partials of a user's own are plain values."""
    try:
        hosted.check_kept(NO_PICKLES)
    except UnsupportedError:
        return False
    return True


def rows_schema(hosted: HostedScope) -> pa.Schema:
    """Return the columns of rows of slices; types are those of the slice of an empty event."""
    operator = hosted.open().operator
    scan, codes = operator.scan, KeyCodes(len(operator.keys))
    events = events_of(read_scan(scan, one_event(hosted.source, scan.time)), operator.keys, codes)
    types: dict[str, pa.DataType] = {
        name: hosted.output.field(f"k{i}").type for i, (name, _) in enumerate(operator.keys)
    }
    types |= {START: pa.int64(), SET: pa.int32()}
    for number, base in enumerate(operator.plan.bases.values()):
        known = tuple(p for p in base.partials if is_built_in(p.kind))
        made = slice_batch(events, base.slices, known, 1).partials
        for name, partial in _named(number, tuple(base.partials)):
            own = is_built_in(partial.kind)
            types[name] = column_of_partials(partial, made).type if own else pa.string()
    return pa.schema([pa.field(name, type) for name, type in types.items()])


def _named(number: int, partials: tuple[Partial, ...]) -> list[tuple[str, Partial]]:
    return [(f"p{number}_{i}", partial) for i, partial in enumerate(partials)]


def salted_slices(
    shipment: Shipment, described: bytes, salt_us: int, rows: pa.Schema, schema: StructType
) -> DataFrame:
    """Slice the events of every key stretch by stretch; equal slices may be in several rows."""
    stretch = F.expr(f"{TIME} - pmod({TIME}, {salt_us}L)")
    keys = [F.expr(text) for text in shipment.keys]
    # In the order of keys, so that a chunk has few keys and all of their slices.
    spread = shipment.frame.repartition(*keys, stretch).sortWithinPartitions(*keys, F.col(TIME))
    return spread.mapInArrow(Slicer(described, rows), schema)


@dataclass(frozen=True, slots=True)
class Slicer:
    """Runs on executors: events of some keys and stretches in, rows of slices out."""

    described: bytes
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Slice chunk by chunk; nothing is kept in between."""
        scope = None
        for chunk in chunks_of(batches):
            scope = scope or HostedScope.load(self.described)
            host = scope.open()
            host.process(chunk)
            for number, flow in host.operator.slices():
                yield from in_batches(self._rows(host.operator, number, flow))

    def _rows(self, operator: ScopeOperator, number: int, flow: Flow) -> pa.Table:
        names = [name for name, _ in operator.keys]
        columns = dict(zip(names, operator.codes.decode(flow.keys), strict=True))
        columns |= {
            START: pa.array(flow.starts_us),
            SET: pa.array(np.full(flow.keys.size, number, np.int32)),
        }
        for name, partial in _named(number, operator.sliced[number]):
            columns[name] = column_of_partials(partial, flow.partials)
        empty = pa.nulls(flow.keys.size)
        every = [columns.get(f.name, empty).cast(f.type) for f in self.schema]
        return pa.table(every, schema=self.schema)


def add_salted(host: Host, rows: pa.Table) -> int:
    """Add a chunk of rows to an operator, and return the time they reach."""
    operator = host.operator
    columns = {name: plain(rows.column(name)) for name in rows.column_names}
    sets = columns[SET].to_numpy()
    for number, base in enumerate(operator.plan.bases.values()):
        mine = pa.array(sets == number)
        own = {name: column.filter(mine) for name, column in columns.items()}
        starts_us = own[START].to_numpy()
        if not starts_us.size:
            continue
        keys = operator.codes.encode([own[name] for name, _ in operator.keys], starts_us.size)
        partials = {
            partial: partials_of_column(partial, own[name], starts_us)
            for name, partial in _named(number, tuple(base.partials))
        }
        order = np.lexsort((starts_us, keys))
        flow = coarser(
            Flow(keys, starts_us, None, partials).take(order), base.slices, tuple(base.partials)
        )
        settled = {partial: one.settled() for partial, one in flow.partials.items()}
        operator.add_slices(number, Flow(flow.keys, flow.starts_us, None, settled))
    return int(columns[START][-1].as_py())
