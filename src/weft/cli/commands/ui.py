"""`weft ui`: plans, streams, results and runs in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import SqlText, examples

EXAMPLES = examples(
    "weft ui",
    "weft ui features.sql",
    "weft ui --checkpoint state --checkpoint other/state --root features",
    "weft ui --checkpoint state --allow-changes",
    "weft ui --host 0.0.0.0 --name lab.example",
)


def command(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE.sql", help="Statements to show the plan of first.", show_default=False
        ),
    ] = None,
    sql: SqlText = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            "--checkpoint",
            "-c",
            metavar="DIR",
            help="The checkpoint of a stream to look at. Give it once for each stream.",
        ),
    ] = None,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Where files of statements and results may be read; by default this folder.",
        ),
    ] = None,
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes", help="Let the page add, suspend and resume queries of the streams."
        ),
    ] = False,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Listen here.", show_default=True)
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="0 for a free one.", show_default=True
        ),
    ] = 7700,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="A name by which browsers may call this machine, besides its addresses.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Ask everybody for the token in a file. Where others than this machine can reach "
            "the page there is always one: without a file, a new one each time.",
        ),
    ] = None,
) -> None:
    """Show plans, streams, results and runs in the browser.

    Statements are planned, never run, and nothing changes unless --allow-changes says so.
    """
    from weft.cli.inputs import statement_text
    from weft.cli.screen import say
    from weft.errors import require

    for package in ("starlette", "uvicorn"):
        require(package, "ui", "weft ui")
    from weft.ui import Settings
    from weft.ui.server import serve, token_for

    text = "" if file is None and sql is None else statement_text(file, sql)
    settings = Settings(
        roots=tuple(root or [Path()]),
        checkpoints=tuple(checkpoint or ()),
        statements=text,
        allow_changes=allow_changes,
        token=token_for(host, token_file),
        names=tuple(name or ()),
    )
    serve(settings, host, port, say)
