"""`weft sql`: statements of Spark SQL over tables in files, with the columns that Spark gives."""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import Overwrite, Planner, SqlFile, SqlText, Tables, examples

EXAMPLES = examples(
    "weft sql report.sql --table readings=readings.parquet",
    "weft sql report.sql -t readings=sensors/readings -t devices=devices.csv --output report.csv",
    'weft sql -e "SELECT COUNT(*) FROM readings" -t readings=readings.parquet --notes',
)


def command(
    file: SqlFile = None,
    sql: SqlText = None,
    table: Tables = None,
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
    from weft.cli.inputs import named_frames, statement_text
    from weft.cli.outputs import targets_of
    from weft.cli.screen import say, show_rows, working
    from weft.statement import run_statements
    from weft.tables import refuse_existing, write_table

    text = statement_text(file, sql)
    with working("starting Spark"):
        frames = named_frames(table or [])
    results, told = run_statements(text, frames, planner)
    targets = {} if output is None else targets_of(output, list(results))
    for target in targets.values():
        refuse_existing(target, overwrite=overwrite)
    with results:
        for at, (name, frame) in enumerate(results.items()):
            with working(f"running {name}"):
                rows = frame.toArrow()
            if at:
                say()
            show_rows(rows.slice(0, limit), limit, title=name, rows=rows.num_rows)
            if name in targets:
                say(f"wrote {write_table(rows, targets[name], overwrite=overwrite)}")
    if notes:
        say()
        for note in (*told,) or ("no block groups by a window",):
            say(str(note))
