"""Statements of Spark SQL through the front door: what Spark gives, from shared plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from typer.testing import CliRunner

import weft
from engines.spark import statement_tables
from engines.spark.statement_check import (
    Case,
    assert_same,
    assert_same_in_process,
    cases_in,
    said,
    views,
)
from weft.cli.app import app
from weft.statement import run_statements
from weft.statement.notes import Note
from weft.statement.spellings import in_sparks_words

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
FILE = Path(__file__).with_name("statements.sql")
IN_PROCESS = Path(__file__).with_name("statements_in_process.txt")  # those that run without Spark


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    return statement_tables.made(spark)


@pytest.fixture(scope="module")
def arrow(tables: dict[str, DataFrame]) -> dict[str, pa.Table]:
    return {name: frame.toArrow() for name, frame in tables.items()}


def answer_in_process(case: Case, arrow: dict[str, pa.Table]) -> pa.Table | None:
    """Run a statement without Spark, or have it refused if it is not among those that run."""
    runs = case.name in IN_PROCESS.read_text().splitlines()
    try:
        found: pa.Table = weft.sql(case.sql, engine="local", **arrow)
    except weft.WeftError:
        if runs:
            raise
        return None
    return found


@pytest.mark.parametrize("case", cases_in(FILE), ids=lambda case: case.name)
def test_a_statement_gives_what_spark_gives(
    case: Case, spark: SparkSession, tables: dict[str, DataFrame], arrow: dict[str, pa.Table]
) -> None:
    with views(spark, tables):  # which a Connect session looks up whenever it is asked
        wanted = spark.sql(case.sql.rstrip(";"))
        rows = said(wanted)
        in_process = answer_in_process(case, arrow)
        if in_process is not None:
            assert_same_in_process(in_process, wanted.schema, rows, ordered=case.ordered)
        results, notes = run_statements(case.sql, tables)
        (got,) = results.values()
        assert_same(got, wanted, rows, ordered=case.ordered)
    notes = tuple(note for note in notes if isinstance(note, Note))
    assert (sum(note.shared for note in notes), len(notes)) == (case.shared, case.blocks), notes


TWO = """
SELECT device, window.start AS ws, COUNT(*) AS n, MAX({value}) AS top
FROM readings GROUP BY device, window(ts, '1 hour')
UNION ALL
SELECT device, window.start, COUNT(*), MIN({value}) FROM readings
GROUP BY device, window(ts, '1 day')
"""


def final_plan(frame: DataFrame, explained: Callable[[DataFrame], str]) -> str:
    """Return what Spark ran, after exchanges that are equal were run once."""
    frame.collect()
    return explained(frame).partition("== Initial Plan ==")[0]


def test_blocks_that_share_read_the_events_once(
    spark: SparkSession, tables: dict[str, DataFrame], explained: Callable[[DataFrame], str]
) -> None:
    text = TWO.format(value="temp")
    with views(spark, tables):
        assert final_plan(spark.sql(text), explained).count("Scan ExistingRDD") == 2
    assert final_plan(weft.sql(text, **tables), explained).count("Scan ExistingRDD") == 1


def test_a_statement_leaves_no_view_and_hides_none(
    spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    spark.range(3).createOrReplaceTempView("readings")
    try:
        before = [table.name for table in spark.catalog.listTables()]
        rows = weft.sql(TWO.format(value="temp"), readings=tables["readings"])
        assert rows.count() > 3
        assert spark.table("readings").count() == 3
        assert [table.name for table in spark.catalog.listTables()] == before
        assert weft.sql("SELECT COUNT(*) AS n FROM readings").collect()[0].n == 3
    finally:
        spark.catalog.dropTempView("readings")


@pytest.mark.parametrize("deterministic", [True, False])
def test_functions_of_the_user_are_shared_if_they_give_the_same_again(
    spark: SparkSession, tables: dict[str, DataFrame], deterministic: bool
) -> None:
    doubled = F.udf(lambda x: None if x is None else x * 2, "double")
    spark.udf.register("doubled", doubled if deterministic else doubled.asNondeterministic())
    text = TWO.format(value="doubled(temp)").replace("MIN(doubled(temp))", "MAX(doubled(temp))")
    if not deterministic:  # Spark takes no such argument of an aggregate itself
        text = text.replace("MAX(doubled(temp))", "MAX(temp)").replace(
            "FROM readings", "FROM readings WHERE doubled(temp) > 30"
        )
    results, notes = run_statements(text, tables)
    assert [note.shared for note in notes] == [deterministic] * 2
    with views(spark, tables):
        assert_same(next(iter(results.values())), spark.sql(text), ordered=False)


def test_several_statements_share_and_are_named(tables: dict[str, DataFrame]) -> None:
    hour, day = TWO.format(value="temp").split("UNION ALL")
    text = f"-- name: hours\n{hour};\n{day};"
    results, notes = run_statements(text, tables)
    assert list(results) == ["hours", "q2"]
    assert [note.shared for note in notes] == [True, True]
    with results:
        counts = {name: sum(row[2] for row in frame.collect()) for name, frame in results.items()}
    assert counts["hours"] == counts["q2"] == tables["readings"].where("ts IS NOT NULL").count()


def test_what_spark_refuses_is_refused_with_its_reason(tables: dict[str, DataFrame]) -> None:
    with pytest.raises(weft.QueryError, match=r"UNRESOLVED_COLUMN.*`tmep`"):
        weft.sql("SELECT MAX(tmep) FROM readings GROUP BY site", **tables)
    with pytest.raises(weft.QueryError, match="unknown planner"):
        weft.sql("SELECT 1", planner="magic", **tables)
    with pytest.raises(weft.QueryError, match="writes reads tables and views of the catalog"):
        weft.sql("CREATE TEMP VIEW copied AS SELECT * FROM readings", **tables)


def test_a_statement_that_writes_goes_to_spark_as_it_is(
    spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    made = "CREATE OR REPLACE TEMP VIEW made_by_weft AS SELECT site, COUNT(*) AS n FROM {} "
    with views(spark, {"readings": tables["readings"]}):
        weft.sql(made.format("readings") + "GROUP BY site, window(ts, '1 hour')")
        assert spark.table("made_by_weft").count() > 0
        spark.catalog.dropTempView("made_by_weft")


def test_the_spellings_of_weft_keep_their_columns(tables: dict[str, DataFrame]) -> None:
    text = "SELECT device, MAX(temp) AS hi FROM readings TIMESTAMP BY ts GROUP BY device, "
    rows = weft.sql(text + "Windows(TumblingWindow(hour, 1), TumblingWindow(hour, 2))", **tables)
    assert rows.columns == ["device", "window", "window_start", "window_end", "hi"]


def test_tables_of_other_libraries_come_back_as_they_came(tables: dict[str, DataFrame]) -> None:
    table = tables["devices"].toArrow()
    rows = weft.sql("SELECT owner, COUNT(*) AS n FROM d GROUP BY owner", engine="spark", d=table)
    assert sorted(rows["n"].to_pylist()) == [2, 2, 3]


@pytest.mark.parametrize(
    ("foreign", "spark_s"),
    [
        (
            "SELECT window_start, site, COUNT(*) AS n FROM TABLE(HOP(TABLE readings, "
            "DESCRIPTOR(ts), INTERVAL '30' MINUTES, INTERVAL '1' HOUR)) "
            "GROUP BY window_start, window_end, site",
            "SELECT window.start AS window_start, site, COUNT(*) AS n FROM readings "
            "GROUP BY site, window(ts, '1 hour', '30 minutes')",
        ),
        (
            "SELECT device, window_start, temp FROM TUMBLE(TABLE readings, DESCRIPTOR(ts), "
            "INTERVAL '1' HOUR) WHERE window_end > TIMESTAMP '2024-03-29 00:00:00'",
            "SELECT device, date_trunc('HOUR', ts) AS window_start, temp FROM readings "
            "WHERE ts >= TIMESTAMP '2024-03-29 00:00:00'",
        ),
        (
            "SELECT window_end, COUNT(*) AS n FROM CUMULATE(TABLE readings, DESCRIPTOR(ts), "
            "INTERVAL '1' HOUR, INTERVAL '2' HOURS) GROUP BY window_start, window_end",
            "SELECT e AS window_end, COUNT(*) AS n FROM (SELECT window(ts, '2 hours') AS w, ts "
            "FROM readings) LATERAL VIEW explode(array(w.start + INTERVAL 1 HOUR, w.end)) x AS e "
            "WHERE ts < e GROUP BY w, e",
        ),
        (
            "SELECT time_bucket(INTERVAL '1 hour', ts) AS b, COUNT(*) AS n FROM readings "
            "GROUP BY b",
            "SELECT date_trunc('HOUR', ts) AS b, COUNT(*) AS n FROM readings GROUP BY b",
        ),
    ],
)
def test_windows_of_other_engines_are_read(
    spark: SparkSession, tables: dict[str, DataFrame], foreign: str, spark_s: str
) -> None:
    rows = weft.sql(foreign, **tables)
    with views(spark, tables):
        wanted = spark.sql(spark_s)
        wanted.collect()
    assert rows.columns == wanted.columns
    assert sorted(map(repr, rows.collect())) == sorted(map(repr, wanted.collect()))


GROWING = """
SELECT window_start, window_end, r.site, SUM(temp) / COUNT(*) AS t
FROM TABLE(CUMULATE(TABLE readings, DESCRIPTOR(ts), INTERVAL '2' HOURS, INTERVAL '1' DAY)) r
WHERE device LIKE 'pump%' GROUP BY r.site, window_end, window_start HAVING COUNT(*) > 2
"""


def test_windows_of_other_engines_are_shared(
    spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    results, notes = run_statements(GROWING, tables)
    assert [note.shared for note in notes] == [True]
    translated = in_sparks_words(GROWING)
    assert translated is not None
    with views(spark, tables):
        assert_same(next(iter(results.values())), spark.sql(translated), ordered=False)


@pytest.mark.parametrize(
    ("marks", "args"), [((":hot", ":n"), {"n": 2, "hot": 20.5}), (("?", "?"), [20.5, 2])]
)
def test_parameters_and_braces_mean_what_they_mean_to_spark(
    spark: SparkSession, tables: dict[str, DataFrame], marks: tuple[str, str], args: Any
) -> None:
    text = (
        "SELECT site, window.start AS ws, COUNT(*) AS n, '{{readings}} ?' FROM {readings} "
        f"WHERE temp > {marks[0]} GROUP BY site, window(ts, '2 hours', '1 hour') "
        f"HAVING COUNT(*) > {marks[1]}"
    )
    frame = tables["readings"]
    rows = weft.sql(text.replace("{{", "{").replace("}}", "}"), args=args, readings=frame)
    assert_same(rows, spark.sql(text, args=args, readings=frame), ordered=False)
    assert [str(note) for note in rows.weft_notes] == ["block 1 is shared"]
    with pytest.raises(weft.UnsupportedError, match="bound by Spark"):
        weft.sql(text, args=args, readings=frame.toArrow())


def test_a_statement_that_weft_cannot_read_says_so(tables: dict[str, DataFrame]) -> None:
    text = "FROM readings |> AGGREGATE COUNT(*) AS n GROUP BY window(ts, '2 hours', '1 hour')"
    told = "the statement runs as Spark runs it: weft cannot read it and write it out as it was"
    assert str(weft.explain(text, **tables)) == told
    assert [str(note) for note in weft.sql(text, **tables).weft_notes] == [told]


def test_explain_says_what_is_shared_and_why_the_rest_is_not(tables: dict[str, DataFrame]) -> None:
    text = TWO.format(value="temp") + "UNION ALL SELECT site, NULL, COUNT(*), NULL FROM readings "
    explained = weft.explain(text + "GROUP BY site, window(ts, '1 hour')", **tables)
    told, shown = str(explained), explained._repr_html_()
    assert shown.startswith("<ul><li>block 1 is shared</li>")
    assert shown.count("<iframe srcdoc=") == 1  # the plan, as it shows itself
    assert told.startswith(
        "block 1 is shared\nblock 2 is shared\nblock 3 runs as Spark runs it: no "
    )
    assert "events:\n  SELECT ts AS weft_time" in told
    assert "TUMBLE 1h" in told


def test_statements_run_from_the_command_line(tables: dict[str, DataFrame], tmp_path: Path) -> None:
    place, out = tmp_path / "readings.parquet", tmp_path / "out.csv"
    tables["readings"].select("ts", "device", "temp").write.parquet(str(place))
    file = tmp_path / "two.sql"
    file.write_text(TWO.format(value="temp") + "ORDER BY ws, n DESC, device")
    words = ["sql", str(file), "-t", f"readings={place}", "-n", "2", "-o", str(out), "--notes"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    assert "block 1 is shared" in done.stdout
    assert out.read_text().startswith('"device","ws","n","top"')
    refused = CliRunner().invoke(app, ["sql", "-e", "SELECT x FROM readings", "-t", words[3]])
    assert refused.exit_code == 2
    assert "UNRESOLVED_COLUMN" in refused.stderr
