"""Statements are written as they were read, or not touched."""

from __future__ import annotations

import pytest

from weft.errors import QueryError
from weft.statement.syntax import query_of, statements_of, written_of

FAITHFUL = [
    "select a::int, b::decimal(10, 2), cast(c as long), try_cast(d as timestamp_ntz) from t",
    "SELECT '\\d', 'it''s', \"two\", r'raw\\n', X'1F', 1.5D, 2BD, 10L, 1e3 FROM t",
    "SELECT TIMESTAMP '2024-01-01', DATE'2024-01-01'",
    "SELECT INTERVAL 1 DAY 2 HOURS, INTERVAL '1-2' YEAR TO MONTH",
    "SELECT a FROM t WHERE b IS NOT NULL AND c NOT IN (1, 2) AND NOT d AND e <=> f AND g RLIKE 'h'",
    "SELECT a FROM t WHERE b IS NOT DISTINCT FROM c AND d NOT LIKE 'x!%' ESCAPE '!'",
    "SELECT a FROM t ORDER BY a DESC NULLS LAST, b NULLS FIRST LIMIT 3 OFFSET 1",
    "SELECT count(DISTINCT a, b), sum(x) FILTER (WHERE y), first(z) IGNORE NULLS FROM t",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC) FROM t",
    "SELECT date_trunc('hour', ts), datediff(day, a, b), to_timestamp(x, 'yyyy') FROM t",
    "SELECT max(n) OVER w FROM t WINDOW w AS (ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "SELECT a, count(*) FROM t GROUP BY ALL QUALIFY row_number() OVER (ORDER BY a) = 1",
    "WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM a",
    "SELECT * FROM t LEFT SEMI JOIN u ON t.a = u.a LATERAL VIEW OUTER posexplode(a) x AS p, q",
    "SELECT * FROM t PIVOT (SUM(x) FOR y IN ('a' AS a, 'b' AS b))",
    "SELECT /*+ BROADCAST(u) */ a FROM t, u WHERE t.x = u.x -- why",
    "SELECT transform(a, x -> x + 1), m['k'], s.f, 7 DIV 2, a || b, -c FROM t",
    "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(n, s)",
    "SELECT a FROM t UNION ALL SELECT b FROM u EXCEPT SELECT c FROM v",
    "SELECT window, window.start FROM t GROUP BY window(ts, '1 hour')",
    "SELECT current_timestamp, current_date() FROM t",
]


@pytest.mark.parametrize("text", FAITHFUL)
def test_a_statement_is_written_as_it_was_read(text: str) -> None:
    tree = query_of(text)
    assert tree is not None
    assert query_of(written_of(tree)) is not None


@pytest.mark.parametrize(
    "text",
    [
        "FROM t SELECT a",  # an order of clauses of its own
        "SELECT a FROM t WHERE",
        "SELECT 'open FROM t",
        "INSERT INTO t SELECT 1",
        "SELECT 1; SELECT 2",
        "",
    ],
)
def test_what_would_be_written_otherwise_is_not_touched(text: str) -> None:
    assert query_of(text) is None


def test_texts_are_split_at_semicolons_outside_strings_and_comments() -> None:
    text = "-- name: a\nSELECT ';' -- not; here\n;\nSELECT 2; /* ; */\n-- name: c\nSELECT 3;;"
    assert statements_of(text) == {
        "a": "-- name: a\nSELECT ';' -- not; here",
        "q2": "SELECT 2",
        "c": "/* ; */\n-- name: c\nSELECT 3",
    }


def test_statements_have_names_of_their_own() -> None:
    with pytest.raises(QueryError, match="two statements are named 'a'"):
        statements_of("-- name: a\nSELECT 1; -- name: a\nSELECT 2")
