"""Any names, labels and literals, and statements and plans that were tampered with."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import weft
from engines.spark import statement_tables
from engines.spark.statement_check import described, views
from golden.loader import read
from sampling import examples
from weft.errors import InternalError, WeftError
from weft.plain_sql.statements import rewrite_plan
from weft.statement.blocks import Surroundings, block_of, window_selects
from weft.statement.projection import Projection
from weft.statement.relations import Obstacle
from weft.statement.spellings import gather_cumulations, in_sparks_words
from weft.statement.syntax import query_of, statements_of
from weft.testing import assert_same_rows
from weft.testing.magnitudes import random_case

if TYPE_CHECKING:
    from collections.abc import Iterator


_GOLDEN = Path(__file__).parents[1] / "golden"
_SPARK_TESTS = Path(__file__).parents[1] / "engines" / "spark"
GOOD = [c.text for path in sorted(_GOLDEN.glob("sql/*.test")) for c in read(path)]
PIECES = (
    "'", '"', "`", "\\", "\\'", "''", "``", ";", "--", "/*", "*/", "\x00", "\n", "é", "🜁",
    "\u202e", "\ud800", "(", ")", "[", "]", ",", ".", "0", "9" * 30, "1e999", "-", "INTERVAL",
    "'''", "a" * 10_000, "((" * 50, "%", "::", "=>", "NULL", "window(", "OVER (",
)  # fmt: skip
NASTY = (
    "'", "''", '"', '""', "`", "``", "\\", "\\'", "a;b", "--", "-- x", "/*", "*/", "${x}", "{0}",
    "%s", "a.b", " ", "SELECT", "'; DROP TABLE events; --", "`; DROP TABLE events; --", "é", "中文",
    "🜁", "\u202e", "line\nline", "tab\t", "x" * 10_000,
)  # fmt: skip
# Of statements and of plans: in `make test`, and in `make soak`.
SOME, MANY = 10_000, 500_000


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def tampered(random: np.random.Generator, text: str) -> str:
    for _ in range(int(random.integers(1, 4))):
        at, kind = int(random.integers(0, len(text) + 1)), int(random.integers(5))
        if kind == 0:
            text = text[:at] + PIECES[int(random.integers(len(PIECES)))] + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + int(random.integers(1, 12)) :]
        elif kind == 2:
            text = text[:at] + chr(int(random.integers(1, 0x3000))) + text[at + 1 :]
        elif kind == 3:
            other = int(random.integers(0, len(text) + 1))
            text = text[:at] + text[other : other + 20] + text[at:]
        else:
            other = GOOD[int(random.integers(len(GOOD)))]
            text = text[:at] + other[int(random.integers(0, len(other))) :]
    return text


def only_own_errors(step: Any, given: str) -> bool:
    """Take a step; tell whether it was refused. Any error that is not for the user fails."""
    try:
        step(given)
    except InternalError as error:
        raise AssertionError(f"a bug of weft's at {given[:2000]!r}") from error
    except WeftError:
        return True
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} at {given[:2000]!r}") from error
    return False


@pytest.mark.parametrize("count", [SOME, pytest.param(MANY, marks=pytest.mark.soak)])
def test_statements_that_were_tampered_with_give_only_errors_of_weft(count: int) -> None:
    random = np.random.default_rng(count)
    refused = [
        only_own_errors(weft.parse, tampered(random, GOOD[int(random.integers(len(GOOD)))]))
        for _ in range(count)
    ]
    assert 0.5 < sum(refused) / len(refused) < 1


STATEMENTS = [
    part.partition("\n")[2].strip()
    for part in (_SPARK_TESTS / "statements.sql").read_text().split("-- name: ")[1:]
]


def read_as_spark_s(text: str) -> None:
    """Read a text as the front door does, up to where Spark is asked."""
    in_sparks_words(text)
    for statement in (statements_of(text) or {}).values():
        tree = query_of(statement)
        if tree is None:
            continue
        gather_cumulations(tree)
        for select in window_selects(tree):
            try:
                block = block_of(select, Surroundings(lambda _: frozenset({"ts"}), "UTC"))
                projection = Projection(block, lambda _: frozenset({"ts"}))
                projection.check_calls()
                projection.check()
            except Obstacle:
                continue


@pytest.mark.parametrize("count", [SOME // 5, pytest.param(MANY // 5, marks=pytest.mark.soak)])
def test_statements_of_spark_that_were_tampered_with_are_read_or_left(count: int) -> None:
    random = np.random.default_rng(count)
    for text in STATEMENTS:
        only_own_errors(read_as_spark_s, text)
    for _ in range(count):
        text = STATEMENTS[int(random.integers(len(STATEMENTS)))]
        only_own_errors(read_as_spark_s, tampered(random, text))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT approx_top_k() FROM t GROUP BY window(ts, '1 hour')",
        "SELECT listagg() WITHIN GROUP (ORDER BY a) FROM t GROUP BY window(ts, '1 hour')",
        "SELECT listagg(DISTINCT) FROM t GROUP BY window(ts, '1 hour')",
        "SELECT a FROM t GROUP BY 1, 2, window(ts, '1 hour')",
        "SELECT a FROM t GROUP BY 0, window(ts, '1 hour')",
        "SELECT a FROM t GROUP BY ², window(ts, '1 hour')",
        f"SELECT a FROM t GROUP BY {'9' * 5000}, window(ts, '1 hour')",
        "SELECT COUNT(*) FROM t GROUP BY window()",
        "SELECT COUNT(*) FROM t GROUP BY date_trunc('DAY', ts, ts)",
        "SELECT max(a) > b AS b FROM t GROUP BY window(ts, '1 hour') HAVING b",
    ],
)
def test_statements_that_only_look_like_spark_s_are_left_or_refused(text: str) -> None:
    assert not only_own_errors(read_as_spark_s, text)
    only_own_errors(weft.rewrite, text)
    table = pa.table({"ts": pa.array([0], pa.timestamp("us")), "a": [1], "b": [2]})
    assert only_own_errors(lambda statement: weft.sql(statement, t=table), text)


def test_what_is_no_query_is_left_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    assert query_of("SHOW TABLES IN silver") is None
    assert not caplog.records


@pytest.mark.spark
@pytest.mark.parametrize("count", [30, pytest.param(3_000, marks=pytest.mark.soak)])
def test_the_front_door_takes_what_spark_takes_and_nothing_else(count: int) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from weft.engines.spark.session import local_session

    spark = local_session(2)
    tables = statement_tables.made(spark)
    random = np.random.default_rng(count)
    taken = 0
    for _ in range(count):
        text = STATEMENTS[int(random.integers(len(STATEMENTS)))]
        text = text if random.random() < 0.1 else tampered(random, text)
        with views(spark, tables):
            try:
                wanted = described(spark.sql(text))
            except (PySparkException, Py4JError, UnicodeError):  # half a character
                wanted = None
        refused = only_own_errors(lambda t: weft.sql(t, **tables), text)
        if wanted is not None:
            taken += 1
            assert not refused, text
            assert described(weft.sql(text, **tables)) == wanted, text
    assert taken


@pytest.mark.parametrize("unit", ["''", "``", '""'])
def test_a_range_whose_unit_is_empty_is_refused(unit: str) -> None:
    with pytest.raises(weft.QueryError, match="has no unit of time"):
        weft.parse(f"SELECT COUNT(*) AS n FROM r [RANGE 1 {unit} SLIDE 1 MINUTE]")


VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1e308, float("nan"), "", "x'; DROP", "é", [], {}, [[]], {"a": 1},
    "NaN", "os:system", "__main__:x", "a" * 10_000, [1, 2], ["a", "b"],
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        for at, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, at))


def spoiled(random: np.random.Generator, plan: str) -> str:
    told = json.loads(plan)
    every = list(places(told))
    for _ in range(int(random.integers(1, 3))):
        *path, last = every[int(random.integers(len(every)))]
        inside = told
        try:
            for part in path:
                inside = inside[part]
            if random.random() < 0.4:
                del inside[last]
            else:
                # A copy: a later change must not reach into the value itself.
                inside[last] = copy.deepcopy(VALUES[int(random.integers(len(VALUES)))])
        except (LookupError, TypeError):
            continue  # an earlier change has taken the place away
    return json.dumps(told)


@pytest.mark.parametrize("count", [SOME, pytest.param(MANY, marks=pytest.mark.soak)])
def test_plans_that_were_tampered_with_give_only_errors_of_weft(count: int) -> None:
    random = np.random.default_rng(count)
    engines = ("local", "spark") * 4
    plans = [
        weft.optimize(random_case(seed, 5).workload, engine=engine).explain("json")
        for seed, engine in enumerate(engines)
    ]
    refused = [
        only_own_errors(weft.Plan.from_json, spoiled(random, plans[at % len(plans)]))
        for at in range(count)
    ]
    assert sum(refused) > len(refused) / 2
    for text in ("", "[]", "null", "7", '{"weft_plan": 1}', "[" * 100_000):
        assert only_own_errors(weft.Plan.from_json, text)


def asked(names: list[str], text: str) -> tuple[weft.Query, pa.Table]:
    """Ask with one name after another, for columns, keys, labels, results and the query itself."""
    key, value, label, result, query = names
    table = pa.table(
        {
            "ts": pa.array([0, 1_000_000, 70_000_000, 80_000_000], pa.timestamp("us", "UTC")),
            f"k{key}": ["a", text, text, None],
            f"v{value}": [1, 2, 3, 4],
        }
    )
    column = quoted(f"v{value}")
    windows = {f"w{label}": weft.tumbling("1 minute"), "hop": weft.hopping("2 minutes", "1 minute")}
    found = weft.Query(
        f"q{query}",
        source="events",
        time="ts",
        keys={f"key{key}": quoted(f"k{key}")},
        where=f"{quoted(f'k{key}')} = {literal(text)} OR {column} > 3",
        windows=windows,
        aggs={
            f"sum{result}": weft.agg.sum(column),
            "n": weft.agg.sum(f"CASE WHEN {quoted(f'k{key}')} = {literal(text)} THEN 1 ELSE 0 END"),
        },
    )
    return found, table


any_name = st.one_of(
    st.sampled_from(NASTY), st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
FEW = settings(
    deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow]
)


@FEW
@given(st.lists(any_name, min_size=5, max_size=5), any_name)
@example([NASTY[-1]] * 5, NASTY[-1])
@example(["`", "``", "'", "--", "*/"], "\\")
def test_any_name_and_literal_means_itself_on_the_local_engine(names: list[str], text: str) -> None:
    query, table = asked(names, text)
    report = weft.verify(query, {"events": table}, ("reference", "local"))
    assert report.ok, report.differences[0]
    found = weft.run(query, {"events": table}, engine="local")
    rows = found.filter(pc.equal(found["window"], f"w{names[2]}"))
    assert pc.sum(rows["n"]).as_py() == 2 + (text == "a")  # the literal is that text and no other
    assert set(rows[f"key{names[0]}"].to_pylist()) == {text, None}


@FEW
@given(st.lists(any_name, min_size=5, max_size=5), any_name)
@example(["'; DROP TABLE events; --"] * 5, "'; DROP TABLE events; --")
@example(["`", "\\", "'", '"', "*/"], "\\")
def test_any_name_and_literal_means_itself_in_plain_sql(names: list[str], text: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    names, text = ([n.replace("\x00", "") for n in names], text.replace("\x00", ""))
    query, table = asked(names, text)
    (statement,) = rewrite_plan(
        weft.optimize(weft.Workload([query]), engine="spark"), "duckdb"
    ).values()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", table)
        got = connection.sql(statement).to_arrow_table()
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (4,)
    wanted = weft.run(query, {"events": table}, engine="reference")
    typed = got.select(wanted.column_names).cast(wanted.schema)  # sums are HUGEINT in DuckDB
    assert_same_rows(query, typed, wanted, "duckdb")


@pytest.mark.spark
@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_any_name_and_literal_means_itself_on_spark(strategy: str) -> None:
    from weft.engines.spark.session import current_session, to_spark

    for at in range(0, len(NASTY), 9):
        names = [NASTY[(at + step) % len(NASTY)] for step in range(5)]
        query, table = asked(names, NASTY[at])
        frame = to_spark(table, current_session())
        got = weft.run(query, {"events": frame}, strategy=strategy).toArrow()
        assert_same_rows(query, got, weft.run(query, {"events": table}, engine="reference"))
