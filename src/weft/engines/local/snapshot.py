"""The state of an operator as named chunks, one per slice time, and back.

A chunk is a blob of Arrow IPC with a description. A host that keeps chunks in a store of its own
writes them under their names, and drops those that are no longer named.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.delimited import EventRows
from weft.engines.local.flows import Flow, merged
from weft.engines.local.keys import ColumnCodes
from weft.engines.local.persist import Shelf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.aggregates import Partial
    from weft.engines.local.held import Held
    from weft.engines.local.operator import ScopeOperator

Chunks = dict[str, bytes]
_HEAD = 8


def snapshot(operator: ScopeOperator) -> Chunks:
    """Return the whole state by name: `keys`, `counters`, slices by base and time, events.

    Slices of several batches are merged first, so equal states give equal chunks.
    """
    chunks: Chunks = {"keys": _keys_chunk(operator), "counters": _counters_chunk(operator)}
    for at, node in enumerate(operator.plan.bases):
        if node not in operator.runs:
            continue
        flow = merged(operator.runs[node])
        operator.runs[node] = [flow]
        for start in np.unique(flow.starts_us).tolist() or [None]:
            rows = np.flatnonzero(flow.starts_us == start) if start is not None else None
            part = flow if rows is None else flow.take(rows)
            chunks[f"slices/{at}/{'' if start is None else start}"] = _flow_chunk(part)
    for at, one in enumerate(operator.delimited.values()):
        chunks[f"window/{at}"] = json.dumps(one.discretizer.snapshot()).encode()
        if one.kept is not None:
            chunks[f"kept/{at}"] = _rows_chunk(one.kept)
        for batch, rows_ in enumerate(one.waiting):
            chunks[f"waiting/{at}/{batch:08}"] = _rows_chunk(rows_)
    return chunks


def restore(operator: ScopeOperator, chunks: Mapping[str, bytes]) -> None:
    """Fill a fresh operator of the same plan with the state of `snapshot`."""
    _read_keys(operator, chunks["keys"])
    counters = json.loads(chunks["counters"])
    operator.watermark_us, operator.late, operator.events, operator.plan.combines = counters
    nodes = list(operator.plan.bases)
    runs: dict[int, list[Flow]] = {}
    windows = list(operator.delimited.values())
    for name in sorted(chunks):
        kind, _, rest = name.partition("/")
        at = int(rest.partition("/")[0]) if rest else 0
        if kind == "slices":
            partials = tuple(operator.plan.bases[nodes[at]].partials)
            runs.setdefault(at, []).append(_read_flow(chunks[name], partials))
        elif kind == "window":
            windows[at].discretizer.restore(json.loads(chunks[name]))
        elif kind == "kept":
            windows[at].kept = _read_rows(chunks[name], windows[at].partials)
        elif kind == "waiting":
            windows[at].waiting.append(_read_rows(chunks[name], windows[at].partials))
    operator.runs = {nodes[at]: [merged(flows)] for at, flows in runs.items()}


def _packed(shelf: Shelf) -> bytes:
    told = json.dumps(shelf.told).encode()
    return len(told).to_bytes(_HEAD, "little") + told + shelf.dump()


def _unpacked(blob: bytes) -> Shelf:
    size = int.from_bytes(blob[:_HEAD], "little")
    told: dict[str, Any] = json.loads(blob[_HEAD : _HEAD + size])
    return Shelf.load(blob[_HEAD + size :], told)


def _counters_chunk(operator: ScopeOperator) -> bytes:
    counters = (operator.watermark_us, operator.late, operator.events, operator.plan.combines)
    return json.dumps(counters).encode()


def _keys_chunk(operator: ScopeOperator) -> bytes:
    shelf = Shelf(told={"columns": operator.codes.width, "known": len(operator.codes)})
    for codes in (*operator.codes.columns, *operator.codes.pairs):
        shelf.lists.append(pa.nulls(0) if codes.values is None else codes.values)
    return _packed(shelf)


def _read_keys(operator: ScopeOperator, blob: bytes) -> None:
    shelf = _unpacked(blob)
    width = shelf.told["columns"]
    made = [ColumnCodes(one if len(one) else None) for one in shelf.lists]
    operator.codes.columns, operator.codes.pairs = made[:width], made[width:]


def _put_partials(shelf: Shelf, partials: Mapping[Partial, Held]) -> None:
    for at, held in enumerate(partials.values()):
        shelf.put(f"p{at}", held)


def _get_partials(shelf: Shelf, partials: Sequence[Partial]) -> dict[Partial, Held]:
    return {partial: shelf.get(f"p{at}", partial) for at, partial in enumerate(partials)}


def _flow_chunk(flow: Flow) -> bytes:
    shelf = Shelf({"keys": pa.array(flow.keys), "starts": pa.array(flow.starts_us)})
    _put_partials(shelf, flow.partials)
    return _packed(shelf)


def _read_flow(blob: bytes, partials: Sequence[Partial]) -> Flow:
    shelf = _unpacked(blob)
    keys, starts = (np.array(shelf.columns[n].to_numpy()) for n in ("keys", "starts"))
    return Flow(keys, starts, None, _get_partials(shelf, partials))


def _rows_chunk(rows: EventRows) -> bytes:
    shelf = Shelf({"keys": pa.array(rows.keys), "times": pa.array(rows.times_us)})
    for name, array in rows.marks.items():
        shelf.columns[f"mark.{name}"] = array
    _put_partials(shelf, rows.partials)
    return _packed(shelf)


def _read_rows(blob: bytes, partials: Sequence[Partial]) -> EventRows:
    shelf = _unpacked(blob)
    keys, times = (np.array(shelf.columns[n].to_numpy()) for n in ("keys", "times"))
    marks = {
        name.removeprefix("mark."): array
        for name, array in shelf.columns.items()
        if name.startswith("mark.")
    }
    return EventRows(keys, times, _get_partials(shelf, partials), marks)
