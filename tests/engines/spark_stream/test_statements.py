"""Statements of Spark SQL over streams: the rows that a batch gives for windows that closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.engines.spark.session import to_spark
from weft.statement import run_statements

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark
SPANS = """
SELECT k, window.end AS window_end, round(MAX(v) - MIN(v), 6) AS `span of v`,
       corr(v, k + v * v) AS c
FROM r WHERE v > 3 GROUP BY k, window(ts, '40 seconds', '10 seconds')
HAVING COUNT(*) > 2 AND MAX(v) > 20
"""
COUNTS = """
SELECT window.end AS window_end, k % 2 AS odd, COUNT(*) FILTER (WHERE v > 20) / COUNT(*) AS share
FROM r GROUP BY k % 2, window(ts, '20 seconds')
"""


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = (tuple(row.values()) for row in table.to_pylist())
    short = (tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows)
    return sorted(short, key=repr)


def closed(streams: Any, text: str, readings: pa.Table) -> list[tuple[Any, ...]]:
    whole = streams.spark.sql(text, r=to_spark(readings, streams.spark)).toArrow()
    return rows_of(streams.closed(whole, 5_000_000))


def timed(streams: Any) -> DataFrame:
    frame: DataFrame = streams.read().withWatermark("ts", "5 seconds")
    return frame


def test_a_statement_over_a_stream_gives_spark_s_columns(streams: Any, readings: pa.Table) -> None:
    streams.write(readings, 3)
    results, notes = run_statements(SPANS, {"r": timed(streams)})
    (rows,) = results.values()
    assert [note.shared for note in notes] == [True], notes
    assert rows.isStreaming
    done = streams.ran(rows)
    assert done.input_rows == readings.num_rows
    assert done.rows.column_names == ["k", "window_end", "span of v", "c"]
    assert rows_of(done.rows) == closed(streams, SPANS.replace("FROM r", "FROM {r}"), readings)


def test_what_a_stream_cannot_share_is_spark_s(streams: Any, readings: pa.Table) -> None:
    streams.write(readings, 1)
    sorted_rows = SPANS + "ORDER BY k"
    inner = f"SELECT k, COUNT(*) AS n FROM ({SPANS}) GROUP BY k"
    reasons = []
    for text in (sorted_rows, inner, COUNTS):
        results, notes = run_statements(text, {"r": timed(streams)})
        assert next(iter(results.values())).isStreaming
        reasons += [note.reason for note in notes]
    assert reasons[0] == "ORDER BY in a stream is Spark's"
    assert reasons[1] == "the statement goes on after it, which in a stream is Spark's"
    assert reasons[2].startswith("no other block")


def command(place: Path, sql: str) -> list[str]:
    words = ["stream", "-e", sql, "--source", f"r={place / 'in'}", "--watermark", "5s", "--once"]
    words += ["--checkpoint", str(place / "c"), "--sink", str(place / "out")]
    return [*words, "--files-per-batch", "2"]


def test_statements_run_as_one_stream_from_the_command_line(
    streams: Any, readings: pa.Table
) -> None:
    streams.write(readings, 4)
    assert streams.spark is not None  # the command takes the session that is there
    text = f"-- name: spans\n{SPANS};\n-- name: counts\n{COUNTS}"
    done = CliRunner().invoke(app, command(streams.place, text))
    assert done.exit_code == 0, done.output
    for name, statement in (("spans", SPANS), ("counts", COUNTS)):
        written = streams.spark.read.parquet(str(streams.place / "out" / f"query={name}"))
        got = written.drop("batch").toArrow()
        wanted = closed(streams, statement.replace("FROM r", "FROM {r}"), readings)
        assert rows_of(got) == wanted
    refused = CliRunner().invoke(app, command(streams.place, f"{SPANS} ORDER BY k LIMIT 3"))
    assert refused.exit_code == 2
    assert "Sorting is not supported on streaming DataFrames" in " ".join(refused.output.split())
