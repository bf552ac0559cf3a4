"""Expressions over events: what they may be, their types, and their values, as Spark has them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from weft import agg
from weft.engines.local.expressions.evaluate import evaluate as columnar
from weft.engines.local.values.frame import Frame
from weft.engines.reference.events import events_by_key
from weft.engines.reference.oracle import evaluate
from weft.engines.scalar.expressions import compiled
from weft.engines.scalar.rows import EventRow, rows_of
from weft.engines.schema import check_filter, expression_type, result_schema
from weft.errors import DataError, QueryError, UnsupportedError, WeftError
from weft.expression import RESERVED, SCALAR_FUNCTIONS, canonical, column, columns_of, tree
from weft.query import Query
from weft.window import PeriodicWindow, PunctuatedWindow

NOON = dt.datetime(2024, 5, 17, 12, 34, 56, tzinfo=dt.UTC)
SCHEMA = pa.schema(
    [
        ("x", pa.int64()),
        ("i", pa.int32()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("p", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("flag", pa.bool_()),
        ("ts", pa.timestamp("us", "UTC")),
        ("naive", pa.timestamp("us")),
        ("berlin", pa.timestamp("us", "Europe/Berlin")),
        ("day", pa.date32()),
        ("nothing", pa.int64()),
        ("word", pa.dictionary(pa.int32(), pa.string())),
    ]
)
EVENT = {
    "x": 2,
    "i": 7,
    "d": 0.5,
    "f": 0.1,
    "p": Decimal("2.50"),
    "s": "abc",
    "flag": True,
    "ts": NOON,
    "naive": NOON.replace(tzinfo=None),
    "berlin": NOON,
    "day": NOON.date(),
    "nothing": None,
    "word": "w",
}


def event(**changes: Any) -> EventRow:
    """One event; a column that is not of SCHEMA has the type that Arrow gives its value."""
    arrays = {f.name: pa.array([changes.get(f.name, EVENT[f.name])], f.type) for f in SCHEMA}
    extra = {name: pa.array([value]) for name, value in changes.items() if name not in arrays}
    (row,) = rows_of(pa.table({**arrays, **extra}))
    return row


def value(text: str, **changes: Any) -> Any:
    found = compiled(canonical(text))(event(**changes))
    type = expression_type(text, SCHEMA) if set(changes) <= set(SCHEMA.names) else pa.null()
    if not pa.types.is_null(type):
        pa.array([found], type)  # the value is of the type that the schema promises
    return found


# Names and expressions


KEYWORDS = {w.lower() for w in Spark.Tokenizer.KEYWORDS if w.isidentifier()}


@pytest.mark.parametrize("word", sorted(KEYWORDS | RESERVED))
def test_a_plain_word_is_the_name_of_a_column(word: str) -> None:
    text = canonical(word)
    assert isinstance(tree(text), exp.Column)
    assert tree(word) == tree(text)
    assert columns_of(word) == columns_of(text) == (word,)
    assert canonical(text) == column(word) == text


def test_a_key_called_null_groups_by_its_column() -> None:
    rows = [{"ts": 1, "null": 1, "true": "a"}, {"ts": 2, "null": 2, "true": "a"}]
    keys = (("null", canonical("null")), ("true", canonical("true")))
    grouped, _ = events_by_key(rows, "ts", None, keys)
    assert set(grouped) == {(1, "a"), (2, "a")}


@pytest.mark.parametrize("time", ["0", "my-col", "event time", "null", "a.b"])
def test_the_time_column_is_a_name_and_never_an_expression(time: str) -> None:
    grouped, timeless = events_by_key([{time: 5}, {time: None}], time, None, ())
    assert [e.time_us for e in grouped[()]] == [5]
    assert timeless == 1


def test_a_missing_time_column_is_named() -> None:
    with pytest.raises(DataError, match="no column 'ts'"):
        events_by_key([{"x": 1}], "ts", None, ())


def test_quotes_around_a_plain_name_change_nothing() -> None:
    assert canonical("`temp`") == "temp"
    assert canonical("`5`") == "`5`"


def test_two_quotes_in_a_string_are_one() -> None:
    assert value("s = 'it''s'", s="it's") is True


@pytest.mark.parametrize(
    "text",
    [
        *("max(x)", "max(x) > 1", "sum(x) + 1", "count(*)", "*", "t.*", "mean(x)", "median(x)"),
        *("(select 1)", "x in (select 1)", "exists(select 1)", "sum(x) over ()", "x as y", "x; y"),
        *("product(x)", "count_distinct(x)", "", "x >", "x, y"),
    ],
)
def test_what_does_not_read_one_event_is_refused_before_it_runs(text: str) -> None:
    with pytest.raises(QueryError):
        canonical(text)
    with pytest.raises(QueryError):
        Query(
            "q",
            source="t",
            windows={"w": PeriodicWindow(1, 1)},
            aggs={"a": agg.sum(text)},
        )


# Decimals


@pytest.mark.parametrize(
    ("text", "type", "expected"),
    [
        ("p * p", (21, 4), "6.2500"),
        ("p + p", (11, 2), "5.00"),
        ("p - 1", (11, 2), "1.50"),
        ("p / 3", (14, 6), "0.833333"),
        ("p / x", (31, 23), "1.25"),
        ("p / i", (21, 13), "0.3571428571429"),
        ("p % 1", (3, 2), "0.50"),
        ("p * 2.5BD", (13, 3), "6.250"),
        ("p * 1.5", (13, 3), "3.750"),
        ("x * 1.5", (23, 1), "3.0"),
        ("-p", (10, 2), "-2.50"),
        ("abs(-p)", (10, 2), "2.50"),
        ("round(p)", (9, 0), "3"),
        ("round(p, 1)", (10, 1), "2.5"),
        ("floor(p)", (9, 0), "2"),
        ("ceil(p)", (9, 0), "3"),
        ("coalesce(nothing, p)", (22, 2), "2.50"),
        ("greatest(p, 7.125)", (11, 3), "7.125"),
        ("p / 3 * 3", (16, 6), "2.499999"),
        ("cast(d as decimal(3,1)) * p", (14, 3), "1.250"),
        ("CASE WHEN flag THEN 1 ELSE p END", (12, 2), "1.00"),
    ],
)
def test_decimals_keep_the_digits_of_spark(text: str, type: tuple[int, int], expected: str) -> None:
    assert expression_type(text, SCHEMA) == pa.decimal128(*type)
    assert value(text) == Decimal(expected)
    assert isinstance(value(text), Decimal)


def test_a_precision_beyond_38_costs_scale_first() -> None:
    schema = pa.schema([("w", pa.decimal128(38, 10))])
    assert expression_type("w * w", schema) == pa.decimal128(38, 6)
    assert expression_type("w + w", schema) == pa.decimal128(38, 9)
    assert expression_type("w / w", schema) == pa.decimal128(38, 6)
    (row,) = rows_of(pa.table({"w": pa.array([Decimal("9" * 28)], pa.decimal128(38, 10))}))
    with pytest.raises(DataError, match=r"w \* w"):
        compiled("w * w")(row)


def test_a_decimal_with_a_double_is_a_double() -> None:
    assert value("p * d") == 1.25
    assert value("p + 1e0") == 3.5
    assert expression_type("p * d", SCHEMA) == pa.float64()
    assert value("p > d") is True


def test_a_sum_of_products_of_decimals_is_exact() -> None:
    query = Query(
        "q",
        source="t",
        time="ts",
        windows={"w": PeriodicWindow(10, 10)},
        aggs={"s": agg.sum("p * p")},
    )
    prices = pa.array([Decimal("2.55"), Decimal("0.35")], pa.decimal128(10, 2))
    table = pa.table({"ts": [1, 2], "p": prices})
    (row,) = evaluate(query, rows_of(table))
    assert row.values == (Decimal("6.6250"),)
    assert result_schema(query, table.schema).field("s").type == pa.decimal128(31, 4)


# Casts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cast('2.345' as decimal(5,2))", Decimal("2.35")),
        ("cast(x as decimal)", Decimal(2)),
        ("cast(-2.5 as decimal(3,0))", Decimal(-3)),
        ("cast('2024-05-17' as date)", NOON.date()),
        ("cast('2024-5-7 10:00:00' as date)", dt.date(2024, 5, 7)),
        ("DATE '2024-05-17'", NOON.date()),
        ("cast(ts as date)", NOON.date()),
        ("cast(day as timestamp)", NOON.replace(hour=0, minute=0, second=0)),
        ("TIMESTAMP '2024-05-17 14:34:56+02:00'", NOON),
        ("cast('2024-05-17T12:34:56Z' as timestamp)", NOON),
        ("cast(0 as timestamp)", dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        ("cast('2024-05' as date)", dt.date(2024, 5, 1)),
        ("cast('2024' as timestamp)", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("cast('1.5d' as double)", 1.5),
        ("cast(ts as bigint)", 1715949296),
        ("cast(2.9 as int)", 2),
        ("cast(-2.9e0 as int)", -2),
        ("cast(' 12 ' as int)", 12),
        ("cast(flag as int)", 1),
        ("cast('yes' as boolean)", True),
        ("cast(0 as boolean)", False),
        ("try_cast('a' as int)", None),
        ("try_cast(300 as tinyint)", None),
        ("cast(nothing as string)", None),
        ("cast(null as int)", None),
        ("cast(0.1e0 as float)", 0.10000000149011612),
        ("cast(1e300 as float)", math.inf),
        # text
        ("cast(1e20 as string)", "1.0E20"),
        ("cast(1e0 as string)", "1.0"),
        ("cast(1e-3 as string)", "0.001"),
        ("cast(1e-4 as string)", "1.0E-4"),
        ("cast(-1234567.5e0 as string)", "-1234567.5"),
        ("cast(12345678e0 as string)", "1.2345678E7"),
        ("cast(f as string)", "0.1"),
        ("cast(p as string)", "2.50"),
        ("cast(x as string)", "2"),
        ("cast(flag as string)", "true"),
        ("concat(flag, '-', x, '-', d)", "true-2-0.5"),
        ("flag || s", "trueabc"),
        ("cast(ts as string)", "2024-05-17 12:34:56"),
        ("cast(berlin as string)", "2024-05-17 12:34:56"),
        ("cast(TIMESTAMP '2024-05-17 01:02:03.0405' as string)", "2024-05-17 01:02:03.0405"),
        ("cast(day as string)", "2024-05-17"),
        ("cast(cast('NaN' as double) as string)", "NaN"),
        ("cast(cast('-Infinity' as double) as string)", "-Infinity"),
    ],
)  # fmt: skip
def test_casts(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("cast('a' as int)", "cast('2.5' as int)", "cast(300 as tinyint)", "cast(1e30 as bigint)"),
        *("cast(cast('NaN' as double) as int)", "cast(1000 as decimal(3,1))", "cast('x' as date)"),
        *("cast('' as timestamp)", "cast('2024-13-01' as date)", "cast('maybe' as boolean)"),
        *("cast('1_0' as double)", "cast('1_0' as int)", "cast('1_0' as decimal)"),
    ],
)
def test_a_cast_that_does_not_fit_is_an_error_of_the_events(text: str) -> None:
    with pytest.raises(DataError, match="cannot cast"):
        value(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "cast(day as int)",
            "cast(x as date)",
            "cast(ts as boolean)",
            "s + s",
            "d div 2",
            "-flag",
        ),
        *("ts + 1", "cast(x as decimal(39, 1))", "round(p, x)", "sqrt(ts)", "flag & 1"),
    ],
)
def test_what_no_value_fits_is_an_error_of_the_query(text: str) -> None:
    with pytest.raises(QueryError, match="cannot compute"):
        expression_type(text, SCHEMA)


def test_a_cast_to_a_type_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="cannot cast to BINARY"):
        expression_type("cast(s as binary)", SCHEMA)


# Comparisons


@pytest.mark.parametrize(
    "text",
    [
        *("x = '2'", "'2' = x", "x in ('2')", "x in (1, '2')", "x < '10'", "s = 'abc'"),
        *("d = '0.5'", "p = '2.5'", "p = 2.5", "p in (1, 2.5)", "x = 2.0", "x = 2e0"),
        "ts in ('2024-05-17 12:34:56')",
        "ts between '2024-05-17' and '2024-05-18'",
        "naive between '2024-05-17' and '2024-05-18'",
        *("day > '2024-01-01'", "day = '2024-05-17'", "day < ts", "day < naive", "ts = naive"),
        *("ts = berlin", "day = DATE '2024-05-17'", "ts > day", "word = 'w'", "flag = 'true'"),
        *("x <=> '2'", "nothing <=> null", "not (x <=> null)", "x is distinct from 3"),
        *("s like 'a%'", "s not like 'b%'", "not s like 'b%'", "x is not null", "flag is true"),
        *("x between 1 and 2.5", "not (x between 3 and nothing)", "case x when '2' then true end"),
        *("nullif(x, '2') is null", "coalesce(nothing, '5') = 5", "greatest(ts, naive) = ts"),
    ],
)
def test_true(text: str) -> None:
    assert expression_type(text, SCHEMA) == pa.bool_()
    assert value(text) is True


@pytest.mark.parametrize("text", ["s > 1", "x = 'two'", "ts > 'yesterday'", "coalesce(x, s) = 's'"])
def test_text_that_is_not_of_the_other_type_is_an_error_of_the_events(text: str) -> None:
    with pytest.raises(DataError, match="cannot cast"):
        value(text, x=None if "coalesce" in text else 2)


@pytest.mark.parametrize("text", ["flag = 1", "ts = 5", "flag > d", "coalesce(flag, x)", "day = 1"])
def test_types_that_never_meet_are_an_error_of_the_query(text: str) -> None:
    with pytest.raises(QueryError, match="no common type"):
        expression_type(text, SCHEMA)


@pytest.mark.parametrize(
    "where", ["x", "not x", "x and true", "s or flag", "upper(s)", "if(x, 1, 2) = 1", "x is true"]
)
def test_a_filter_that_is_no_condition_is_refused(where: str) -> None:
    with pytest.raises(QueryError, match="not a condition"):
        check_filter(where, SCHEMA)
    for asked in (
        Query(
            "q",
            source="t",
            time="ts",
            where=where,
            windows={"w": PeriodicWindow(1, 1)},
            aggs={"n": agg.count()},
        ),
        Query(
            "q",
            source="t",
            time="ts",
            windows={"w": PunctuatedWindow(where)},
            aggs={"n": agg.count()},
        ),
    ):
        with pytest.raises(QueryError, match="not a condition"):
            result_schema(asked, SCHEMA)


@pytest.mark.parametrize("where", [None, "flag", "not flag", "x > 1 and flag", "(null)", "x <=> 1"])
def test_a_filter_that_is_a_condition_is_kept(where: str | None) -> None:
    check_filter(where, SCHEMA)


# Text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"'50%' like '50\\%'", True),
        (r"'501' like '50\\%'", False),
        ("'a_b' like 'a!_b' escape '!'", True),
        ("'axb' like 'a!_b' escape '!'", False),
        ("'axb' not like 'a!_b' escape '!'", True),
        ("'a\nb' like 'a%b'", True),
        ("'a.b' like 'a_b'", True),
        ("'abb' like 'a.b'", False),
        ("substring('abc', -5, 3)", "a"),
        ("substring('abc', -2)", "bc"),
        ("substring('abc', 0, 2)", "ab"),
        ("substring('abc', 2, -1)", ""),
        ("substr('abc', 2, 1)", "b"),
        ("substring(12345, 2, 2)", "23"),
        ("trim('  a\t ')", "a\t"),
        ("trim(leading 'x' from 'xxax')", "ax"),
        ("trim(trailing 'x' from 'xxax')", "xxa"),
        ("trim(both 'x' from 'xxax')", "a"),
        ("trim('xy' from 'xyaxy')", "a"),
        ("trim(trailing from ' a ')", " a"),
        ("trim('' from ' a ')", " a "),
        ("trim(nothing from s)", None),
        ("length(x)", 1),
        ("upper(flag)", "TRUE"),
        ("concat(s, nothing)", None),
    ],
)
def test_text(text: str, expected: Any) -> None:
    assert value(text) == expected


def test_an_escape_before_nothing_is_an_error() -> None:
    with pytest.raises(DataError, match="escape"):
        value(r"'a' like 'a\\'")


# Times


@pytest.mark.parametrize("name", ["ts", "naive", "berlin"])
def test_parts_of_times_are_those_of_utc(name: str) -> None:
    parts = ("year", "quarter", "month", "day", "hour", "minute", "second")
    assert [value(f"{part}({name})") for part in parts] == [2024, 2, 5, 17, 12, 34, 56]


def test_parts_of_dates_and_text() -> None:
    assert value("hour(day)") == 0
    assert value("year('2024-05-17')") == 2024
    with pytest.raises(QueryError, match="HOUR"):
        expression_type("hour(x)", SCHEMA)


# Numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sqrt(-x)", math.nan),
        ("power(-x, 0.5)", math.nan),
        ("power(0, -1)", math.inf),
        ("power(10, 400)", math.inf),
        ("power(-10, 401)", -math.inf),
        ("exp(1000)", math.inf),
        ("ln(0)", None),
        ("ln(1)", 0.0),
        ("sign(-5)", -1.0),
        ("sign(p)", 1.0),
        ("7 / 2", 3.5),
        ("-7 div 2", -3),
        ("-7 % 3", -1),
        ("-7.5e0 % 2", -1.5),
        ("mod(7, -3)", 1),
        ("p div 2", 1),
        ("round(2.5e0)", 3.0),
        ("round(-2.5e0)", -3.0),
        ("round(2.675e0, 2)", 2.68),
        ("round(15, -1)", 20),
        ("round(15, 2)", 15),
        ("round(1e300, 2)", 1e300),
        ("floor(-0.5e0)", -1),
        ("ceil(0.5e0)", 1),
        ("'2' + 1", 3),
        ("'2.5' + d", 3.0),
        ("x + nothing", None),
        ("nothing / 0", None),
        ("~x", -3),
        ("x & 3 | 4 ^ 1", 7),
        ("9223372036854775808", Decimal(2**63)),
        ("if(x > 1, d, x)", 0.5),
        ("case when x > 5 then 1 end", None),
    ],
)
def test_numbers(text: str, expected: Any) -> None:
    found = value(text)
    if isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(found)
    else:
        assert found == expected
        assert type(found) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("x / 0", "x % 0", "x div 0", "d / 0", "p / 0", "p % 0", "d % 0e0"),
        *("9223372036854775807 + x", "9223372036854775807 * x", "-big - x", "abs(least)"),
        *("-least", "least div -1", "floor(nan)", "ceil(inf)", "floor(1e30)", "sqrt('a')"),
        *("s + 1", "round(9223372036854775807, -1)", "bytes || s", "bit + 1"),
    ],
)
def test_every_failure_is_an_error_of_weft(text: str) -> None:
    odd = {"big": 2**63 - 1, "least": -(2**63), "nan": math.nan, "inf": math.inf}
    with pytest.raises(WeftError):
        value(text, **odd, bytes=b"\xff", bit=b"1")


def test_an_overflow_names_the_expression_and_the_values() -> None:
    with pytest.raises(DataError, match=r"cannot compute x \* y where x = 2, y = 92233720368547"):
        value("x * y", y=2**63 - 1)


@pytest.mark.parametrize("text", ["date_trunc('day', ts)", "foo(x)", "floor(d, 1)", "x[0]"])
def test_what_cannot_be_evaluated_says_so(text: str) -> None:
    with pytest.raises(UnsupportedError):
        expression_type(text, SCHEMA)
    with pytest.raises(UnsupportedError):
        value(text)


def test_a_branch_that_is_not_taken_cannot_fail() -> None:
    assert value("case when x <> 0 then 1 / x else -1 end", x=0) == -1.0
    assert value("coalesce(x, 1 div 0)") == 2
    assert value("flag or 1 / 0 > 1") is True


def test_events_without_types_are_evaluated_by_their_values() -> None:
    assert compiled("a * b")({"a": Decimal("2.50"), "b": 2}) == Decimal("5.00")
    assert compiled("a > '2024-01-01'")({"a": dt.date(2024, 1, 2)}) is True
    assert compiled("a")({"a": [1]}) == [1]
    with pytest.raises(DataError, match="no column 'a'"):
        compiled("a + 1")({"b": 1})
    with pytest.raises(DataError, match="no column 'a'"):
        compiled("a")({"b": 1})


# Every function


CALLS = {
    "abs": ("abs(-x)", 2),
    "cast": ("cast(x as string)", "2"),
    "ceil": ("ceil(d)", 1),
    "ceiling": ("ceiling(d)", 1),
    "coalesce": ("coalesce(nothing, x)", 2),
    "concat": ("concat(s, s)", "abcabc"),
    "day": ("day(ts)", 17),
    "exp": ("exp(0)", 1.0),
    "floor": ("floor(d)", 0),
    "greatest": ("greatest(x, 5, nothing)", 5),
    "hour": ("hour(ts)", 12),
    "if": ("if(flag, x, 0)", 2),
    "ifnull": ("ifnull(nothing, x)", 2),
    "least": ("least(x, 5, nothing)", 2),
    "length": ("length(s)", 3),
    "ln": ("ln(1)", 0.0),
    "lower": ("lower('ABC')", "abc"),
    "minute": ("minute(ts)", 34),
    "mod": ("mod(i, x)", 1),
    "month": ("month(ts)", 5),
    "nullif": ("nullif(x, 2)", None),
    "nvl": ("nvl(nothing, x)", 2),
    "power": ("power(x, 3)", 8.0),
    "quarter": ("quarter(day)", 2),
    "round": ("round(d, 0)", 1.0),
    "second": ("second(ts)", 56),
    "sign": ("sign(x)", 1.0),
    "sqrt": ("sqrt(16)", 4.0),
    "substr": ("substr(s, 2)", "bc"),
    "substring": ("substring(s, 1, 2)", "ab"),
    "trim": ("trim(' a ')", "a"),
    "upper": ("upper(s)", "ABC"),
    "year": ("year(ts)", 2024),
}


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_every_function_that_sql_may_call_runs_and_has_a_type(name: str) -> None:
    text, expected = CALLS[name]
    assert text.startswith(name)
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)
    assert not pa.types.is_null(expression_type(text, SCHEMA))


# The same on whole columns


def tables_of_this_file() -> list[str]:
    """Every expression of the tests above that has a value."""
    tables = (
        *(test_decimals_keep_the_digits_of_spark, test_casts, test_text, test_numbers, test_true),
        *(test_text_that_is_not_of_the_other_type_is_an_error_of_the_events,),
        *(test_a_cast_that_does_not_fit_is_an_error_of_the_events,),
    )
    marks = [mark for test in tables for mark in test.pytestmark]  # type: ignore[attr-defined]
    cases = [case for mark in marks for case in mark.args[1]]
    texts = [case if isinstance(case, str) else case[0] for case in cases]
    return list(dict.fromkeys([*texts, *(text for text, _ in CALLS.values())]))


@pytest.mark.parametrize("text", tables_of_this_file())
def test_columns_have_the_values_of_rows(text: str) -> None:
    other = {
        **dict.fromkeys(EVENT),
        "x": -(2**53) - 1,
        "d": -0.0,
        "f": -0.0,
        "p": Decimal("-0.07"),
        "s": "5%",
        "flag": False,
    }
    third = {**other, "d": 0.0, "f": 0.0, "s": "é", "i": 3, "day": NOON.date()}
    table = pa.Table.from_pylist([EVENT, other, third, EVENT], SCHEMA)
    frame = Frame.of(table, SCHEMA.names)
    try:
        wanted = [compiled(canonical(text))(row) for row in rows_of(table)]
    except WeftError as error:
        with pytest.raises(type(error)):
            columnar(canonical(text), frame)
        return
    found = columnar(canonical(text), frame)
    promised = expression_type(text, SCHEMA)
    assert found.type == promised or pa.types.is_null(promised)
    assert repr(found.to_pylist()) == repr(pa.array(wanted, found.type).to_pylist())


@pytest.mark.parametrize(("precision", "scale"), [(10, 2), (15, 7), (18, 6), (38, 10)])
def test_a_decimal_column_becomes_the_nearest_doubles(precision: int, scale: int) -> None:
    step = 10**precision // 997
    exact = [Decimal(step * n + n).scaleb(-scale) for n in range(-900, 900)] + [None]
    prices = pa.array(exact, pa.decimal128(precision, scale))
    frame = Frame({"p": prices.slice(3), "d": pa.array([1.0] * len(prices)).slice(3)}, 1798)
    wanted = [None if price is None else float(price) for price in exact[3:]]
    assert columnar("CAST(p AS DOUBLE)", frame).to_pylist() == wanted
    assert columnar("p * d", frame).to_pylist() == wanted
