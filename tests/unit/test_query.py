from __future__ import annotations

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
        ({"windows": {"w": "1 hour"}}, "not a window"),
        ({"keys": "device"}, r"write \['device'\]"),
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
