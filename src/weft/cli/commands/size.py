"""`weft size`: what a workload needs of a cluster, before there is one."""

from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import Events, Keys, Rate, SqlFile, SqlText, Strategy, examples

if TYPE_CHECKING:
    from weft.cost.sizes import Amount, Size

EXAMPLES = examples(
    "weft size features.sql --rate 50000 --keys 200000 --for '1 day' --executors 8",
    "weft size features.sql --rate 1e6 --keys 100000000 --trigger '1 minute' --watermark "
    "'10 minutes' --executors 64",
)
_BATCH_SPAN = "1 day"


def command(
    file: SqlFile = None,
    sql: SqlText = None,
    rate: Rate = None,
    keys: Keys = None,
    events: Events = None,
    key_bytes: Annotated[
        float | None,
        typer.Option("--key-bytes", metavar="B", min=1, help="Bytes of all keys of an event."),
    ] = None,
    lasts: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="D", help=f"How long the events of a batch last; {_BATCH_SPAN}."
        ),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            "--trigger", metavar="D", help="Size a stream whose micro-batches have events of D."
        ),
    ] = None,
    watermark: Annotated[
        str, typer.Option("--watermark", metavar="D", help="How late events of a stream may be.")
    ] = "0 seconds",
    executors: Annotated[
        int, typer.Option("--executors", metavar="N", min=1, help="Executors.", show_default=True)
    ] = 2,
    executor_cores: Annotated[
        int,
        typer.Option(
            "--executor-cores", metavar="C", min=1, help="Cores of each.", show_default=True
        ),
    ] = 4,
    strategy: Strategy = None,
) -> None:
    """Predict scans, shuffled bytes, state and memory on Spark, without running anything."""
    from dataclasses import replace

    from weft import optimize
    from weft.cli.inputs import statistics_of, workload_of
    from weft.cli.screen import say
    from weft.cost.sizes import Pace, bytes_text, size_of
    from weft.statistics import Statistics
    from weft.time import duration_us

    workload = workload_of(file, sql)
    cores = executors * executor_cores
    known = statistics_of(rate, keys, events) or Statistics()
    if known.events is None and trigger is None:
        known = replace(known, duration=lasts or _BATCH_SPAN)
    known = replace(known, key_bytes=key_bytes, cores=cores)
    pace = None
    if trigger is not None:
        pace = Pace(float(duration_us(watermark)), float(duration_us(trigger)))
    plan = optimize(
        workload, engine="spark", statistics=known, strategy=strategy, micro_batch=trigger
    )
    size = size_of(plan, known, known.lasts_us(), cores, pace)
    of = "batch" if pace is None else f"stream, each micro-batch of {trigger}"
    say(f"{of}: {known}; planner {plan.planner}, {_strategy(size)}")
    _show(size)
    heap, beside = size.executor_bytes(executors, executor_cores)
    say(f"spark.sql.shuffle.partitions      {size.partitions(cores)}")
    say(f"spark.executor.memory             {bytes_text(heap)}")
    if beside:
        say(f"spark.executor.pyspark.memory     {bytes_text(beside)}")
    if pace is not None and not size.columnar:
        say("native state is in the heap of executors; RocksDB as the state store keeps it on disk")
    for kind in size.growing:
        say(f"not in these figures: {kind} keeps what it has seen, and has no bound but the events")


def _show(size: "Size") -> None:
    from rich.table import Table

    from weft.cli.screen import show

    table = Table("", "rows", "bytes", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    scans = "once" if size.scans == 1 else f"{size.scans} times"
    table.add_row(f"events, read {scans}", f"{size.events:,.0f}", "")
    _add(table, "moved: ", size.moved, size.moved_bytes)
    _add(table, "kept: ", size.kept, size.kept_bytes)
    table.add_row("results", f"{size.result_rows:,.0f}", "")
    show(table)


def _add(table: object, words: str, amounts: "tuple[Amount, ...]", total: float) -> None:
    from rich.table import Table

    from weft.cost.sizes import bytes_text

    assert isinstance(table, Table)
    for amount in amounts:
        table.add_row(f"{words}{amount.what}", f"{amount.rows:,.0f}", bytes_text(amount.bytes))
    if len(amounts) > 1:
        rows = sum(amount.rows for amount in amounts)
        table.add_row(f"{words}in all", f"{rows:,.0f}", bytes_text(total))


def _strategy(size: "Size") -> str:
    return "columnar" if size.columnar else "native"
