"""Key sets in a session: slices of the finest keys that the others regroup, against all apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

import weft
from weft import agg
from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.mixed.local import same_totals
from weft.query import Query, Workload
from weft.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.frame import Runner
    from weft.planners.lattice import KeySets

EVENTS, QUICK_EVENTS = 3_000_000, 40_000
_PUSHES = 30
_KEYS = (("device", "site", "region"), ("site", "region"), ("region",), ())
_COUNTS = (300, 20, 4, 1)
_MINUTE_US = 60_000_000
_SEED = 7

Answer = dict[str, pa.Table]


class Inputs(NamedTuple):
    """Readings of a minute for each push, and the same question by four key sets."""

    table: pa.Table
    workload: Workload


def _inputs(events: int) -> Inputs:
    rng = np.random.default_rng(_SEED)
    device = rng.integers(0, _COUNTS[0], events)
    places = zip(_KEYS[0], (device, device % _COUNTS[1], device % _COUNTS[2]), strict=True)
    lasts_us = _PUSHES * _MINUTE_US
    columns: dict[str, Any] = {
        **{name: pa.array([f"{name} {n:05d}" for n in range(300)]).take(at) for name, at in places},
        "ts": np.arange(events, dtype=np.int64) * (lasts_us // events),
        "temp": np.round(rng.random(events) * 400) / 4,  # quarters add up without rounding
    }
    windows = {"1m": weft.tumbling("1 minute"), "10m": weft.hopping("10 minutes", "5 minutes")}
    calls = {"n": agg.count(), "total": agg.sum("temp"), "high": agg.max("temp")}
    asked: dict[str, Any] = {"source": "readings", "time": "ts", "windows": windows, "aggs": calls}
    queries = (Query("_".join(keys) or "all", keys=keys, **asked) for keys in _KEYS)
    return Inputs(pa.table(columns), Workload(queries))


def _start(key_sets: KeySets | None) -> Callable[[Inputs], Runner]:
    def start(inputs: Inputs) -> Runner:
        table, workload = inputs
        counts = tuple(zip(_KEYS, _COUNTS, strict=True))
        rate = table.num_rows / (_PUSHES * 60)
        plan = weft.optimize(
            workload,
            engine="local",
            statistics=Statistics(rate=rate, keys=_COUNTS[0], key_sets=counts),
            session=True,
            micro_batch="1 minute",
            key_sets=key_sets,
        )

        def runner() -> Answer:
            session = weft.LocalSession(plan, watermark=0)
            size = table.num_rows // _PUSHES
            found = [session.push("readings", table.slice(i * size, size)) for i in range(_PUSHES)]
            found.append(session.finish())
            return {q.name: pa.concat_tables([f[q.name] for f in found]) for q in plan.queries}

        return runner

    return start


ENTRIES: tuple[Entry, ...] = (
    Race(
        name="local/session_key_sets",
        question="What do four key sets cost in a session, when slices of the finest serve all?",
        inputs=_inputs,
        expected=None,
        contenders={"apart": Contender(_start("apart")), "weft": Contender(_start(None))},
        baseline="apart",
        full=(Case(f"{EVENTS:,} events", {"events": EVENTS}, EVENTS),),
        quick=(Case(f"{QUICK_EVENTS:,} events", {"events": QUICK_EVENTS}, QUICK_EVENTS),),
        bars=(Bar("weft", "apart", 1.3),),
        same=same_totals,
        rounds=7,
        item="event",
    ),
)
