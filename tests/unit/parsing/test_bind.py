"""SQL says the same as Python, columns are checked, and places in the text are right."""

from __future__ import annotations

import pytest

import weft.agg as agg
from weft.aggregates import AggregateCall
from weft.binding import check_columns
from weft.errors import QueryError
from weft.expression import SCALAR_FUNCTIONS, canonical
from weft.parsing import parse
from weft.parsing.script import Script
from weft.query import JoinInput, JoinQuery, Query, Workload
from weft.window import hopping, session, tumbling

HOURLY = "GROUP BY window(ts, '1 hour')"


def test_sql_and_python_build_equal_queries() -> None:
    workload = parse(
        "-- name: lows\n"
        "SELECT device, upper(town) AS city, MIN(temp) AS lo, SUM(price*quantity) AS revenue "
        "FROM readings TIMESTAMP BY ts WHERE temp>0 GROUP BY device, city, "
        "Windows(Window('20m', TumblingWindow(minute, 20)), Window('s', SessionWindow(minute, 5)))"
    )
    assert workload == Workload(
        [
            Query(
                "lows",
                source="readings",
                time="ts",
                keys={"device": "device", "city": "upper(town)"},
                where="temp > 0",
                windows={"20m": tumbling("20 minutes"), "s": session("5 minutes")},
                aggs={"lo": agg.min("temp"), "revenue": agg.sum("price * quantity")},
            )
        ]
    )


def test_a_bracket_has_the_instances_of_a_hopping_window() -> None:
    (query,) = parse("SELECT COUNT(*) FROM t [RANGE 1 HOUR SLIDE 5 MINUTES]").queries
    assert dict(query.windows) == {"1h/5m": hopping("1 hour", "5 minutes")}


def test_a_join_binds_filters_without_qualifiers_and_the_rest_with_them() -> None:
    window = hopping("1 hour", "1 minute")
    (query,) = parse(
        "SELECT c.source, SUM(b.bytes) AS total "
        "FROM clink AS c [RANGE 1 HOUR SLIDE 1 MINUTE], blink AS b [RANGE 1 HOUR SLIDE 1 MINUTE] "
        "WHERE c.id = b.id AND c.kind = 'x' GROUP BY c.source"
    ).queries
    assert query == JoinQuery(
        "q1",
        inputs=(
            JoinInput("clink", "c", None, window, "kind = 'x'"),
            JoinInput("blink", "b", None, window),
        ),
        on=(("c.id", "b.id"),),
        keys=(("source", "c.source"),),
        aggs=(("total", AggregateCall("sum", ("b.bytes",))),),
    )


def test_a_custom_aggregate_is_called_by_its_name() -> None:
    agg.custom(
        "Span",
        lift=lambda x: (x, x),
        combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
        lower=lambda p: p[1] - p[0],
        identity=(float("inf"), float("-inf")),
        commutative=True,
        idempotent=True,
        examples=[1.0, 2.0],
    )
    (query,) = parse(f"SELECT span(temp) AS s FROM t {HOURLY}").queries
    assert dict(query.aggs) == {"s": AggregateCall("Span", ("temp",))}


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_canonical_text_of_every_scalar_function_is_stable(name: str) -> None:
    calls = {
        "cast": "cast(x AS int)",
        "if": "if(x > 1, x, y)",
        "substring": "substring(x, 1, 2)",
        "substr": "substr(x, 1, 2)",
    }
    two = ("mod", "nullif", "ifnull", "nvl", "power", "coalesce", "greatest", "least", "concat")
    call = calls.get(name) or (f"{name}(x, y)" if name in two else f"{name}(x)")
    text = canonical(call)
    assert canonical(text) == text
    (query,) = parse(f"SELECT MAX({call}) AS m FROM t {HOURLY}").queries
    assert dict(query.aggs) == {"m": agg.max(text)}


def test_comments_do_not_reach_expressions() -> None:
    assert canonical("x + /* more */ 1") == "x + 1"
    (query,) = parse(f"SELECT SUM(x /* all */ + 1) AS s FROM t {HOURLY}").queries
    assert dict(query.aggs) == {"s": agg.sum("x + 1")}


def test_columns_of_any_workload_are_checked() -> None:
    joined = "FROM a [UNTIL NOW], b TIMESTAMP BY at [RANGE 1 HOUR SLIDE 1 HOUR] WHERE a.id = b.id"
    workload = parse(f"SELECT MIN(x) FROM t {HOURLY}; SELECT a.k, SUM(b.v) {joined} GROUP BY a.k")
    schemas = {"t": ["ts", "x"], "a": ["id", "k"], "b": ["id", "at", "v"]}
    check_columns(workload, schemas)
    for table, columns in schemas.items():
        for column in columns:
            rest = [c for c in columns if c != column]
            with pytest.raises(QueryError, match=f"{table} has no column '{column}'"):
                check_columns(workload, {**schemas, table: rest})
    with pytest.raises(QueryError, match="there is no table 'b'"):
        check_columns(workload, {"t": ["ts", "x"]})


def test_filters_of_a_join_are_checked() -> None:
    workload = parse(
        "SELECT COUNT(*) FROM a [RANGE 1 HOUR SLIDE 1 HOUR], b [UNTIL NOW] "
        "WHERE a.id = b.id AND b.kind = 1"
    )
    with pytest.raises(QueryError, match="b has no column 'kind'"):
        check_columns(workload, {"a": ["id"], "b": ["id"]})


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [
        ("ab\ncd", 0, 1, 1),
        ("ab\ncd", 3, 2, 1),
        ("ab\r\ncd", 4, 2, 1),
        ("ab\r\ncd", 5, 2, 2),
        ("ab\n", 3, 1, 3),
        ("ab", 2, 1, 3),
        ("", 0, 1, 1),
        ("a\u2028b", 2, 2, 1),
    ],
)
def test_places(text: str, offset: int, line: int, column: int) -> None:
    error = Script(text).error("wrong", hint="right", at=offset)
    assert (error.line, error.column) == (line, column)


def test_a_tab_before_the_caret_stays_a_tab() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT\tMIN(x)\tFROM t [RANGE 1 MINUT SLIDE 1 HOUR]")
    assert str(caught.value).splitlines()[2] == "        \t      \t                ^"


def test_the_watermark_is_not_set_by_sql() -> None:
    (query,) = parse(f"SELECT MIN(x) FROM t {HOURLY}").queries
    assert query.watermark_us is None


def test_a_window_of_one_column_and_a_key_of_the_same_name() -> None:
    (query,) = parse("SELECT window, MIN(x) AS lo FROM t [ROWS 5 SLIDE 5]").queries
    assert query.columns == ("window", "window_start", "window_end", "lo")
