from __future__ import annotations

import datetime as dt

import pytest

import weft
from weft.query import JoinInput, JoinQuery

HOURLY = {"1h": weft.tumbling("1 hour")}
COUNT = {"n": weft.agg.count()}


def query(**settings):
    return weft.Query(
        settings.pop("name", "q"), **{"source": "t", "windows": HOURLY, "aggs": COUNT} | settings
    )


def test_a_query_is_a_value() -> None:
    assert query() == query()
    assert hash(query()) == hash(query())
    assert query(where="x>0") == query(where="x > 0")


def test_a_query_knows_the_columns_it_reads() -> None:
    asked = query(
        keys={"town": "upper(city)"},
        where="price > 0",
        windows={"p": weft.punctuated("kind = 'x'"), "m": weft.measured("km", 5, 5)},
        aggs={"s": weft.agg.sum("price * quantity")},
    )
    assert asked.inputs == ("city", "kind", "km", "price", "quantity")
    assert asked.columns == ("town", "window", "window_start", "window_end", "s")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"aggs": {}}, "asks for no aggregate"),
        ({"windows": {}}, "has no window"),
        ({"name": ""}, "needs a name"),
        ({"aggs": {"n": "count"}}, "not an aggregate"),
        ({"aggs": {"n": "agv(x)"}}, "did you mean 'avg'"),
        ({"aggs": {"n": "sum(x"}}, "not an aggregate"),
        ({"aggs": {"n": "sum(x) + 1"}}, "not an aggregate"),
        ({"aggs": {"n": "sum(x), max(x)"}}, "not an aggregate"),
        ({"aggs": {"n": "var(DISTINCT x)"}}, r"'var\(DISTINCT x\)': .* is not supported"),
        ({"aggs": {"n": "percentile(x, y)"}}, "the rank of a percentile must be a number"),
        ({"aggs": {"n": "sum(max(x))"}}, "holds an aggregate"),
        ({"aggs": {"n": 7}}, "'n' is 7, not an aggregate"),
        ({"windows": {"w": 7}}, "not a window"),
        ({"windows": {"w": "hourly"}}, "cannot read 'hourly' as a duration"),
        ({"keys": "device, user"}, "as an expression"),
        ({"keys": ["n"]}, "two result columns named 'n'"),
        ({"keys": ["window"]}, "two result columns named 'window'"),
        ({"where": "x >"}, "cannot read 'x >' as an expression"),
        ({"where": "SELECT 1"}, "as an expression"),
        ({"watermark": "-1 minute"}, "negative watermark"),
    ],
)
def test_impossible_queries_are_refused(settings, message: str) -> None:
    with pytest.raises(weft.QueryError, match=message):
        query(**settings)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("avg(temp)", weft.agg.avg("temp")),
        ("COUNT(*)", weft.agg.count()),
        ("count(DISTINCT user)", weft.agg.count_distinct("user")),
        ("mean(price*quantity)", weft.agg.avg("price * quantity")),
        ("percentile(temp, 0.95)", weft.agg.percentile("temp", 0.95)),
        ("max_by(`odd name`, coalesce(x, 0))", weft.agg.max_by("`odd name`", "coalesce(x, 0)")),
        ("sum(x) FILTER (WHERE y = 'it''s')", weft.agg.sum("CASE WHEN y = 'it\\'s' THEN x END")),
        ("first(x IGNORE NULLS)", weft.agg.first("x")),
        ("sum(CAST(x AS DOUBLE))", weft.agg.sum("CAST(x AS DOUBLE)")),
    ],
)
def test_aggregates_are_calls_or_sql(text: str, call: weft.agg.AggregateCall) -> None:
    assert query(aggs={"a": text}) == query(aggs={"a": call})


def test_custom_aggregates_are_called_by_their_names_in_sql_too() -> None:
    span = weft.agg.custom(
        "span_of_sql",
        lift=lambda x: (x, x),
        combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
        lower=lambda p: p[1] - p[0],
        identity=(float("inf"), float("-inf")),
        commutative=True,
        idempotent=True,
    )
    assert query(aggs={"s": "span_of_sql(x)"}) == query(aggs={"s": span("x")})


def test_a_duration_is_a_tumbling_window_and_a_text_is_a_key() -> None:
    assert query(windows={"1h": "1 hour"}) == query()
    assert query(windows={"1h": dt.timedelta(hours=1)}) == query()
    assert query().with_windows({"1h": "60 minutes"}) == query()
    assert query(keys="device") == query(keys=["device"]) == query(keys={"device": "device"})
    assert query(keys="upper(city)").keys == (("upper(city)", "UPPER(city)"),)


def test_a_workload_keeps_names_unique() -> None:
    workload = weft.Workload([query(name="a"), query(name="b", source="u")])
    assert workload.sources == ("t", "u")
    with pytest.raises(weft.QueryError, match="already in the workload"):
        workload.add(query(name="a"))
    workload.remove("a")
    assert [q.name for q in workload] == ["b"]
    with pytest.raises(weft.QueryError, match="the queries are: b"):
        workload.remove("a")
    with pytest.raises(weft.QueryError, match="is not a query"):
        workload.add("SELECT 1")  # type: ignore[arg-type]


def test_a_join_needs_two_inputs_under_different_names() -> None:
    side = JoinInput("t", "a", "ts", None)
    with pytest.raises(weft.QueryError, match="two or more inputs"):
        JoinQuery("j", (side, side), (("a.x", "a.y"),), (), (("n", weft.agg.count()),))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: weft.agg.percentile("x", 1.5), "cannot look at rank 1.5"),
        (lambda: weft.agg.percentile("x", -0.1), "cannot look at rank -0.1"),
    ],
)
def test_impossible_aggregates_are_refused(make, message: str) -> None:
    with pytest.raises(weft.QueryError, match=message):
        make()
