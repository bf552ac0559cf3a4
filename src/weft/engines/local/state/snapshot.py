"""The whole state of an operator as named chunks, and an operator from such chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.state.chunks import (
    name_of_base,
    read_flow,
    read_keys,
    read_rows,
    read_values,
)
from weft.engines.local.state.custom_partials import NO_PICKLES, Trust
from weft.engines.local.state.journal import Chunks, Journal
from weft.engines.local.windows.slice_log import side_by_side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.engines.local.state.held_state import HeldState
    from weft.engines.local.windows.flow import Flow


def snapshot(operator: HeldState, trust: Trust = NO_PICKLES) -> Chunks:
    """Return all chunks, whatever a host was told before."""
    return Journal(trust=trust).changes(operator).written


def restore(operator: HeldState, chunks: Mapping[str, bytes], trust: Trust = NO_PICKLES) -> None:
    """Fill a fresh operator of the same plan with the state that the chunks hold."""
    operator.take_counters(read_values(chunks["counters"]))
    increments = sum(name.startswith("keys/") for name in chunks)
    if increments:
        codes = read_keys([chunks[f"keys/{at}"] for at in range(increments)])
        width = operator.codes.width
        operator.codes.columns, operator.codes.pairs = codes[:width], codes[width:]
    nodes = {name_of_base(node): node for node in operator.plan.bases}
    stores = {store.name: store for store in operator.delimited}
    windows = {one.name: one for store in operator.delimited for one in store.members.values()}
    runs: dict[str, list[Flow]] = {}
    for name in sorted(chunks):
        kind, _, rest = name.partition("/")
        owner = rest.partition("/")[0]
        if kind in ("shape", "slices"):
            partials = tuple(operator.plan.bases[nodes[owner]].partials)
            runs.setdefault(owner, []).append(read_flow(chunks[name], partials, trust))
        elif kind == "window":
            windows[owner].discretizer.restore(read_values(chunks[name]))
        elif kind == "kept":
            stores[owner].kept = read_rows(chunks[name], stores[owner].partials, trust)
        elif kind == "waiting":
            rows = read_rows(chunks[name], stores[owner].partials, trust)
            stores[owner].waiting.append(rows)
    # A slice is in one chunk: no two of them have to be merged, one after the other.
    for owner, flows in runs.items():
        flow, oldest = side_by_side(flows), operator.since_us.get(nodes[owner])
        if oldest is not None and len(flow) and int(flow.starts_us.min()) < oldest:
            flow = flow.take(np.flatnonzero(flow.starts_us >= oldest))  # gone, but not its chunk
        operator.runs[nodes[owner]] = [flow]
