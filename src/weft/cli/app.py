"""All commands of `weft`, put together.

A command's module loads typer alone; what a command needs beyond that it imports when it runs, so
that `weft --help` and `weft explain` start quickly.
"""

from typing import Annotated

import typer

from weft.cli.commands import (
    bench,
    calibrate,
    demo,
    explain,
    generate,
    queries,
    run,
    size,
    soak,
    sql,
    store,
    stream,
    ui,
    verify,
)
from weft.cli.options import examples
from weft.cli.status import Commands

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

app = typer.Typer(
    name="weft",
    cls=Commands,
    rich_markup_mode=None,  # brackets in examples are SQL, not markup
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=SETTINGS,
    epilog=examples("weft demo", "weft COMMAND --help    (ends with examples of its own)"),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from weft import __version__

        typer.echo(f"weft {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def weft(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Many window-aggregate queries, one shared plan, for about the price of one window."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("explain", epilog=explain.EXAMPLES)(explain.command)
app.command("size", epilog=size.EXAMPLES)(size.command)
app.command("run", epilog=run.EXAMPLES)(run.command)
app.command("sql", epilog=sql.EXAMPLES)(sql.command)
app.command("stream", epilog=stream.EXAMPLES)(stream.command)
app.add_typer(queries.app)
app.add_typer(store.app)
app.command("ui", epilog=ui.EXAMPLES)(ui.command)
app.command("verify", epilog=verify.EXAMPLES)(verify.command)
app.command("soak", epilog=soak.EXAMPLES)(soak.command)
app.command("generate", epilog=generate.EXAMPLES)(generate.command)
app.command("bench", epilog=bench.EXAMPLES)(bench.command)
app.command("calibrate", epilog=calibrate.EXAMPLES)(calibrate.command)
app.command("demo", epilog=demo.EXAMPLES)(demo.command)
