"""How much memory a stream of a million keys takes: in a process of its own, whose peak it is."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

import weft
from weft.bench.frame import Column, Entry, Limit, Sheet, Table
from weft.bench.suite.local.inputs import SECOND_US, draw_events, labelled

if TYPE_CHECKING:
    import pyarrow as pa

_SIZES = {"full": (10_000_000, 1_000_000), "quick": (100_000, 10_000)}
_BATCH_EVENTS = 100_000
_RANGES_S = (3_600, 7_200)
_GIB = 1 << 30


def measure(events: int, keys: int) -> dict[str, Any]:
    """Push events of so many keys, all of whose windows are open at once; return what it took."""
    query = weft.Query(
        "counts",
        source="events",
        time="ts",
        keys=["k"],
        windows=labelled([(range_s, range_s) for range_s in _RANGES_S]),
        aggs={"n": weft.agg.count(), "least": weft.agg.min("v")},
    )
    table = draw_events(events, keys).combine_chunks()
    session = weft.LocalSession(weft.Workload([query]))
    rows, counted, state_bytes = 0, 0, 0

    def take(result: pa.Table) -> None:
        nonlocal rows, counted
        rows += result.num_rows
        counted += pc.sum(result["n"]).as_py() or 0 if result.num_rows else 0

    for at in range(0, events, _BATCH_EVENTS):
        take(session.push("events", table.slice(at, _BATCH_EVENTS)))
        state_bytes = max(state_bytes, session.metrics.state_bytes)
    take(session.finish())
    metrics = session.metrics
    return {
        "rows": rows,
        "counted": counted,
        "expected rows": _distinct_rows(table),
        "state_bytes": state_bytes,
        "peak_bytes": metrics.peak_bytes,
        "events_per_second": metrics.events_per_second,
    }


def _distinct_rows(table: pa.Table) -> int:
    """Count the different (key, instance) of all windows without the engine."""
    keys, times = (table[name].to_numpy() for name in ("k", "us"))
    instances = [times // (range_s * SECOND_US) for range_s in _RANGES_S]
    return sum(np.unique(keys.astype(np.int64) << 32 | which).size for which in instances)


def _compute(quick: bool) -> Sheet:
    events, keys = _SIZES["quick" if quick else "full"]
    code = (
        f"import json; from {__name__} import measure; print(json.dumps(measure({events}, {keys})))"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    told = json.loads(child.stdout)
    wrong = []
    if told["rows"] != told["expected rows"] or told["counted"] != len(_RANGES_S) * events:
        wrong.append(f"{told['rows']} rows with {told['counted']} events")
    row = {
        "events": events,
        "keys": keys,
        "rows": told["rows"],
        "state GiB": told["state_bytes"] / _GIB,
        "peak GiB": None if told["peak_bytes"] is None else told["peak_bytes"] / _GIB,
        "million events/s": told["events_per_second"] / 1e6,
    }
    return Sheet((row,), tuple(wrong))


MILLION_KEYS = Table(
    name="local/million_keys",
    question="How much memory does a stream of a million distinct keys take?",
    columns=(
        Column("events", ",d"),
        Column("keys", ",d"),
        Column("rows", ",d"),
        Column("state GiB", ".3f"),
        Column("peak GiB", ".3f"),
        Column("million events/s", ".3g"),
    ),
    compute=_compute,
    limits=(Limit("peak GiB", at_most=4),),
)

ENTRIES: tuple[Entry, ...] = (MILLION_KEYS,)
