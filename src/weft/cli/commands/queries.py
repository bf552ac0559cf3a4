"""`weft queries`: queries of a running stream, added and suspended without a restart."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import SqlFile, SqlText, examples

if TYPE_CHECKING:
    from weft.engines.spark.streaming.checkpoint.control import Action
    from weft.engines.spark.streaming.checkpoint.record import Checkpoint

EXAMPLES = examples(
    "weft queries list --checkpoint state",
    "weft queries add more.sql --checkpoint state --sink more",
    "weft queries suspend lows --checkpoint state",
    "weft queries resume lows --checkpoint state",
)
app = typer.Typer(
    name="queries",
    rich_markup_mode=None,
    epilog=EXAMPLES,
    no_args_is_help=True,
    help="Add, suspend, resume and list the queries of a running stream.",
)

CheckpointDir = Annotated[
    str, typer.Option("--checkpoint", "-c", metavar="DIR", help="The checkpoint of the stream.")
]
Patience = Annotated[
    float,
    typer.Option(
        "--wait", metavar="S", min=0, help="Seconds to wait for its answer.", show_default=True
    ),
]
QueryName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the query.")]


@app.command("add")
def add(
    checkpoint: CheckpointDir,
    file: SqlFile = None,
    sql: SqlText = None,
    sink: Annotated[
        str | None,
        typer.Option("--sink", "-o", metavar="PATH", help="Where its rows go; else to the others."),
    ] = None,
    wait: Patience = 60.0,
) -> None:
    """Register a query; say from when its windows are complete."""
    from weft.cli.inputs import statement_text, workload_of
    from weft.cli.screen import say, working
    from weft.engines.spark.streaming.checkpoint.control import Control, described
    from weft.query import Query

    workload = workload_of(file, sql)  # a mistake in the SQL is shown here, with its place
    if not _asked(checkpoint, "add", statement_text(file, sql), sink, wait):
        return
    with working("waiting for the first micro-batch that knows the query"):
        for query in workload:
            if isinstance(query, Query):
                limits = Control(_opened(checkpoint).own).completed(query, wait)
                say("\n".join(described(query, limits)))


@app.command("suspend")
def suspend(name: QueryName, checkpoint: CheckpointDir, wait: Patience = 60.0) -> None:
    """Stop the rows of a query, and free what it alone needs."""
    _asked(checkpoint, "suspend", name, None, wait)


@app.command("resume")
def resume(name: QueryName, checkpoint: CheckpointDir, wait: Patience = 60.0) -> None:
    """Take a suspended query up again."""
    _asked(checkpoint, "resume", name, None, wait)


@app.command("list")
def list_queries(checkpoint: CheckpointDir) -> None:
    """Show the queries, their windows, and from when windows are complete."""
    from weft.cli.screen import say
    from weft.engines.spark.streaming.checkpoint.control import Control, described

    kept = _opened(checkpoint)
    record = kept.read()
    assert record is not None
    limits = Control(kept.own).complete_from()
    queries = {"active": record.plan.queries, "suspended": record.suspended_queries}
    for state, own in queries.items():
        for query in own:
            say(f"{query.name}: {state}")
            for line in described(query, limits):
                say(f"  {line}")


def _opened(checkpoint: str) -> "Checkpoint":
    from weft.engines.spark.streaming.checkpoint.places import Place
    from weft.engines.spark.streaming.checkpoint.record import Checkpoint
    from weft.errors import InputError

    kept = Checkpoint(Place.of(checkpoint))
    if kept.next_batch == 0:
        raise InputError(
            f"no stream has run with the checkpoint {checkpoint}",
            hint="start it with weft stream, and name its checkpoint here",
        )
    return kept


def _asked(checkpoint: str, action: "Action", query: str, sink: str | None, wait: float) -> bool:
    """Leave a request; tell whether the stream has taken it."""
    from weft.cli.screen import say, working
    from weft.engines.spark.streaming.checkpoint.control import Control
    from weft.errors import UnsupportedError
    from weft.plan.body import COLUMNAR

    kept = _opened(checkpoint)
    record = kept.read()
    assert record is not None
    if record.strategy != COLUMNAR:
        raise UnsupportedError(
            f"the stream runs by the {record.strategy} strategy, whose states cannot change",
            hint="start it with --strategy columnar to add queries while it runs",
        )
    where = None if sink is None or "://" in sink else str(Path(sink).expanduser().absolute())
    control = Control(kept.own)
    request = control.ask(action, query, where or sink)
    with working("waiting for the next micro-batch"):
        answer = control.answered(request, wait)
    if answer is None:
        say("left for the stream, which has not answered yet; it does after its next micro-batch")
        return False
    if not answer.ok:
        raise UnsupportedError(answer.error or "refused", hint=answer.hint)
    say(f"done: from micro-batch {answer.from_batch} on")
    return True
