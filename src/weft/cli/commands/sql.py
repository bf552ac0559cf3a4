"""`weft sql`: statements of Spark SQL over tables in files, with the columns that Spark gives."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import Overwrite, Planner, SqlFile, SqlText, Tables, examples
from weft.errors import InputError

if TYPE_CHECKING:
    from weft.statement.notes import Note, OverNote

    Answers = tuple[Mapping[str, Any], tuple[Note | OverNote, ...]]

EXAMPLES = examples(
    "weft sql report.sql --table readings=readings.parquet",
    "weft sql report.sql -t readings=sensors/readings -t devices=devices.csv --output report.csv",
    "weft sql report.sql -t readings=readings.parquet --engine local",
    'weft sql -e "SELECT COUNT(*) FROM readings" -t readings=readings.parquet --notes',
)


def command(
    file: SqlFile = None,
    sql: SqlText = None,
    table: Tables = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Who runs the statements: spark, or local, in this process without Spark.",
        ),
    ] = "spark",
    planner: Planner = "auto",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write all rows: to a .parquet, .csv or .json file (with several statements to "
            "PATH-name.ext each), or to a folder, as name.parquet for each statement.",
        ),
    ] = None,
    notes: Annotated[
        bool,
        typer.Option("--notes", help="Also say which blocks of the statements were shared."),
    ] = False,
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", metavar="N", min=0, help="Rows to show.", show_default=True),
    ] = 10,
    overwrite: Overwrite = False,
) -> None:
    """Run any Spark SQL as it is, windows shared.

    Names, order and types of the columns are those that Spark gives.
    """
    from weft.cli.commands.run import progress_of_engine
    from weft.cli.inputs import statement_text
    from weft.cli.outputs import targets_of
    from weft.cli.screen import say, show_rows, working
    from weft.frames import to_arrow
    from weft.tables import refuse_existing, write_table

    text = statement_text(file, sql)
    run = {"spark": _on_spark, "local": _in_process}.get(engine)
    if run is None:
        raise InputError(f"no engine is named {engine!r}", hint="use spark or local")
    results, told = run(text, table or [], planner)
    targets = {} if output is None else targets_of(output, list(results))
    for target in targets.values():
        refuse_existing(target, overwrite=overwrite)
    with results if isinstance(results, AbstractContextManager) else nullcontext():
        for at, (name, frame) in enumerate(results.items()):
            with working(f"running {name}", *progress_of_engine(engine)):
                rows = to_arrow(frame)
            if at:
                say()
            show_rows(rows.slice(0, limit), limit, title=name, rows=rows.num_rows)
            if name in targets:
                say(f"wrote {write_table(rows, targets[name], overwrite=overwrite)}")
    if notes:
        say()
        for note in (*told,) or ("no block groups by a window",):
            say(str(note))


def _on_spark(text: str, given: Sequence[str], planner: str) -> "Answers":
    from weft.cli.inputs import named_frames
    from weft.cli.screen import working
    from weft.statement import run_statements
    from weft.statement.door import sliding_over

    with working("starting Spark"):
        frames = named_frames(given)
    sliding = sliding_over(text, frames)
    return run_statements(text, frames, planner) if sliding is None else _alone(sliding.results())


def _in_process(text: str, given: Sequence[str], planner: str) -> "Answers":
    from weft.cli.inputs import named_tables
    from weft.cli.screen import working
    from weft.features.anchored_sql import run_anchored
    from weft.parsing.anchored import SlidingStatement
    from weft.statement import run_in_process
    from weft.statement.door import anchored_of

    with working("running in this process"):
        tables, asked = named_tables(given), anchored_of(text)
        if isinstance(asked, SlidingStatement):
            return _alone(run_anchored(asked, tables, "local"))
        return run_in_process(text, tables, planner)


def _alone(rows: Any) -> "Answers":
    """Name the rows of a statement that shares with no other."""
    return {"q1": rows}, ()
