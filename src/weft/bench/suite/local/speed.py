"""How fast the local engine answers many windows, against DuckDB, Polars and itself.

Every contender has two threads and the same Arrow table in memory. The plan is made beforehand:
what is timed is the engine. A yardstick is the engine's own aggregate of the one slicing that all
windows could be made from, or of one window where many are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

import weft
from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.local.inputs import (
    WindowedEvents,
    hopping_events,
    least_by_numpy,
    random_hopping_events,
    same_answer,
    tumbling_events,
)
from weft.bench.suite.local.peers import (
    DUCKDB_FAN_OUT,
    DUCKDB_UNION,
    DUCKDB_UNION_OWN_TABLE,
    POLARS_DYNAMIC,
    POLARS_DYNAMIC_SORTED,
    POLARS_UNION,
)

if TYPE_CHECKING:
    from weft.bench.frame import Runner

_EVENTS = 10_000_000
_QUICK_EVENTS = 300_000
_BATCH_EVENTS = 100_000
_SLICE_S = 5


def _start_weft(inputs: WindowedEvents) -> Runner:
    plan, tables = inputs.plan, {"events": inputs.table}
    return lambda: weft.run(plan, tables, engine="local")


def _start_first_only(inputs: WindowedEvents) -> Runner:
    return _start_weft(WindowedEvents(inputs.table, inputs.keys, inputs.shapes[:1]))


def _start_one_slice(inputs: WindowedEvents) -> Runner:
    return _start_weft(WindowedEvents(inputs.table, inputs.keys, ((_SLICE_S, _SLICE_S),)))


def _start_stream(inputs: WindowedEvents) -> Runner:
    plan, table = inputs.session_plan, inputs.table.combine_chunks()
    batches = [table.slice(at, _BATCH_EVENTS) for at in range(0, table.num_rows, _BATCH_EVENTS)]

    def runner() -> Any:
        session = weft.LocalSession(plan)
        parts = [session.push("events", batch) for batch in batches]
        return pa.concat_tables([*parts, session.finish()])

    return runner


WEFT = Contender(_start_weft)
ONE_SLICE = Contender(_start_one_slice, yardstick=True)


def _cases(label: str, **arguments: int) -> dict[str, Any]:
    return {
        "full": (Case(label, {"events": _EVENTS, **arguments}, items=_EVENTS),),
        "quick": (Case(label, {"events": _QUICK_EVENTS, **arguments}, items=_QUICK_EVENTS),),
        "expected": least_by_numpy,
        "same": same_answer,
        "item": "event",
    }


TUMBLING_20 = Race(
    name="local/tumbling_20",
    question="What do 20 tumbling windows cost on the local engine, and what elsewhere?",
    inputs=tumbling_events,
    contenders={
        "weft": WEFT,
        "weft_5s_slices": ONE_SLICE,
        "duckdb": DUCKDB_UNION,
        "duckdb_own_table": DUCKDB_UNION_OWN_TABLE,
        "polars": POLARS_UNION,
    },
    baseline="duckdb",
    **_cases("10 s .. 105 s", keys=10, windows=20, first_s=10, step_s=5),
    bars=(
        Bar("weft", "duckdb", 15),
        Bar("weft", "polars", 10),
        Bar("weft", "weft_5s_slices", 1 / 1.3),
    ),
    rounds=5,
)

TUMBLING_80 = Race(
    name="local/tumbling_80",
    question="Do 80 tumbling windows cost about as much as the slices they are made from?",
    inputs=tumbling_events,
    contenders={"weft": WEFT, "weft_5s_slices": ONE_SLICE},
    baseline="weft_5s_slices",
    **_cases("5 s .. 400 s", keys=10, windows=80, first_s=5, step_s=5),
    bars=(Bar("weft", "weft_5s_slices", 1 / 1.6),),
)

MANY_KEYS = Race(
    name="local/many_keys",
    question="Does sharing still pay with 10,000 keys, whose slices are nearly as many as events?",
    inputs=tumbling_events,
    contenders={"weft": WEFT, "duckdb": DUCKDB_UNION, "polars": POLARS_UNION},
    baseline="duckdb",
    **_cases("100 s .. 1050 s", keys=10_000, windows=20, first_s=100, step_s=50),
    bars=(Bar("weft", "duckdb", 5),),
    rounds=3,
)

HOP = Race(
    name="local/hop",
    question="What does one window cost that holds each event 60 times?",
    inputs=hopping_events,
    contenders={
        "weft": WEFT,
        "duckdb_fan_out": DUCKDB_FAN_OUT,
        "polars_dynamic": POLARS_DYNAMIC,
        "polars_dynamic_sorted_by_key": POLARS_DYNAMIC_SORTED,
    },
    baseline="duckdb_fan_out",
    **_cases("600 s / 10 s", keys=10, range_s=600, slide_s=10),
    bars=(Bar("weft", "duckdb_fan_out", 30), Bar("weft", "polars_dynamic", 15)),
    rounds=3,
)

HOPS_100 = Race(
    name="local/hops_100",
    question="How much more than one hopping window do a hundred random ones cost?",
    inputs=random_hopping_events,
    contenders={"weft": WEFT, "weft_first_only": Contender(_start_first_only, yardstick=True)},
    baseline="weft_first_only",
    **_cases("100 random hops", keys=10, windows=100),
    bars=(Bar("weft", "weft_first_only", 1 / 3),),
)

STREAM = Race(
    name="local/stream",
    question="How much of its throughput does the engine keep when events come in batches?",
    inputs=tumbling_events,
    contenders={"weft": WEFT, "weft_stream": Contender(_start_stream)},
    baseline="weft",
    **_cases("batches of 100,000", keys=10, windows=20, first_s=10, step_s=5),
    bars=(Bar("weft_stream", "weft", 0.7),),
)

ENTRIES: tuple[Entry, ...] = (TUMBLING_20, TUMBLING_80, MANY_KEYS, HOP, HOPS_100, STREAM)
