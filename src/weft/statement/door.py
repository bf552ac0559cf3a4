"""The front door: `weft.sql`, where `spark.sql` was."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from weft.errors import QueryError, UnsupportedError, require
from weft.running import engine_for, family_of, run, tables_for
from weft.statement.placeholders import with_named_parameters, with_plain_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from weft.engines.spark.shared_rows import SharedResults
    from weft.parsing.anchored import OverStatement, SlidingStatement
    from weft.query import Workload
    from weft.statement.notes import Note, OverNote
    from weft.statement.placeholders import Arguments
    from weft.statement.shared import Statements
    from weft.statement.spark import SparkHost
    from weft.statement.spark.sliding import SlidingRows
    from weft.statement.streams.statements import StreamedStatement

# Windows that Spark has no function for: who writes them speaks to weft.
_OWN_WORDS = ("TIMESTAMP BY", "WINDOWS (", "WINDOW ( )", "[ RANGE", "[ ROWS", "[ UNTIL")
_OWN_WINDOWS = ("TUMBLING", "HOPPING", "SESSION", "COUNTING", "CUMULATING", "CALENDAR")
_LOG = logging.getLogger("weft")


def sql(
    sql_text: str,
    engine: str | None = None,
    planner: str = "auto",
    *,
    args: Arguments | None = None,
    **tables: Any,
) -> Any:
    """Run SQL over tables given by name: one statement gives a table, several a mapping.

    Any statement of Spark SQL gives what `spark.sql` gives, to the column; blocks of it that group
    by windows over the same events run as one shared plan. Without tables, names are those of the
    Spark session's catalog and views. Over tables of other libraries no Spark is needed: DuckDB
    runs what stands around the blocks, and what it would not answer as Spark does is refused. What
    became of each block is in `weft_notes` of the DataFrame, is logged under "weft" at level INFO,
    and told by `weft.explain`. `args` are parameters of the text, as `spark.sql` takes them, and a
    table may stand in braces, as there.

        weft.sql("SELECT device, window.start, AVG(temp) FROM readings "
                 "GROUP BY device, window(ts, '1 hour', '5 minutes')", readings=df)
    """
    from weft.features.anchored_sql import run_anchored
    from weft.frames import from_arrow, kind_of, to_arrow
    from weft.parsing.anchored import anchored_statement

    chosen = engine_for(tables, engine or (None if tables else "spark"))
    sql_text = with_plain_names(sql_text, tables)
    if family_of(chosen) != "spark":
        refuse_parameters(args)
        sparks = chosen.name == "local" and not speaks_to_weft(sql_text)
        anchored = anchored_of(sql_text) if sparks else anchored_statement(sql_text)
        if anchored is not None:
            return run_anchored(anchored, tables, chosen.name)
        if sparks:
            return _in_process(sql_text, tables_for(chosen, tables), tables, planner)
        return _as_workload(sql_text, tables, engine, planner)
    frames = tables_for(chosen, tables)
    sliding = sliding_over(sql_text, frames, args)
    if sliding is not None:
        found = sliding.results()
        kind = kind_of(next(iter(tables.values()))) if tables else "spark"
        return found if kind == "spark" else from_arrow(to_arrow(found), kind)
    if any(frame.isStreaming for frame in frames.values()) and is_workload(sql_text):
        return _as_workload(sql_text, tables, engine, planner)
    try:
        results, notes = run_statements(sql_text, frames, planner, args)
    except SparkRefusal:
        if not is_workload(sql_text):
            raise
        return _as_workload(sql_text, tables, engine, planner)
    for note in notes:
        _LOG.info("%s", note)
    kind = kind_of(next(iter(tables.values()))) if tables else "spark"
    if kind != "spark":
        whole = {name: from_arrow(to_arrow(frame), kind) for name, frame in results.items()}
        return next(iter(whole.values())) if len(whole) == 1 else whole
    return next(iter(results.values())) if len(results) == 1 else results


def _in_process(
    text: str, own: Mapping[str, pa.Table], tables: Mapping[str, Any], planner: str
) -> Any:
    from weft.frames import from_arrow, kind_of

    results, notes = run_in_process(text, own, planner)
    for note in notes:
        _LOG.info("%s", note)
    kind = kind_of(next(iter(tables.values()))) if tables else "arrow"
    made = {name: from_arrow(table, kind) for name, table in results.items()}
    return next(iter(made.values())) if len(made) == 1 else made


class SparkRefusal(QueryError):
    """Spark does not take the statement."""


def refuse_parameters(args: Arguments | None) -> None:
    """Refuse parameters where nobody binds them."""
    if args:
        raise UnsupportedError(
            "parameters of a statement are bound by Spark, and it does not run there",
            hint="write the values out, or use engine='spark'",
        )


def run_statements(
    text: str,
    frames: Mapping[str, DataFrame],
    planner: str = "auto",
    args: Arguments | None = None,
) -> tuple[SharedResults, tuple[Note | OverNote, ...]]:
    """Run statements over DataFrames by name; return results, and what became of each block."""
    statements, results = _run(text, frames, planner, args)
    for frame in results.values():
        frame.weft_notes = statements.notes  # type: ignore[attr-defined]
    return results, statements.notes


def run_in_process(
    text: str, tables: Mapping[str, pa.Table], planner: str = "auto"
) -> tuple[dict[str, pa.Table], tuple[Note | OverNote, ...]]:
    """Run statements over Arrow tables by name; return results, and what became of each block."""
    results, statements = _local_over(text, tables, planner)
    return results, statements.notes


def explained(
    text: str, frames: Mapping[str, DataFrame], planner: str, args: Arguments | None = None
) -> Statements:
    """Return statements of which nothing was computed, for what they say of themselves."""
    statements, results = _run(text, frames, planner, args)
    results.unpersist()
    return statements


def explained_in_process(text: str, tables: Mapping[str, pa.Table], planner: str) -> Statements:
    """Return statements of which nothing was computed, for what they say of themselves."""
    return _local_over(text, tables, planner, dry=True)[1]


def _local_over(
    text: str, tables: Mapping[str, pa.Table], planner: str, *, dry: bool = False
) -> tuple[dict[str, pa.Table], Statements]:
    require("duckdb", "duckdb", "a statement over tables in this process")
    from weft.statement.local import LocalHost

    _check_planner(planner)
    return LocalHost(tables, dry).run(_statements_in(text), planner)


def streamed(
    text: str, frames: Mapping[str, DataFrame], planner: str = "auto"
) -> tuple[Workload, dict[str, DataFrame], dict[str, StreamedStatement]]:
    """Read statements over streams: queries, events by name, and what is made of each result."""
    from pyspark.errors import PySparkException

    from weft.statement.streams.statements import StreamStatements

    try:
        return StreamStatements(_spark_over(text, frames, planner), planner).parts()
    except (PySparkException, UnicodeError) as error:
        raise refusal_of(text, error) from error


def _run(
    text: str,
    frames: Mapping[str, DataFrame],
    planner: str,
    args: Arguments | None = None,
    *,
    spelled_anew: bool = False,
) -> tuple[Statements, SharedResults]:
    """Run statements as they are, or else with windows of other engines in Spark's spelling."""
    from pyspark.errors import PySparkException

    from weft.statement.spellings import in_sparks_words

    text, named = with_named_parameters(text, args)
    host = _spark_over(text, frames, planner, named)
    try:
        text.encode()  # half a character would break the line to Java
        results, statements = host.run(planner)
        return statements, results
    except (PySparkException, UnicodeError) as error:
        refusal = refusal_of(text, error)
        translated = None if spelled_anew else in_sparks_words(text)
        if translated is None:
            raise refusal from error
    return _run(translated, frames, planner, named, spelled_anew=True)


def _spark_over(
    text: str,
    frames: Mapping[str, DataFrame],
    planner: str,
    args: Mapping[str, Any] | None = None,
) -> SparkHost:
    """Read the statements of a text, to be run over DataFrames by name."""
    from weft.engines.spark.session import current_session
    from weft.statement.spark import SparkHost, Tables

    _check_planner(planner)
    session = next((f.sparkSession for f in frames.values()), None) or current_session()
    return SparkHost(Tables(session, frames, args), _statements_in(text))


def _statements_in(text: str) -> dict[str, str]:
    from weft.statement.syntax import statements_of

    return statements_of(text) or {"q1": text}


def _check_planner(planner: str) -> None:
    from weft.planners.portfolio import PLANNERS

    if planner != "auto" and planner not in PLANNERS:
        raise QueryError(
            f"unknown planner {planner!r}", hint=f"use one of auto, {', '.join(PLANNERS)}"
        )


def _as_workload(text: str, tables: Mapping[str, Any], engine: str | None, planner: str) -> Any:
    from weft.parsing import parse

    return run(parse(text), tables, engine=engine, planner=planner)


def is_workload(text: str) -> bool:
    """Tell whether weft reads a text by itself."""
    from weft.parsing import parse

    try:
        parse(text)
    except QueryError:
        return False
    return True


def anchored_of(text: str) -> OverStatement | SlidingStatement | None:
    """Read functions OVER frames that weft computes by itself; None where it reads no such."""
    from weft.parsing.anchored import anchored_statement

    try:
        return anchored_statement(text)
    except QueryError:
        return None


def sliding_over(
    text: str, frames: Mapping[str, DataFrame], args: Arguments | None = None
) -> SlidingRows | None:
    """Read a window that slides with the events, over DataFrames; None for other statements."""
    from weft.engines.spark.session import current_session
    from weft.parsing.anchored import SlidingStatement, anchored_statement

    words = _words(text)
    if "SLIDINGWINDOW (" in words:
        asked = anchored_statement(text)
    else:
        asked = anchored_of(text) if "[ RANGE" in words else None
    if not isinstance(asked, SlidingStatement):
        return None
    if args:
        raise UnsupportedError(
            "parameters of a statement are bound by Spark, and it has no windows that slide with "
            "the events",
            hint="write the values out",
        )
    from weft.statement.spark.sliding import SlidingRows

    return SlidingRows.of(asked, frames or {asked.source: current_session().table(asked.source)})


def speaks_to_weft(text: str) -> bool:
    """Tell whether a text has windows that Spark has no words for.

    >>> speaks_to_weft("SELECT MAX(x) FROM t TIMESTAMP BY ts GROUP BY TumblingWindow(hour, 1)")
    True
    >>> speaks_to_weft("SELECT MAX(x) FROM t GROUP BY window(ts, '1 hour')")
    False
    """
    words = _words(text)
    own = any(word in words for word in _OWN_WORDS)
    return own or any(f"{window}WINDOW (" in words for window in _OWN_WINDOWS)


def _words(text: str) -> str:
    """Return the words of a text in capitals, those of its literals apart."""
    from sqlglot.tokenizer_core import TokenType

    from weft.statement.syntax import tokens_of

    tokens = tokens_of(text) or ()
    return " ".join(t.text.upper() for t in tokens if t.token_type is not TokenType.STRING)


def refusal_of(text: str, error: Exception) -> QueryError:
    """Return the error to raise for a text that Spark does not take."""
    from weft.parsing import parse

    if speaks_to_weft(text):
        try:
            parse(text)
        except QueryError as refusal:
            return refusal
    lines = [line for line in str(error).splitlines() if line.strip()]
    return SparkRefusal(
        f"Spark does not take this statement: {lines[0] if lines else type(error).__name__}",
        hint="a query that spark.sql takes runs here, over tables given by name; a statement that "
        "writes reads tables and views of the catalog",
    )
