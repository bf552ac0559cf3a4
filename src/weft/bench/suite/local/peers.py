"""MIN over windows in the words of others: the fastest formulation each of them was found to have.

DuckDB groups by whole numbers, which is faster for it than by timestamps. Polars runs one lazy
query on its streaming engine, which is faster for it than one query after the other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from weft.bench.frame import Contender
from weft.bench.suite.local.inputs import SECOND_US

if TYPE_CHECKING:
    from weft.bench.frame import Runner
    from weft.bench.suite.local.inputs import Shape, WindowedEvents

THREADS = 2


def _connected(inputs: WindowedEvents, *, own_table: bool) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.register("given", inputs.table)
    kind = "TABLE" if own_table else "VIEW"
    connection.execute(f"CREATE {kind} events AS SELECT us, k, v FROM given")
    return connection


def _tumbling_sql(place: int, shape: Shape) -> str:
    width_us = shape[0] * SECOND_US
    return (
        f'SELECT k, {place} AS "window", us // {width_us} * {width_us} AS window_start, '
        f"MIN(v) AS least FROM events GROUP BY k, us // {width_us}"
    )


def _duckdb_union(*, own_table: bool) -> Contender:
    def start(inputs: WindowedEvents) -> Runner:
        connection = _connected(inputs, own_table=own_table)
        parts = [_tumbling_sql(place, shape) for place, shape in enumerate(inputs.shapes)]
        query = " UNION ALL ".join(parts)
        return lambda: connection.sql(query).to_arrow_table()

    return Contender(start, needs=("duckdb",))


DUCKDB_UNION = _duckdb_union(own_table=False)
DUCKDB_UNION_OWN_TABLE = _duckdb_union(own_table=True)


def _start_fan_out(inputs: WindowedEvents) -> Runner:
    """Copy each event to all instances of the one window that hold it."""
    connection = _connected(inputs, own_table=False)
    ((range_s, slide_s),) = inputs.shapes
    slide_us, copies = slide_s * SECOND_US, range_s // slide_s
    query = (
        f'SELECT k, 0 AS "window", (us // {slide_us} - i) * {slide_us} AS window_start, '
        f"MIN(v) AS least FROM events, range({copies}) AS copies(i) "
        f"GROUP BY k, us // {slide_us} - i"
    )
    return lambda: connection.sql(query).to_arrow_table()


DUCKDB_FAN_OUT = Contender(_start_fan_out, needs=("duckdb",))


def limited_polars() -> Any:
    """Load Polars with as many threads as everyone has here."""
    # Polars reads this once, when it is loaded.
    os.environ.setdefault("POLARS_MAX_THREADS", str(THREADS))
    import polars

    return polars


def _start_polars_union(inputs: WindowedEvents) -> Runner:
    pl = limited_polars()
    frame = pl.DataFrame(inputs.table)

    def part(place: int, shape: Shape) -> Any:
        begin = pl.col("ts").dt.truncate(f"{shape[0]}s").alias("window_start")
        least = pl.col("v").min().alias("least")
        made = frame.lazy().group_by("k", begin).agg(least)
        return made.with_columns(pl.lit(place).alias("window"))

    def runner() -> Any:
        parts = [part(place, shape) for place, shape in enumerate(inputs.shapes)]
        return pl.concat(parts).collect(engine="streaming")

    return runner


POLARS_UNION = Contender(_start_polars_union, needs=("polars",))


def _polars_dynamic(*, sorted_by_key: bool) -> Contender:
    def start(inputs: WindowedEvents) -> Runner:
        pl = limited_polars()
        frame = pl.DataFrame(inputs.table)
        if sorted_by_key:
            frame = frame.sort("k", maintain_order=True)
        ((range_s, slide_s),) = inputs.shapes

        def runner() -> Any:
            windows = frame.group_by_dynamic(
                "ts",
                every=f"{slide_s}s",
                period=f"{range_s}s",
                offset=f"{slide_s - range_s}s",  # those that began before the first event
                group_by="k",
                closed="left",
            )
            made = windows.agg(pl.col("v").min().alias("least"))
            return made.rename({"ts": "window_start"}).with_columns(pl.lit(0).alias("window"))

        return runner

    return Contender(start, needs=("polars",))


POLARS_DYNAMIC = _polars_dynamic(sorted_by_key=False)
POLARS_DYNAMIC_SORTED = _polars_dynamic(sorted_by_key=True)
