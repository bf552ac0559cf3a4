"""`weft demo`: one workload from readings to rows, with and without sharing."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import examples

if TYPE_CHECKING:
    import pyarrow as pa

    from weft import Plan, Workload

EXAMPLES = examples("weft demo", "weft demo --rows 50000 -o /tmp/weft-demo")

DEVICES = 40
RATE = 2.5  # readings per second of all devices: 200,000 of them fill most of a day
SEED = 7
ENGINE = "reference"  # what `weft demo` runs on unless told otherwise
# Engines that are slow on purpose get the readings of one device only.
SAMPLED = frozenset({"reference"})

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
    ] = 200_000,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="E", help="spark, local or reference.", show_default=True),
    ] = ENGINE,
) -> None:
    """Share many windows over sensor readings, and show the gain.

    Makes readings, explains one query over six windows with and without sharing, runs it both
    ways, checks every row against the reference engine, and draws the plan. Takes under a minute.
    """
    from weft import Statistics, optimize, parse
    from weft.cli.screen import say

    readings = _make_readings(output, rows)
    workload = parse(QUERY)
    known = Statistics(rate=RATE, keys=DEVICES)
    alone = optimize(workload, "independent", engine, known)
    shared = optimize(workload, "auto", engine, known)
    _explain(output, alone, shared)
    seconds = _run(output, readings, engine, alone, shared)
    same = _check(readings, engine, workload, shared)
    say()
    say(_gain(alone, shared, seconds))
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
        path = write_table(readings, output / "readings.parquet", overwrite=True)
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
    say()
    say(f"   wrote {drawn}: open it in a browser to see the plan drawn")


def _run(
    output: Path, readings: "pa.Table", engine: str, alone: "Plan", shared: "Plan"
) -> dict[str, float]:
    from weft.cli.screen import say, show_rows, working
    from weft.tables import write_table

    table = _one_device(readings) if engine in SAMPLED else readings
    of_what = f"{table.num_rows:,} readings" + (" (one device)" if engine in SAMPLED else "")
    say()
    say(f"3. Running both plans on the {engine} engine, over {of_what}.")
    with working("running both plans"):
        if engine not in SAMPLED:
            _timed(shared, table, engine)  # the first run pays for starting the engine
        _, alone_s = _timed(alone, table, engine)
        made, shared_s = _timed(shared, table, engine)
    say(f"   without sharing {alone_s:.2f} s, with sharing {shared_s:.2f} s")
    say()
    show_rows(made, 6, title="   features")
    say(f"   wrote {write_table(made, output / 'features.parquet', overwrite=True)}")
    return {"independent": alone_s, "shared": shared_s}


def _check(readings: "pa.Table", engine: str, workload: "Workload", shared: "Plan") -> bool:
    from weft.cli.screen import say, working
    from weft.cli.verify import ORACLE, compare

    sample = _one_device(readings)
    say()
    say(f"4. Checking against the {ORACLE} engine, over {sample.num_rows:,} readings (one device).")
    with working("checking"):
        made, _ = _timed(shared, sample, engine)
        rows, differences = compare(workload, {"readings": sample}, made, engine)
    say(
        "\n".join(f"   different: {d}" for d in differences) or f"   all {rows:,} rows are the same"
    )
    return not differences


def _gain(alone: "Plan", shared: "Plan", seconds: dict[str, float]) -> str:
    modelled = alone.cost / shared.cost
    measured = seconds["independent"] / seconds["shared"]
    return (
        f"The gain of sharing: {modelled:.3g} times less work by the cost model, "
        f"{measured:.3g} times less time as measured here."
    )


def _timed(plan: "Plan", readings: "pa.Table", engine: str) -> tuple[Any, float]:
    from weft import run

    began_s = time.perf_counter()
    made = run(plan, {"readings": readings}, engine=engine)
    return made, time.perf_counter() - began_s


def _one_device(readings: "pa.Table") -> "pa.Table":
    import pyarrow.compute as pc

    return readings.filter(pc.equal(readings["device"], readings["device"][0]))


def _indented(text: str) -> str:
    return "\n".join(f"   {line}".rstrip() for line in text.rstrip("\n").split("\n"))
