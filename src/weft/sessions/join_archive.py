"""A join of a session as named chunks, and a join from such chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.joins.continuous.state import State
from weft.engines.local.joins.operator import JoinOperator
from weft.engines.local.state.arrow_shelf import Shelf
from weft.engines.local.state.chunks import (
    flow_chunk,
    keys_chunk,
    packed,
    read_flow,
    read_keys,
    read_values,
    unpacked,
    values_chunk,
)
from weft.engines.local.state.table_bytes import read_table, table_chunk
from weft.sessions.archive import JoinState
from weft.sessions.join_stream import JoinStream, Switch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.engines.local.joins.continuous.join import ContinuousJoin
    from weft.engines.local.state.custom_partials import Trust
    from weft.engines.local.values.keys import ColumnCodes

_OF_STREAM = ("delay_us", "continuous", "epoch_events", "advanced_us", "late", "looked_at")
_BY_INPUT = ("latest_us", "first_us", "taken")
_OF_OPERATOR = ("passed_us", "events", "timeless", "matched")
_OF_CONTINUOUS = ("used", "now_us", "greatest_whole", "rebuilds", "timeless", "group_room")


def saved(stream: JoinStream, trust: Trust) -> JoinState:
    """Return plan and chunks: counters, batches that wait, codes, and rows or arrays."""
    told: dict[str, Any] = {name: getattr(stream, name) for name in _OF_STREAM}
    told |= {name: list(getattr(stream, name).items()) for name in _BY_INPUT}
    told["switches"] = stream.switches
    told["waiting"] = [source for source, _ in stream.waiting]
    told["schemas"] = [*stream.schemas]
    chunks: dict[str, bytes] = {}
    for at, (_, table) in enumerate(stream.waiting):
        chunks[f"waiting/{at}"] = table_chunk(table)
    for at, schema in enumerate(stream.schemas.values()):
        chunks[f"schema/{at}"] = table_chunk(schema.empty_table())
    operator = stream.operator
    if isinstance(operator, JoinOperator):
        told["operator"] = {name: getattr(operator, name) for name in _OF_OPERATOR}
        told["early"] = operator.early
        for at, store in enumerate(operator.stores):
            flow = store.flow()
            if flow is not None:
                chunks[f"side/{at}"] = flow_chunk(flow, trust)
    elif operator is not None:
        told["operator"] = {name: getattr(operator, name) for name in _OF_CONTINUOUS}
        arrays = (*operator.state, *operator.pairs_of_side)
        lists = [pa.array(array.ravel()) for array in arrays]
        chunks["arrays"] = packed(Shelf(lists=lists, told={"shapes": [a.shape for a in arrays]}))
    if operator is not None:
        codes = _codes(operator)
        chunks["keys"] = keys_chunk(codes, [0] * len(codes))
    return JoinState(stream.plan, {**chunks, "counters": values_chunk(told)})


def restored(state: JoinState, trust: Trust) -> JoinStream:
    """Make the join again that `saved` describes."""
    chunks = state.chunks
    told = read_values(chunks["counters"])
    stream = JoinStream(state.plan, told["delay_us"])
    for name in _OF_STREAM:
        setattr(stream, name, told[name])
    for name in _BY_INPUT:
        setattr(stream, name, dict(map(tuple, told[name])))
    stream.switches = [Switch(*switch) for switch in told["switches"]]
    stream.waiting = [
        (source, read_table(chunks[f"waiting/{at}"])) for at, source in enumerate(told["waiting"])
    ]
    stream.schemas = {
        source: read_table(chunks[f"schema/{at}"]).schema
        for at, source in enumerate(told["schemas"])
    }
    if not stream.schemas:
        return stream
    stream.start()
    operator = stream.operator
    assert operator is not None
    for own, known in zip(_codes(operator), read_keys([chunks["keys"]]), strict=True):
        own.values = known.values
    for name, value in told["operator"].items():
        setattr(operator, name, value)
    if isinstance(operator, JoinOperator):
        for at, store in enumerate(operator.stores):
            store.early = told["early"][at]
            if f"side/{at}" in chunks:
                store.runs = [read_flow(chunks[f"side/{at}"], store.side.partials, trust)]
    else:
        _take_arrays(operator, chunks)
    return stream


def _take_arrays(operator: ContinuousJoin, chunks: Mapping[str, bytes]) -> None:
    shelf = unpacked(chunks["arrays"])
    arrays = [
        np.array(column.to_numpy(zero_copy_only=False)).reshape(shape)
        for column, shape in zip(shelf.lists, shelf.told["shapes"], strict=True)
    ]
    fields = len(State._fields)
    operator.state, operator.pairs_of_side = State(*arrays[:fields]), arrays[fields:]


def _codes(operator: JoinOperator | ContinuousJoin) -> list[ColumnCodes]:
    """List all columns of codes, always in the same order."""
    if isinstance(operator, JoinOperator):
        inputs, keys = [store.codes for store in operator.stores], [operator.keys]
    else:
        inputs, keys = [*operator.codes], [operator.keys, operator.values]
    keys += [own for codes in inputs for own in (codes.groups, codes.carried, codes.pairs)]
    columns = [column for own in keys for column in (*own.columns, *own.pairs)]
    return [*operator.variables, *columns]
