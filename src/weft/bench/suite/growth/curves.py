"""How time and memory grow with events, keys, windows, queries and workers.

Every point is a process of its own, whose peak of memory is that of the point alone. Time is that
of the second run, so that nothing is compiled in it. The exponent between two points is 1 where
time grows as the variable does, and 0 where it does not grow.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.bench.frame import Column, Entry, Panel, Row, Sheet, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIB = 1 << 20
_EXECUTOR_MIB = 1024
_TIMEOUT_S = 1800
_SECOND_US = 1_000_000
_WINDOW_S = (10, 15, 30, 60, 300)


class Growth(NamedTuple):
    """What varies, over which values, and what is held meanwhile."""

    varied: str
    full: tuple[int, ...]
    quick: tuple[int, ...]
    held: dict[str, int]
    why: str  # what is to be expected of the line


_LOCAL = {
    "events": Growth(
        "events",
        (100_000, 1_000_000, 10_000_000, 100_000_000),
        (10_000, 100_000),
        {},
        "time grows as the events do; memory is that of the table, which is given, and of results",
    ),
    "keys": Growth(
        "keys",
        (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000),
        (1, 100),
        {"events": 10_000_000},
        "flat while the keys fit the caches, then by rows: more keys are more rows of results",
    ),
    "windows": Growth(
        "windows",
        (1, 10, 100, 1_000, 10_000),
        (1, 10),
        {"events": 1_000_000},
        "by the rows of results",
    ),
    "queries": Growth(
        "queries",
        (1, 10, 100, 1_000),
        (1, 10),
        {"events": 1_000_000},
        "by the rows of results, and planning, which is in the time",
    ),
}
_SPARK = {
    "events": Growth(
        "events",
        (100_000, 1_000_000, 10_000_000, 100_000_000),
        (10_000, 20_000),
        {},
        "what a run takes once, then as the events do",
    ),
    "keys": Growth(
        "keys", (1, 100, 10_000, 1_000_000), (1, 100), {"events": 3_000_000}, "by the rows shuffled"
    ),
    "windows": Growth(
        "windows",
        (1, 10, 100, 1_000, 10_000),
        (1, 5),
        {"events": 1_000_000},
        "by the rows of results, and planning, which is in the time",
    ),
    "queries": Growth(
        "queries",
        (1, 10, 100, 1_000),
        (1, 3),
        {"events": 1_000_000},
        "by the results, each of which is a job of its own, and planning",
    ),
    "workers": Growth(
        "workers",
        (1, 2, 4),
        (1, 2),
        {"events": 10_000_000},
        "processes of one core each: less while there are cores for them",
    ),
    "partitions": Growth(
        "partitions",
        (1, 2, 8, 32, 128),
        (1, 4),
        {"events": 10_000_000},
        "as many tasks after the shuffle, each of which takes its time",
    ),
}
_CORES = 2
_DEFAULTS = {
    "events": 1_000_000,
    "keys": 100,
    "windows": 5,
    "queries": 1,
    "partitions": _CORES,
    "workers": 0,  # none: Spark runs in one process
}


def measure(engine: str, given: dict[str, int]) -> dict[str, float]:
    """Run one point in this process: seconds of a warm run, peak of memory, rows of results."""
    from time import perf_counter

    import pyarrow.compute as pc

    sizes = _DEFAULTS | given
    workload = _workload(sizes["windows"], sizes["queries"])
    run = _local_run(sizes, workload) if engine == "local" else _spark_run(sizes, workload)
    run()
    start = perf_counter()
    results = run()
    seconds = perf_counter() - start
    counted = sum(pc.sum(table["n"]).as_py() for table in results)
    expected = sizes["events"] * sizes["windows"]
    if counted != expected:
        raise AssertionError(f"{counted} events in windows, not {expected}")
    rows = float(sum(table.num_rows for table in results))
    return {"seconds": seconds, "rows": rows, "peak_bytes": float(_peak_bytes())}


def _peak_bytes() -> int:
    """The most memory that this process has had, and that of Spark's, which comes from it."""
    from weft.engines.measures import peak_resident_bytes

    return (peak_resident_bytes() or 0) + sum(
        int(told["VmHWM"].split()[0]) * 1024 for told in _children(os.getpid()) if "VmHWM" in told
    )


def _children(parent: int) -> Iterator[dict[str, str]]:
    """Yield what Linux tells of the processes that come from one, directly or not."""
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    for child in listed.read_text().split() if listed.exists() else ():
        with suppress(OSError):  # it has ended since
            lines = Path(f"/proc/{child}/status").read_text().splitlines()
            yield dict(line.split(":", 1) for line in lines if ":" in line)
        yield from _children(int(child))


def _workload(windows: int, queries: int) -> Any:
    import weft

    each = -(-windows // queries)
    longer = range(_WINDOW_S[-1] + 1, _WINDOW_S[-1] + 1 + windows)
    ranges_s = [*_WINDOW_S, *longer][:windows]
    made = []
    for number in range(queries):
        own = ranges_s[number * each : (number + 1) * each]
        made.append(
            weft.Query(
                f"q{number}",
                source="events",
                time="ts",
                keys=["k"],
                windows={f"{s}s": weft.tumbling(s * _SECOND_US) for s in own},
                aggs={"n": weft.agg.count(), "lo": weft.agg.min("v"), "mean": weft.agg.avg("v")},
            )
        )
    return weft.Workload(made)


def _local_run(sizes: dict[str, int], workload: Any) -> Any:
    import weft
    from weft.bench.suite.local.inputs import draw_events

    table = draw_events(sizes["events"], sizes["keys"])

    def run() -> list[Any]:
        found = weft.run(workload, {"events": table}, engine="local")
        return list(found.values()) if isinstance(found, dict) else [found]

    return run


def _spark_run(sizes: dict[str, int], workload: Any) -> Any:
    import atexit
    import shutil
    import tempfile

    import pyspark
    from pyspark.sql import functions as F

    import weft
    from weft.bench.suite.local.inputs import draw_events
    from weft.engines.spark.session import local_session
    from weft.tables import write_table

    folder = tempfile.mkdtemp(prefix="weft-growth-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = {"spark.sql.shuffle.partitions": str(sizes["partitions"])}
    if workers := sizes["workers"]:
        # Spark's cluster on one machine has processes as executors, whose logs it keeps at home.
        for part in ("bin", "jars"):
            os.symlink(Path(pyspark.__file__).parent / part, Path(folder, part))
        os.environ["SPARK_HOME"] = folder
        settings["spark.master"] = f"local-cluster[{workers},1,{_EXECUTOR_MIB}]"
        settings["spark.executor.memory"] = f"{_EXECUTOR_MIB}m"
    session = local_session(_CORES, settings)
    given, kept = (f"{folder}/{name}" for name in ("events.parquet", "events"))
    write_table(draw_events(sizes["events"], sizes["keys"]), given)
    # Several files, as data of any size have: one would be read by one task.
    session.read.parquet(given).repartitionByRange(8, "ts").write.parquet(kept)
    events = session.read.parquet(kept)

    def run() -> list[Any]:
        found = weft.run(workload, {"events": events})
        frames = list(found.values()) if isinstance(found, dict) else [found]
        # Only what is needed for the check leaves Spark.
        return [frame.groupBy("window").agg(F.sum("n").alias("n")).toArrow() for frame in frames]

    return run


def _point(engine: str, given: dict[str, int]) -> dict[str, float]:
    asked = f"measure({engine!r}, {given!r})"
    code = f"import json; from {__name__} import measure; print(json.dumps({asked}))"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=_TIMEOUT_S
    )
    if child.returncode:
        raise RuntimeError(child.stderr.strip().splitlines()[-1])
    told: dict[str, float] = json.loads(child.stdout.splitlines()[-1])
    return told


def _sheet(engine: str, growth: Growth, quick: bool) -> Sheet:
    rows: list[Row] = []
    wrong: list[str] = []
    before: tuple[int, float] | None = None
    for value in growth.quick if quick else growth.full:
        held = {} if quick else growth.held
        given = {**held, growth.varied: value}
        if growth.varied == "queries":
            given["windows"] = value
        try:
            told = _point(engine, given)
        except RuntimeError as error:
            wrong.append(f"{growth.varied} {value}: {error}")
            break
        exponent = None
        if before is not None:
            exponent = log(told["seconds"] / before[1]) / log(value / before[0])
        before = value, told["seconds"]
        rows.append(
            {
                growth.varied: value,
                "seconds": told["seconds"],
                "exponent": exponent,
                "peak MiB": told["peak_bytes"] / _MIB,
                "rows": int(told["rows"]),
            }
        )
    return Sheet(tuple(rows), tuple(wrong), _panels(growth.varied, rows), (growth.why,))


def _panels(varied: str, rows: list[Row]) -> tuple[Panel, ...]:
    def line(column: str) -> Any:
        return tuple(tuple(row[name] for row in rows) for name in (varied, column))

    return (
        Panel(
            "time of a run", varied, "seconds", {"weft": line("seconds")}, log_x=True, log_y=True
        ),
        Panel("peak of memory", varied, "MiB", {"weft": line("peak MiB")}, log_x=True, log_y=True),
    )


def _table(engine: str, name: str, growth: Growth) -> Table:
    return Table(
        name=f"growth/{engine}_{name}",
        question=f"How do time and memory grow with {name} "
        f"{'on the local engine' if engine == 'local' else 'on Spark'}?",
        columns=(
            Column(growth.varied, ",d"),
            Column("seconds", ".3g"),
            Column("exponent", ".2f"),
            Column("peak MiB", ",.0f"),
            Column("rows", ",d"),
        ),
        compute=lambda quick: _sheet(engine, growth, quick),
        needs=("pyspark",) if engine == "spark" else (),
    )


ENTRIES: tuple[Entry, ...] = (
    *(_table("local", name, growth) for name, growth in _LOCAL.items()),
    *(_table("spark", name, growth) for name, growth in _SPARK.items()),
)
