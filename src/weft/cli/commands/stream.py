"""`weft stream`: a workload over streams, until it is stopped."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import Planner, SqlFile, SqlText, Technique, examples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from weft.engines.spark.streaming.progress import ProgressListener
    from weft.query import Workload
    from weft.statement.streams.statements import StatementSink, StreamedStatement

EXAMPLES = examples(
    "weft stream features.sql --source readings=incoming --checkpoint state --sink features "
    "--watermark 10m",
    "weft stream features.sql --source readings=incoming --checkpoint state --sink features "
    "--watermark 10m --once",
    "weft stream -e \"SELECT COUNT(*) AS n FROM ticks GROUP BY window(timestamp, '10 seconds')\" "
    "--source ticks=rate://?rowsPerSecond=100 --checkpoint state --sink counts --watermark 1s "
    "--trigger 5s --json",
)
_POLL_S = 1
_LAST_REPORT_S = 5.0


def command(
    checkpoint: Annotated[
        str,
        typer.Option(
            "--checkpoint", "-c", metavar="DIR", help="Where the state is kept, to go on from."
        ),
    ],
    sink: Annotated[
        str,
        typer.Option(
            "--sink",
            "-o",
            metavar="PLACE",
            help="Write rows of closed windows here, each exactly once: a folder (parquet, with "
            "several queries under query=NAME each), delta://PATH, "
            "iceberg://CATALOG.NAMESPACE.TABLE, jdbc:postgresql://HOST/DB?table=NAME, or "
            "kafka://HOST:PORT/TOPIC.",
        ),
    ],
    file: SqlFile = None,
    sql: SqlText = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            "-s",
            metavar="NAME=PLACE",
            help="A stream that the statements read: a folder of parquet, csv or json files, to "
            "which files are added, kafka://HOST:PORT/TOPIC?format=json&schema=..., or any source "
            "of Spark's as FORMAT://?option=value&... . Give it once for each stream.",
        ),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option("--trigger", metavar="T", help="Time between micro-batches, such as 5s."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take all that is there now, then stop.")
    ] = False,
    watermark: Annotated[
        str | None,
        typer.Option("--watermark", metavar="T", help="How late events may be, such as 10m."),
    ] = None,
    files_per_batch: Annotated[
        int | None,
        typer.Option("--files-per-batch", metavar="N", min=1, help="Most files of one batch."),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="M",
            help="append: a row when its window closes; update: also after each change before.",
        ),
    ] = "append",
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", metavar="S", help="native or columnar; the cheaper by default."),
    ] = None,
    planner: Planner = "auto",
    technique: Technique = None,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="A module to import first, such as one that defines aggregates of your own.",
        ),
    ] = None,
    trust_pickle: Annotated[
        bool,
        typer.Option(
            "--trust-pickle",
            help="Keep partials of your own aggregates as pickles where they are no plain values: "
            "whoever can write into the checkpoint can then run code here.",
        ),
    ] = False,
    pickle_key: Annotated[
        Path | None,
        typer.Option(
            "--pickle-key",
            metavar="FILE",
            help="With --trust-pickle: read only pickles that were signed with the key in a file.",
        ),
    ] = None,
    sink_root: Annotated[
        list[str] | None,
        typer.Option(
            "--sink-root",
            metavar="DIR",
            help="Where queries that are added later may write; by default beside the sink.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the plan and the strategy, and do not start.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Report each micro-batch as a line of JSON.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="[HOST]:PORT",
            help="Serve figures: /metrics as Prometheus text, /progress as lines of JSON.",
        ),
    ] = None,
) -> None:
    """Run queries as one shared plan over streams.

    The source is read once, whatever the number of queries and windows; rows are written when
    their windows close. Stopped with Ctrl-C or killed, the same command goes on where it was.
    """
    import sys
    from contextlib import ExitStack

    import weft
    from weft.cli.inputs import import_all, key_of, places_of, workload_or_statements
    from weft.cli.live_table import LiveTable
    from weft.cli.screen import say, working
    from weft.engines.spark.connectors import with_jars
    from weft.engines.spark.session import local_session
    from weft.engines.spark.streaming.checkpoint.places import Place
    from weft.engines.spark.streaming.checkpoint.record import Checkpoint
    from weft.engines.spark.streaming.metrics import Metrics, MetricsServer
    from weft.engines.spark.streaming.progress import Progress, ProgressListener
    from weft.engines.spark.streaming.sources import connectors_of, open_stream
    from weft.engines.spark.streaming.watermark import watermarked
    from weft.errors import InputError
    from weft.starting import record_for
    from weft.statement import streamed
    from weft.statement.streams.frames import row_statement, start_rows
    from weft.time import duration_us

    if once and trigger is not None:
        raise InputError("--once and --trigger exclude one another", hint="give one of them")
    import_all(imports or [])
    asked = workload_or_statements(file, sql)
    places = places_of(source or [], None if isinstance(asked, str) else asked, "source")
    with working("starting Spark"):
        session = local_session(settings=with_jars(connectors_of([*places.values(), sink])))
        sources = {n: open_stream(session, text, files_per_batch) for n, text in places.items()}
    pause = "once" if once else trigger
    framed = row_statement(asked) if isinstance(asked, str) else None
    if framed is not None:
        _check_framed(mode, strategy, technique)
        statement = framed.text
        if watermark is not None:
            late_us = duration_us(watermark)
            timed = {n: framed.time_of(stream) for n, stream in sources.items()}
            sources = {n: watermarked(s, n, timed[n], late_us) for n, s in sources.items()}
        if explain:
            given: dict[str, Any] = dict(sources)
            say(str(weft.explain(statement, **given)))
            return

        def begin() -> "StreamingQuery":
            return start_rows(statement, sources, sink, checkpoint, pause)
    else:
        sinks: Any = sink
        if isinstance(asked, str):
            workload, sources, statements = streamed(asked, sources, planner)
            sinks = _statement_sinks(sink, statements)
            sink_root = sink_root or _roots(sink)
        else:
            workload = asked
        workload = _with_watermark(workload, watermark)
        if explain:
            kept = Checkpoint(Place.of(checkpoint))
            record = record_for(
                workload, sources, kept, strategy, planner, mode=mode, technique=technique
            )
            say(record.plan.explain())
            return

        def begin() -> "StreamingQuery":
            return weft.start(
                workload,
                sources,
                sinks,
                checkpoint,
                pause,
                strategy,
                mode=mode,
                planner=planner,
                technique=technique,
                trust_pickle=trust_pickle,
                pickle_key=None if pickle_key is None else key_of(pickle_key),
                sink_roots=sink_root,
            )

    figures = Metrics()
    shown = LiveTable(figures) if sys.stdout.isatty() and sys.stderr.isatty() and not json else None

    def report(progress: Progress) -> None:
        figures.take(progress)
        if shown is not None:
            shown.take(progress)
        elif json:
            say(progress.to_json())
        elif progress.rows or progress.late:
            say(progress.line())

    listener = ProgressListener(report)
    session.streams.addListener(listener)
    with ExitStack() as around:
        around.callback(session.streams.removeListener, listener)
        if metrics is not None:
            around.enter_context(MetricsServer(metrics, figures))
        running = begin()
        if shown is not None:
            around.enter_context(shown)
        _until_it_ends(running, listener)
    last = "" if listener.last_batch is None else f" after batch {listener.last_batch}"
    if not json:
        ended = "all that was there is done" if once else f"stopped{last}"
        say(f"{ended}; the same command goes on from the checkpoint {checkpoint}")


def _check_framed(mode: str, strategy: str | None, technique: str | None) -> None:
    """Refuse what says how windows run: a statement with frames has none."""
    from weft.errors import UnsupportedError

    given = {"--mode": mode if mode != "append" else None, "--strategy": strategy}
    for option, value in (given | {"--technique": technique}).items():
        if value is not None:
            raise UnsupportedError(
                f"{option} {value} is of windows, and those of this statement end at events",
                hint=f"leave {option} out",
            )


def _statement_sinks(
    sink: str, statements: "Mapping[str, StreamedStatement]"
) -> "dict[str, StatementSink]":
    from weft.engines.spark.streaming.sinks import as_sink
    from weft.statement.streams.statements import StatementSink

    several = len(statements) > 1
    return {
        name: StatementSink(as_sink(sink), statement, name if several else None)
        for name, statement in statements.items()
    }


def _roots(sink: str) -> list[str]:
    from weft.engines.spark.streaming.sinks import FileSink, as_sink

    made = as_sink(sink)
    return [str(made.place.parent)] if isinstance(made, FileSink) else []


def _with_watermark(workload: "Workload", watermark: str | None) -> "Workload":
    from weft.query import Query, Workload

    if watermark is None:
        return workload
    return Workload(
        q if isinstance(q, Query) and q.watermark_us is not None else q.with_watermark(watermark)
        for q in workload
    )


def _until_it_ends(running: "StreamingQuery", listener: "ProgressListener") -> None:
    """Wait for the stream; stop it when the user says so, and wait for its last report."""
    import signal
    import threading
    from types import FrameType

    stop = threading.Event()

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    # PySpark's own handler would cancel the jobs of the micro-batch at work, and so fail it.
    before = {s: signal.signal(s, ask_to_stop) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not running.awaitTermination(_POLL_S):
            if stop.is_set():
                running.stop()
                break
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    listener.ended.wait(_LAST_REPORT_S)
