"""Compile, once for all processes of this machine, the kernels that most runs of tables need.

A kernel is compiled when a run first needs it, and kept on disk. `make setup` runs this module, so
that the first run waits for nothing; so may whoever builds an image, or starts Spark executors:

    python -m weft.cli.first_use
"""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from weft import agg
from weft.generate import sensors
from weft.running import aggregate
from weft.window import Window, calendar, hopping, session, tumbling

# Few rows a window, many, and enough for several threads: the engine has kernels for each.
SIZES = (1_000, 100_000, 300_000)
PERIODIC: dict[str, Window] = {
    "20s": tumbling("20 seconds"),
    "1m/10s": hopping("1 minute", "10 seconds"),
}
WINDOWS: tuple[dict[str, Window], ...] = (
    PERIODIC,
    {**PERIODIC, "visit": session("1 minute")},
    {"month": calendar("month")},
)
KEYS: tuple[list[str], ...] = (["device"], ["number"], [])
VALUES = ("temp", "whole")


def readings(rows: int) -> pa.Table:
    """Make readings with a key and a value of integers beside the text and the floats.

    >>> readings(3).schema.names
    ['ts', 'device', 'temp', 'humidity', 'status', 'whole', 'number']
    """
    table = sensors(rows, seed=7, devices=50, rate=50.0)
    whole = pc.round(table["temp"]).cast(pa.int64())
    return table.append_column("whole", whole).append_column("number", whole)


def compile_kernels() -> None:
    """Ask of tables what most users ask: every kernel that this takes is on disk afterwards."""
    calls = (agg.min, agg.max, agg.sum, agg.avg, agg.stddev, agg.count)
    for table, windows, by, value in product(map(readings, SIZES), WINDOWS, KEYS, VALUES):
        aggs = {call.__name__: call(value) for call in calls}
        aggregate(table, time="ts", by=by, windows=windows, aggs=aggs, engine="local")


if __name__ == "__main__":
    compile_kernels()
