"""Blocks of statements: which there are, what they read, and what keeps them from being shared."""

from __future__ import annotations

import pytest

from weft.statement.blocks import Block, Surroundings, block_of, window_selects
from weft.statement.projection import Projection
from weft.statement.relations import Obstacle, select_of_source
from weft.statement.syntax import query_of, written_of
from weft.window import hopping, session, tumbling

AROUND = Surroundings(lambda select: frozenset({"ts", "device", "temp", "status"}), "UTC")


def blocks(text: str, around: Surroundings = AROUND) -> list[Block]:
    tree = query_of(text)
    assert tree is not None
    return [block_of(select, around) for select in window_selects(tree)]


def test_blocks_are_found_wherever_they_stand() -> None:
    text = """
    WITH a AS (SELECT device, COUNT(*) AS n FROM t GROUP BY device, window(ts, '1 hour'))
    SELECT * FROM a JOIN (SELECT COUNT(*) FROM t GROUP BY session_window(ts, '5 minutes')) ON true
    WHERE n > (SELECT MAX(m) FROM (
        SELECT COUNT(*) AS m FROM t GROUP BY window(ts, '2 hours', '1 hour', '7 minutes')))
    UNION ALL SELECT window(ts, '1 day') AS w, 1 FROM t GROUP BY w
    """
    assert [block.window.kind for block in blocks(text)] == [
        tumbling("1 hour"),
        session("5 minutes"),
        hopping("2 hours", "1 hour", "7 minutes"),
        tumbling("1 day"),
    ]


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("FROM base", "FROM Base AS b", True),
        ("FROM base", "FROM other", True),  # which stands for the same query
        ("FROM base", "FROM t", False),
        ("FROM base WHERE temp > 1", "FROM base WHERE temp > 2", True),
        ("FROM t JOIN u ON t.a = u.a", "FROM t JOIN u ON t.a = u.b", False),
        ("FROM (SELECT * FROM t WHERE s = 'B')", "FROM (select * from T where S = 'B') x", True),
        ("FROM (SELECT * FROM t WHERE s = 'B')", "FROM (SELECT * FROM t WHERE s = 'b')", False),
    ],
)
def test_blocks_read_the_same_if_their_sources_stand_for_the_same(
    one: str, two: str, same: bool
) -> None:
    common = "WITH base AS (SELECT * FROM t WHERE x), other AS (SELECT * FROM t WHERE x)"
    picked = "SELECT COUNT(*)"
    grouped = "GROUP BY window(ts, '1 hour')"
    first, second = blocks(f"{common} {picked} {one} {grouped} UNION ALL {picked} {two} {grouped}")
    assert (first.events == second.events) == same


def test_keys_are_named_by_column_alias_and_position() -> None:
    by_column, by_alias, by_place = blocks(
        "SELECT device, 1 FROM t GROUP BY device, window(ts, '1 hour') UNION ALL "
        "SELECT upper(device) AS d, 2 FROM t GROUP BY d, window(ts, '1 hour') UNION ALL "
        "SELECT lower(device) AS temp, 3 FROM t GROUP BY 1, window(ts, '1 hour')"
    )
    texts = [block.key_texts for block in (by_column, by_alias, by_place)]
    assert texts == [(("device",),), (("upper(device)",),), (("lower(device)",),)]


@pytest.mark.parametrize(
    ("by", "sets"),
    [
        ("ROLLUP (b, a), window(ts, '1 hour')", [("a", "b"), ("b",), ()]),
        ("CUBE (a, (b, c)), window(ts, '1 hour')", [("a", "b", "c"), ("a",), ("b", "c"), ()]),
        ("a, window(ts, '1 hour'), ROLLUP (b)", [("a", "b"), ("a",)]),
        ("GROUPING SETS ((a, window(ts, '1 hour')), (window(ts, '1 hour')))", [("a",), ()]),
        ("ROLLUP (a), CUBE (b), window(ts, '1 hour')", [("a", "b"), ("a",), ("b",), ()]),
        ("window(ts, '1 hour'), GROUPING SETS (ROLLUP (a), (b))", [("a",), (), ("b",)]),
    ],
)
def test_grouping_sets_are_key_sets(by: str, sets: list[tuple[str, ...]]) -> None:
    (block,) = blocks(f"SELECT 1 FROM t GROUP BY {by}")
    assert list(block.key_texts) == sets


def test_a_column_goes_before_an_alias_in_group_by() -> None:
    (block,) = blocks("SELECT upper(device) AS device FROM t GROUP BY device, window(ts, '1 hour')")
    assert block.key_texts == (("device",),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "SELECT 1 FROM t GROUP BY ROLLUP (a, window(ts, '1 hour'))",
            "grouping sets has no window",
        ),
        (
            "SELECT 1 FROM t GROUP BY a, window(ts, '1 hour') WITH ROLLUP",
            "group without the window",
        ),
        (
            "SELECT 1 FROM t GROUP BY CUBE (a, b, c, d, e, f, g), window(ts, '1 hour')",
            "64 grouping",
        ),
        ("SELECT rand() FROM t GROUP BY window(ts, '1 hour')", "not the same from call to call"),
        ("SELECT 1 FROM t WHERE d = current_date GROUP BY window(ts, '1 hour')", "call to call"),
        ("SELECT 1 FROM t GROUP BY session_window(ts, gap)", "the length gap is not written out"),
        ("SELECT 1 FROM t GROUP BY window(ts, '1 month')", "1 month"),
        ("SELECT 1 FROM t GROUP BY date_trunc('hour', ts)", "events without ts are a group"),
    ],
)
def test_what_weft_does_not_share_is_left_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(Obstacle, match=why):
        blocks(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT histogram_numeric(a, 5) FROM t GROUP BY window(ts, '1 hour')", "not shared"),
        ("SELECT VAR_POP(DISTINCT a) FROM t GROUP BY window(ts, '1 hour')", "DISTINCT"),
        (
            "SELECT approx_count_distinct(device) FROM t GROUP BY device, window(ts, '1 h')",
            "not shared",
        ),
        ("SELECT temp FROM t GROUP BY device, window(ts, '1 hour')", "temp is neither a key"),
    ],
)
def test_aggregates_that_are_spark_s_keep_a_block_with_spark(text: str, why: str) -> None:
    (block,) = blocks(text)
    with pytest.raises(Obstacle, match=why):
        Projection(block, AROUND.columns_of).check()


def test_a_block_over_results_keeps_what_it_makes_of_groups() -> None:
    (block,) = blocks(
        "SELECT DISTINCT device AS d, window.start, COUNT(*) AS n, "
        "MAX(temp) - MIN(temp) AS spread, n * 2 FROM t "
        "GROUP BY device, window(ts, '2 hours', '1 hour') HAVING n > 1 AND device <> 'x' "
        "ORDER BY MAX(temp) DESC, d LIMIT 5"
    )
    made = Projection(block, AROUND.columns_of).over("results", ["d", "start", "n", "spread", "m"])
    assert written_of(made) == (
        "SELECT DISTINCT weft_k0 AS `d`, window.start AS `start`, weft_a0 AS `n`, "
        "weft_a1 - weft_a2 AS `spread`, n * 2 AS `m` FROM results "
        "WHERE (weft_a0) > 1 AND weft_k0 <> 'x' ORDER BY weft_a1 DESC, d LIMIT 5"
    )


def test_what_a_block_reads_stands_alone_with_the_definitions_it_needs() -> None:
    text = """
    WITH t AS (SELECT * FROM t), u AS (SELECT * FROM t), v AS (SELECT 1)
    SELECT 1 FROM u WHERE a GROUP BY window(ts, '1 hour')
    """
    (block,) = blocks(text)
    alone = select_of_source(block.select, block.keys)
    assert written_of(alone) == "WITH t AS (SELECT * FROM t), u AS (SELECT * FROM t) SELECT FROM u"
