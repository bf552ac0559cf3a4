"""Windows at anchors on the local engine, against DuckDB and Polars.

Every contender has two threads and the same Arrow tables in memory, events in the order of time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.anchors.inputs import (
    Payments,
    payments,
    payments_in_frames,
    same_features,
)
from weft.bench.suite.local.peers import THREADS, limited_polars

if TYPE_CHECKING:
    from weft.bench.frame import Runner

_EVENTS, _QUICK_EVENTS = 1_000_000, 30_000
_USERS = 1_000
_FRAMES = (10, 100, 1_000, 10_000)


def _start_rolling(inputs: Payments) -> Runner:
    import weft

    asked: dict[str, Any] = {"windows": inputs.windows, "aggs": inputs.aggs, "by": ["user"]}
    return lambda: weft.rolling(inputs.events, time="ts", engine="local", **asked)


def _start_rolling_one(inputs: Payments) -> Runner:
    return _start_rolling(Payments(inputs.events, inputs.labels, inputs.ranges_us[-1:]))


def _start_as_of(inputs: Payments) -> Runner:
    import weft

    asked: dict[str, Any] = {"windows": inputs.windows, "aggs": inputs.aggs, "by": ["user"]}
    return lambda: weft.as_of(inputs.labels, inputs.events, time="ts", at="ts", **asked)


def _duckdb(inputs: Payments) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("events", inputs.events)
    connection.register("labels", inputs.labels)
    return connection


def _frames(inputs: Payments, shorter_us: int = 0) -> str:
    return ", ".join(
        f'{label} AS (PARTITION BY "user" ORDER BY us '
        f"RANGE BETWEEN {range_us - shorter_us} PRECEDING AND CURRENT ROW)"
        for label, range_us in inputs.windows.items()
    )


def _columns(inputs: Payments) -> str:
    return ", ".join(
        f"{call} OVER {label} AS {name}_{label}"
        for label in inputs.windows
        for name, call in (
            ("lo", "min(amount)"),
            ("total", "sum(amount)"),
            ("mean", "avg(amount)"),
            ("n", "count(*)"),
        )
    )


def _start_duckdb_rolling(inputs: Payments) -> Runner:
    connection = _duckdb(inputs)
    rows = 'SELECT id, epoch_us(ts) AS us, "user", amount FROM events'
    query = f"SELECT id, {_columns(inputs)} FROM ({rows}) WINDOW {_frames(inputs)}"
    return lambda: connection.sql(query).to_arrow_table()


def _start_duckdb_as_of(inputs: Payments) -> Runner:
    """Put labels among the events, as rows that count nowhere; events count a microsecond later."""
    connection = _duckdb(inputs)
    rows = (
        'SELECT id, epoch_us(ts) AS us, "user", NULL AS amount FROM labels UNION ALL '
        'SELECT NULL, epoch_us(ts) + 1, "user", amount FROM events'
    )
    columns = _columns(inputs).replace("count(*)", "count(amount)")
    framed = f"SELECT id, {columns} FROM ({rows}) WINDOW {_frames(inputs, shorter_us=1)}"
    query = f"SELECT * FROM ({framed}) WHERE id IS NOT NULL"
    return lambda: connection.sql(query).to_arrow_table()


def _polars_parts(pl: Any, inputs: Payments, frame: Any, closed: Any) -> list[Any]:
    value = pl.col("amount")
    return [
        frame.rolling("ts", period=f"{range_us}us", closed=closed, group_by="user")
        .agg(
            value.min().alias(f"lo_{label}"),
            value.sum().alias(f"total_{label}"),
            value.mean().alias(f"mean_{label}"),
            value.count().alias(f"n_{label}"),
        )
        .drop("user", "ts")
        for label, range_us in inputs.windows.items()
    ]


def _start_polars_rolling(inputs: Payments) -> Runner:
    pl = limited_polars()
    given = pl.DataFrame(inputs.events)

    def runner() -> Any:
        frame = given.sort("user", "ts")
        return pl.concat([frame, *_polars_parts(pl, inputs, frame, "both")], how="horizontal")

    return runner


_PEERS = {
    "duckdb": Contender(_start_duckdb_rolling, ("duckdb",), runs=1),
    "polars": Contender(_start_polars_rolling, ("polars",)),
}


def _case(events: int, label: str = "", **arguments: int) -> Case:
    users = min(_USERS, events // 30)
    return Case(
        label or f"{events:,} events", {"events": events, "users": users, **arguments}, events
    )


ROLLING = Race(
    name="rolling/local",
    question="What do four ranges at every event cost on the local engine, and what elsewhere?",
    inputs=payments,
    expected=None,
    contenders={
        "weft": Contender(_start_rolling),
        "weft_one_range": Contender(_start_rolling_one, yardstick=True),
        **_PEERS,
    },
    baseline="duckdb",
    full=(_case(_EVENTS),),
    quick=(_case(_QUICK_EVENTS),),
    bars=(Bar("weft", "duckdb", 3), Bar("weft", "polars", 1)),
    same=same_features,
    rounds=5,
    item="event",
)

FRAMES = Race(
    name="rolling/local_frames",
    question="Does the time grow with the events in a window?",
    inputs=payments_in_frames,
    expected=None,
    contenders={"weft": Contender(_start_rolling), **_PEERS},
    baseline="duckdb",
    full=tuple(_case(_EVENTS, f"frames of {n:,}", frame=n, users=10) for n in _FRAMES),
    quick=tuple(_case(_QUICK_EVENTS, f"frames of {n:,}", frame=n, users=1) for n in _FRAMES[:2]),
    bars=(Bar("weft", "duckdb", 3), Bar("weft", "polars", 1)),
    same=same_features,
    rounds=5,
    item="event",
)

AS_OF = Race(
    name="as_of/local",
    question="What do features of labels cost, few and many of them?",
    inputs=payments,
    expected=None,
    contenders={
        "weft": Contender(_start_as_of),
        "duckdb": Contender(_start_duckdb_as_of, ("duckdb",), runs=1),
    },
    baseline="duckdb",
    full=tuple(_case(_EVENTS, f"{n:,} labels", labels=n) for n in (10_000, 100_000)),
    quick=tuple(_case(_QUICK_EVENTS, f"{n:,} labels", labels=n) for n in (1_000, 10_000)),
    bars=(Bar("weft", "duckdb", 3),),
    same=same_features,
    rounds=5,
    item="event",
)

ENTRIES: tuple[Entry, ...] = (ROLLING, FRAMES, AS_OF)
