"""Streams for joins with given statistics, and the time that a placement takes on them."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.cost.joins.tuples import placement_name
from weft.parsing import parse
from weft.planners.portfolio import optimize

if TYPE_CHECKING:
    from weft.cost.joins.tuples import Method, Placement, SideLoad

_SECOND_US = 1_000_000
BATCH = 2_000  # tuples of all inputs together


@dataclass(frozen=True, slots=True)
class Streams:
    """Tuples of every input in time order: those that fill the windows, and those timed after."""

    sql: str
    filling: tuple[pa.Table, ...]
    timed: tuple[pa.Table, ...]

    @property
    def timed_tuples(self) -> int:
        """How many tuples are timed."""
        return sum(table.num_rows for table in self.timed)

    def batches(self, rows: int) -> list[dict[str, pa.Table]]:
        """Cut the timed tuples into batches of about so many, of all inputs at the same time."""
        times = [table["ts"].to_numpy() for table in self.timed]
        every = np.sort(np.concatenate(times))
        edges = [*every[::rows].tolist(), int(every[-1]) + 1]
        cuts = [np.searchsorted(own, edges).tolist() for own in times]
        return [
            {
                f"s{i}": table.slice(cut[at], cut[at + 1] - cut[at])
                for i, (table, cut) in enumerate(zip(self.timed, cuts, strict=True), 1)
            }
            for at in range(len(edges) - 1)
        ]


def streams_of(loads: tuple[SideLoad, ...], tuples: int, seed: int = 7) -> Streams:
    """Draw streams whose rates, windows, groups and join values are those of the loads."""
    random = np.random.default_rng(seed)
    rates = np.array([load.rate for load in loads])
    seconds = tuples / float(rates.sum())
    start = max(load.window_tuples / load.rate for load in loads)
    filling, timed = [], []
    for load in loads:
        times = np.arange(0, start + seconds, 1 / load.rate) * _SECOND_US
        columns = {
            "ts": times.astype(np.int64),
            "j": random.integers(0, int(load.join_values), times.size),
            "g": random.integers(0, int(load.groups), times.size),
            "a": random.integers(0, 1_000, times.size),
        }
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        cut = int(np.searchsorted(times, start * _SECOND_US))
        filling.append(table.slice(0, cut))
        timed.append(table.slice(cut))
    return Streams(_sql(loads), tuple(filling), tuple(timed))


def _sql(loads: tuple[SideLoad, ...]) -> str:
    sources = ", ".join(
        f"s{i} TIMESTAMP BY ts [RANGE {round(load.window_tuples / load.rate * _SECOND_US)} "
        "MICROSECONDS SLIDE 1 SECOND]"
        for i, load in enumerate(loads, 1)
    )
    keys = ", ".join(f"s{i}.g AS g{i}" for i, load in enumerate(loads, 1) if load.groups > 1)
    grouped = ", ".join(f"g{i}" for i, load in enumerate(loads, 1) if load.groups > 1)
    ties = " AND ".join(f"s1.j = s{i}.j" for i in range(2, len(loads) + 1))
    select = f"SELECT {keys + ', ' if keys else ''}SUM(s1.a) AS total FROM {sources} WHERE {ties}"
    return f"{select} GROUP BY {grouped}" if grouped else select


def timed_join(
    streams: Streams, early: Placement, method: Method, rounds: int = 3, batch_rows: int = BATCH
) -> tuple[float, Any, Any]:
    """Return processor seconds for the timed tuples, the result, and what was counted."""
    best, found, counters = float("inf"), None, None
    for _ in range(rounds):
        join = filled(streams, early, method)
        before = join.state.counters.copy()
        batches = streams.batches(batch_rows)
        start = process_time()
        for batch in batches:
            join.push_together(batch)
        best = min(best, process_time() - start)
        found, counters = join.result(), join.state.counters - before
    return best, found, counters


def filled(streams: Streams, early: Placement, method: Method) -> Any:
    """Return a join whose windows are full; they are filled by the cheapest plan."""
    from weft.engines.local.joins.continuous.join import ContinuousJoin

    everywhere = placement_name((True,) * len(early))
    (emit,) = optimize(parse(streams.sql), everywhere, "local").emits
    schemas = {f"s{i}": table.schema for i, table in enumerate(streams.filling, 1)}
    join = ContinuousJoin.of(emit, schemas, method)
    join.push_together({f"s{i}": table for i, table in enumerate(streams.filling, 1)})
    join.place(early)
    join.order_probes(join.loads((0.0,) * len(early)))
    return join
