"""`weft run`: the rows of a workload over tables in files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.commands.verify import compare, conclude
from weft.cli.options import (
    Events,
    Keys,
    Overwrite,
    Planner,
    Rate,
    SqlFile,
    SqlText,
    Strategy,
    Tables,
    Technique,
    examples,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft import Workload
    from weft.engines.measures import Measures

EXAMPLES = examples(
    "weft run features.sql --table readings=readings.parquet",
    "weft run features.sql --table readings=sensors/readings --output features.parquet",
    "weft run features.sql --table readings=readings.csv --engine reference --verify --limit 3",
    "weft run features.sql --table readings=readings.parquet --stats --rate 1000 --keys 50",
    'weft run -e "SELECT device, MIN(temp) AS lo FROM readings GROUP BY device, '
    "window(ts, '20 minutes')\" -t readings=readings.parquet",
)


def command(
    file: SqlFile = None,
    sql: SqlText = None,
    table: Tables = None,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="E", help="spark, local or reference.", show_default=True),
    ] = "spark",
    planner: Planner = "auto",
    strategy: Strategy = None,
    technique: Technique = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write all rows: to a .parquet, .csv or .json file (with several queries to "
            "PATH-name.ext each), or to a folder, as name.parquet for each query.",
        ),
    ] = None,
    stats: Annotated[
        bool,
        typer.Option(
            "--stats",
            help="Also print the rows of every node of the plan, as expected and as counted, "
            "and the time, memory and combines of the run.",
        ),
    ] = False,
    rate: Rate = None,
    keys: Keys = None,
    events: Events = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Also run the reference engine, and compare every row."),
    ] = False,
    chart: Annotated[
        bool,
        typer.Option("--chart", help="Also draw the windows of each query over time, as text."),
    ] = False,
    chart_to: Annotated[
        Path | None,
        typer.Option(
            "--chart-to",
            metavar="FILE",
            help="Draw them into a .svg, .png or .pdf file (with several queries FILE-name.ext).",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", metavar="N", min=0, help="Rows to show.", show_default=True),
    ] = 10,
    overwrite: Overwrite = False,
) -> None:
    """Run queries as one shared plan over tables in files.

    Shows the first rows of each query, and writes all of them where --output says.
    """
    from weft.cli.inputs import statistics_of, workload_of
    from weft.cli.outputs import targets_of
    from weft.cli.results import results_of
    from weft.cli.screen import say, show_rows, working
    from weft.cli.stats import show_measures
    from weft.frames import to_arrow
    from weft.tables import refuse_existing, write_table

    workload = workload_of(file, sql)
    statistics = statistics_of(rate, keys, events)
    names = [query.name for query in workload]
    targets = {} if output is None else targets_of(output, names)
    for target in targets.values():
        refuse_existing(target, overwrite=overwrite)
    tables = _tables(table or [], workload, engine)
    with working(
        f"running {len(names)} quer{'y' if len(names) == 1 else 'ies'}", *progress_of_engine(engine)
    ):
        options = {"planner": planner, "statistics": statistics, "strategy": strategy}
        asked = {**options, "technique": technique, "engine": engine}
        made, measures = _run(workload, tables, stats, **asked)
        all_rows = bool(targets) or verify or chart or chart_to is not None
        results = results_of(made, workload, limit, whole=all_rows)
    for at, (name, result) in enumerate(results.items()):
        if at:
            say()
        show_rows(result.first, limit, title=name, rows=result.rows)
        if result.whole is not None and name in targets:
            say(f"wrote {write_table(result.whole, targets[name], overwrite=overwrite)}")
    if chart or chart_to is not None:
        _draw(workload, {n: r.whole for n, r in results.items()}, chart, chart_to)
    if measures is not None:
        from weft.calibration.past_runs import remember

        say()
        show_measures(measures)
        remember(measures)
    if verify:
        with working("running the reference engine to compare"):
            whole = [result.whole for result in results.values()]
            rows = whole[0] if len(whole) == 1 else dict(zip(results, whole, strict=True))
            arrow = {name: to_arrow(table) for name, table in tables.items()}
            count, differences = compare(workload, arrow, rows, "this run")
        conclude(f"{count:,} rows on the reference engine and in this run", differences)


def _draw(
    workload: "Workload", results: "Mapping[str, Any]", as_text: bool, file: Path | None
) -> None:
    from weft.cli.chart import draw_to, drawn_as_text
    from weft.cli.screen import say

    for query in workload:
        if as_text:
            say(f"\n{drawn_as_text(query, results[query.name])}")
        if file is not None:
            several = len(workload) > 1
            own = file.with_stem(f"{file.stem}-{query.name}") if several else file
            draw_to(own, query, results[query.name])
            say(f"drew {own}")


def _tables(given: "Sequence[str]", workload: "Workload", engine: str) -> "dict[str, Any]":
    from weft.cli.inputs import frames_of, tables_of
    from weft.cli.screen import working

    if engine != "spark":
        with working("reading the tables"):
            return dict(tables_of(given, workload))
    with working("starting Spark"):
        return dict(frames_of(given, workload))


def progress_of_engine(engine: str) -> "tuple[Callable[[], str], Callable[[], float | None]]":
    """Return what tells how far an engine is: in words, and as the part that is done."""
    from weft.cli.screen import unknown

    if engine != "spark":
        return str, unknown
    from weft.engines.spark.progress import progress_of, share_of
    from weft.engines.spark.session import current_session

    session = current_session()
    return lambda: progress_of(session), lambda: share_of(session)


def _run(
    workload: "Workload", tables: "Mapping[str, Any]", stats: bool, **options: Any
) -> "tuple[Mapping[str, Any], Measures | None]":
    """Run as `weft.run` does, and say what it took if that is wanted."""
    from weft.running import run, run_measured

    if stats:
        return run_measured(workload, tables, **options)
    made = run(workload, tables, **options)
    return ({workload.queries[0].name: made} if len(workload) == 1 else made), None
