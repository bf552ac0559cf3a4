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
from weft.engines.local.windows.slice_log import SliceLog, side_by_side

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.engines.local.state.held_state import HeldState
    from weft.engines.local.windows.flow import Flow
    from weft.plan import Node


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
            flow = read_flow(chunks[name], partials, trust)
            if (flow.keys[1:] < flow.keys[:-1]).any():  # older versions wrote by time
                flow = flow.take(np.lexsort((flow.starts_us, flow.keys)))
            runs.setdefault(owner, []).append(flow)
        elif kind == "window":
            windows[owner].discretizer.restore(read_values(chunks[name]))
        elif kind == "kept":
            stores[owner].kept = read_rows(chunks[name], stores[owner].partials, trust)
        elif kind == "waiting":
            rows = read_rows(chunks[name], stores[owner].partials, trust)
            stores[owner].waiting.append(rows)
    for owner, flows in runs.items():
        _hold(operator, nodes[owner], flows)


def _hold(operator: HeldState, node: Node, flows: Sequence[Flow]) -> None:
    """Let an operator hold slices; one is in one chunk, so no two have to be merged."""
    oldest = operator.since_us.get(node)
    final = operator.plan.final_before(node, operator.watermark_us)
    filled = sorted((flow for flow in flows if len(flow)), key=lambda one: int(one.starts_us.min()))
    # What stores have for final stays as it was written, chunk after chunk. Sets get thinner.
    past = 0
    if final is not None and not flows[0].sets:
        past = sum(int(flow.starts_us.max()) < final for flow in filled)
    if past:
        operator.past[node] = SliceLog.of(filled[:past])
    empty = flows[0].take(np.empty(0, np.int64))
    flow = side_by_side([empty, *filled[past:]])
    if oldest is not None:  # before it slices are gone, but not their chunks
        if past:
            operator.past[node].forget(oldest)
        flow = flow.take(np.flatnonzero(flow.starts_us >= oldest))
    operator.runs[node] = [flow]
