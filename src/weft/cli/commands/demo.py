"""`weft demo`: one workload from readings to rows, with and without sharing."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import examples

if TYPE_CHECKING:
    import pyarrow as pa

    from weft import Plan, Workload

EXAMPLES = examples("weft demo", "weft demo --engine local --rows 50000 -o /tmp/weft-demo")

DEVICES = 40
KEY_BYTES = 11.0  # as in device-0017
RATE = 12.5  # readings per second of all devices: a million of them fill most of a day
SEED = 7
# Engines that are slow on purpose get the readings of one device only.
SAMPLED = frozenset({"reference"})
WARM_UP_ROWS = 20_000
TIMES = 3
READINGS = "readings.parquet"

QUERY = """\
-- name: features
SELECT device, System.Window().Id,
       MIN(temp) AS lo, MAX(temp) AS hi, AVG(temp) AS mean, COUNT(*) AS n
FROM readings TIMESTAMP BY ts
GROUP BY device, Windows(
    Window('10m', TumblingWindow(minute, 10)),
    Window('20m', TumblingWindow(minute, 20)),
    Window('30m', TumblingWindow(minute, 30)),
    Window('1h', TumblingWindow(hour, 1)),
    Window('1h/10m', HoppingWindow(minute, 60, 10)),
    Window('2h/10m', HoppingWindow(minute, 120, 10)))
"""


def command(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="The folder for what the demo writes; its own older files are replaced.",
            show_default=True,
        ),
    ] = Path("demo-output"),
    rows: Annotated[
        int,
        typer.Option("--rows", "-n", metavar="N", min=1, help="Readings.", show_default=True),
    ] = 1_000_000,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="E", help="spark, local or reference.", show_default=True),
    ] = "spark",
) -> None:
    """Share many windows over sensor readings, and show the gain.

    Makes readings, explains one query over six windows with and without sharing, runs it both
    ways, checks that the rows are the same, and draws the plan. Takes a minute or two.
    """
    from weft import Statistics, optimize, parse
    from weft.cli.screen import say, working

    if engine == "spark":
        from weft.engines.spark.session import local_session

        with working("starting Spark"):
            local_session()  # says at once if it cannot
    readings = _make_readings(output, rows)
    workload = parse(QUERY)
    known = Statistics(rate=RATE, keys=DEVICES, events=rows, key_bytes=KEY_BYTES)
    alone = optimize(workload, "independent", engine, known)
    shared = optimize(workload, "auto", engine, known)
    _explain(output, alone, shared)
    runs = _runs_on(engine, output, readings, alone, shared)
    _run(output, runs)
    same = _check_stock(runs) if engine == "spark" else _check(readings, engine, workload, shared)
    say()
    say(_gain(alone, shared, runs))
    say(f"wrote {_drawn_gain(output, engine, rows, runs)}")
    if not same:
        from weft.cli.status import NO

        raise typer.Exit(NO)


def _make_readings(output: Path, rows: int) -> "pa.Table":
    from weft.cli.screen import say, working
    from weft.generate import sensors
    from weft.tables import write_table

    say(f"1. Making {rows:,} readings of {DEVICES} devices, the same every time.")
    with working("making readings"):
        readings = sensors(rows, SEED, devices=DEVICES, rate=RATE)
        path = write_table(readings, output / READINGS, overwrite=True)
    say(f"   wrote {path}")
    return readings


def _explain(output: Path, alone: "Plan", shared: "Plan") -> None:
    from weft.cli.screen import say

    query = output / "features.sql"
    query.write_text(QUERY, encoding="utf-8")
    say()
    say(f"2. One query asks for six windows of every device ({query}):")
    say()
    say(_indented(QUERY))
    say()
    say("   Each window computed from the readings, as engines do without weft:")
    say()
    say(_indented(alone.explain()))
    say()
    say(f"   The plan that weft chooses ({shared.planner}):")
    say()
    say(_indented(shared.explain()))
    drawn = output / "plan.html"
    drawn.write_text(shared.explain("html"), encoding="utf-8")
    (output / "plan.svg").write_text(shared.explain("svg"), encoding="utf-8")
    say()
    say(f"   wrote {drawn}: open it in a browser to see the plan drawn")


@dataclass(slots=True)
class _Runs:
    """The query with and without sharing: how each is run, and what came of it."""

    of_what: str
    without: Callable[[], Any]
    sharing: Callable[[], Any]
    rows_without: Any = None
    rows: Any = None
    seconds_without: float = 0.0
    seconds: float = 0.0

    def run(self) -> None:
        """Run both in turns: one run alone may meet what else a machine does."""
        without, sharing = [], []
        for _ in range(TIMES):
            self.rows_without, seconds = _timed(self.without)
            without.append(seconds)
            self.rows, seconds = _timed(self.sharing)
            sharing.append(seconds)
        self.seconds_without, self.seconds = median(without), median(sharing)


def _runs_on(
    engine: str, output: Path, readings: "pa.Table", alone: "Plan", shared: "Plan"
) -> _Runs:
    from weft import run

    if engine == "spark":
        return _runs_on_spark(output, readings, shared)
    table = _one_device(readings) if engine in SAMPLED else readings
    only = " (one device)" if engine in SAMPLED else ""
    what = f"both plans on the {engine} engine, over {table.num_rows:,} readings{only}"
    tables = {"readings": table}
    run(shared, {"readings": table.slice(0, WARM_UP_ROWS)}, engine=engine)
    return _Runs(
        what,
        lambda: run(alone, tables, engine=engine),
        lambda: run(shared, tables, engine=engine),
    )


def _runs_on_spark(output: Path, readings: "pa.Table", shared: "Plan") -> _Runs:
    """Against what Spark does without weft: an aggregation for each window, all unioned."""
    from weft import run
    from weft.engines.spark.session import current_session
    from weft.engines.spark.stock import stock

    frame = current_session().read.parquet(str((output / READINGS).absolute()))
    (query,) = shared.queries
    few = frame.limit(WARM_UP_ROWS)
    # The first run of each pays for classes that Java loads.
    for rows in (stock(query, few), run(shared, {"readings": few})):
        rows.toArrow()
    return _Runs(
        f"on Spark, over {readings.num_rows:,} readings: a window() aggregation for each of the "
        "six windows, all unioned,\n   against the plan above",
        lambda: stock(query, frame).toArrow(),
        lambda: run(shared, {"readings": frame}).toArrow(),
    )


def _run(output: Path, runs: _Runs) -> None:
    from weft.cli.screen import say, show_rows, working
    from weft.tables import write_table

    say()
    say(f"3. Running {runs.of_what}.")
    with working("running with and without sharing"):
        runs.run()
    say(
        f"   without sharing {runs.seconds_without:.2f} s, with sharing {runs.seconds:.2f} s: "
        f"the middle one of {TIMES} runs each"
    )
    say()
    rows = runs.rows.sort_by([(name, "ascending") for name in ("window_end", "window", "device")])
    show_rows(rows, 6, title="   features")
    say(f"   wrote {write_table(rows, output / 'features.parquet', overwrite=True)}")


def _check_stock(runs: _Runs) -> bool:
    from weft import Query, parse
    from weft.cli.screen import say
    from weft.compare import first_difference

    say()
    say("4. Checking every row against stock Spark's.")
    (query,) = parse(QUERY).queries
    assert isinstance(query, Query)
    difference = first_difference(query, runs.rows, runs.rows_without, "weft")
    if difference is not None:
        say(f"   different: {difference}")
        return False
    say(f"   all {runs.rows.num_rows:,} rows are the same")
    return True


def _check(readings: "pa.Table", engine: str, workload: "Workload", shared: "Plan") -> bool:
    from weft import run
    from weft.cli.commands.verify import ORACLE, compare
    from weft.cli.screen import say, working

    sample = _one_device(readings)
    say()
    say(f"4. Checking against the {ORACLE} engine, over {sample.num_rows:,} readings (one device).")
    with working("checking"):
        made = run(shared, {"readings": sample}, engine=engine)
        rows, differences = compare(workload, {"readings": sample}, made, engine)
    say(
        "\n".join(f"   different: {d}" for d in differences) or f"   all {rows:,} rows are the same"
    )
    return not differences


def _gain(alone: "Plan", shared: "Plan", runs: _Runs) -> str:
    from weft.plan.body import STOCK

    costs = {candidate.planner: candidate.cost for candidate in shared.candidates}
    promised = costs.get(STOCK, alone.cost) / shared.cost
    measured = runs.seconds_without / runs.seconds
    return (
        f"The gain of sharing: {promised:.3g} times less time as the cost model expects, "
        f"{measured:.3g} times less as measured here."
    )


def _drawn_gain(output: Path, engine: str, rows: int, runs: _Runs) -> Path:
    from weft.cli.gain_picture import gain_picture

    without = "six window() aggregations" if engine == "spark" else "six windows, one by one"
    times = [(without, runs.seconds_without), ("one shared plan", runs.seconds)]
    path = output / "gain.svg"
    note = f"six windows over {rows:,} readings on {engine}, {TIMES} runs each (make demo)"
    path.write_text(gain_picture(times, note), encoding="utf-8")
    return path


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began_s = time.perf_counter()
    made = work()
    return made, time.perf_counter() - began_s


def _one_device(readings: "pa.Table") -> "pa.Table":
    import pyarrow.compute as pc

    return readings.filter(pc.equal(readings["device"], readings["device"][0]))


def _indented(text: str) -> str:
    return "\n".join(f"   {line}".rstrip() for line in text.rstrip("\n").split("\n"))
