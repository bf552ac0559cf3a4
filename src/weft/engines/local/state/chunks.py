"""Pieces of an operator's state as blobs and back: slices, events, keys, counters.

A blob is a description in JSON and Arrow IPC; it reads back in any process.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.state.arrow_shelf import Shelf
from weft.engines.local.state.custom_partials import NO_PICKLES, Trust
from weft.engines.local.values.keys import ColumnCodes
from weft.engines.local.windows.event_rows import EventRows
from weft.engines.local.windows.flow import Flow
from weft.plan.node_json import nodes_to_json, partials_to_json, window_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.aggregates import Partial
    from weft.engines.local.partials.columns import Held
    from weft.plan import Node
    from weft.window import Window

_HEAD = 8


def packed(shelf: Shelf) -> bytes:
    """Write a shelf with its description."""
    told = json.dumps(shelf.told).encode()
    return len(told).to_bytes(_HEAD, "little") + told + shelf.dump()


def unpacked(blob: bytes, trust: Trust = NO_PICKLES) -> Shelf:
    """Read what `packed` wrote."""
    size = int.from_bytes(blob[:_HEAD], "little")
    told: dict[str, Any] = json.loads(blob[_HEAD : _HEAD + size])
    return Shelf.load(blob[_HEAD + size :], told, trust)


def values_chunk(values: Mapping[str, Any]) -> bytes:
    """Write a few JSON values.

    >>> read_values(values_chunk({"late": 3}))
    {'late': 3}
    """
    return packed(Shelf(told=dict(values)))


def read_values(blob: bytes) -> dict[str, Any]:
    """Read what `values_chunk` wrote."""
    return unpacked(blob).told


@lru_cache(maxsize=1 << 12)
def name_of_base(node: Node) -> str:
    """Name slices by what they are: the same in every process, and whoever else shares the scan."""
    told = nodes_to_json((*node.inputs, node))[-1]
    return _digest({name: told[name] for name in ("edges", "window", "partials") if name in told})


def name_of_window(window: Window, partials: Sequence[Partial]) -> str:
    """Name the events of a window that events delimit, the same in every process."""
    asked = partials_to_json(partials)
    return _digest({"window": window_to_json(window), "partials": asked})


def _digest(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]


def keys_chunk(codes: Sequence[ColumnCodes], since: Sequence[int]) -> bytes:
    """Write the key values that are new since so many were known, column by column."""
    lists = [one.since(known) for one, known in zip(codes, since, strict=True)]
    return packed(Shelf(lists=lists))


def read_keys(blobs: Sequence[bytes]) -> list[ColumnCodes]:
    """Put the increments of every column together.

    >>> codes = ColumnCodes(pa.array(["b", None, "a"]))
    >>> whole = read_keys([keys_chunk([codes], [0])])[0].values
    >>> parts = read_keys([keys_chunk([ColumnCodes(whole[:1])], [0]), keys_chunk([codes], [1])])
    >>> parts[0].values.to_pylist()
    ['b', None, 'a']
    """
    columns = zip(*(unpacked(blob).lists for blob in blobs), strict=True)
    known = [[part for part in parts if len(part)] for parts in columns]
    return [ColumnCodes.of(pa.concat_arrays(parts)) if parts else ColumnCodes() for parts in known]


def _put_partials(shelf: Shelf, partials: Mapping[Partial, Held]) -> None:
    for at, held in enumerate(partials.values()):
        shelf.put(f"p{at}", held)


def _get_partials(shelf: Shelf, partials: Sequence[Partial]) -> dict[Partial, Held]:
    return {partial: shelf.get(f"p{at}", partial) for at, partial in enumerate(partials)}


def flow_chunk(flow: Flow, trust: Trust = NO_PICKLES) -> bytes:
    """Write slices."""
    columns = {"keys": pa.array(flow.keys), "starts": pa.array(flow.starts_us)}
    shelf = Shelf(columns, trust=trust)
    _put_partials(shelf, flow.partials)
    return packed(shelf)


def read_flow(blob: bytes, partials: Sequence[Partial], trust: Trust = NO_PICKLES) -> Flow:
    """Read what `flow_chunk` wrote."""
    shelf = unpacked(blob, trust)
    keys, starts = (np.array(shelf.columns[n].to_numpy()) for n in ("keys", "starts"))
    return Flow(keys, starts, None, _get_partials(shelf, partials))


def rows_chunk(rows: EventRows, trust: Trust = NO_PICKLES) -> bytes:
    """Write events or slices of them."""
    times = {"keys": pa.array(rows.keys), "times": pa.array(rows.times_us)}
    shelf = Shelf(times, trust=trust)
    if rows.sizes is not None:
        shelf.columns |= {"lasts": pa.array(rows.lasts_us), "sizes": pa.array(rows.sizes)}
    for kind, columns in (("mark.", rows.marks), ("alive.", rows.alive)):
        for name, values in columns.items():
            shelf.columns[kind + name] = pa.array(values)
    _put_partials(shelf, rows.partials)
    return packed(shelf)


def read_rows(blob: bytes, partials: Sequence[Partial], trust: Trust = NO_PICKLES) -> EventRows:
    """Read what `rows_chunk` wrote."""
    shelf = unpacked(blob, trust)
    numbers = {
        name: np.array(shelf.columns[name].to_numpy())
        for name in ("keys", "times", "lasts", "sizes")
        if name in shelf.columns
    }
    marks, alive = (
        {n.removeprefix(kind): array for n, array in shelf.columns.items() if n.startswith(kind)}
        for kind in ("mark.", "alive.")
    )
    return EventRows(
        numbers["keys"],
        numbers["times"],
        _get_partials(shelf, partials),
        marks,
        numbers.get("lasts", numbers["times"]),
        numbers.get("sizes"),
        {name: array.to_numpy(zero_copy_only=False) for name, array in alive.items()},
    )
