"""Windows of other engines, in Spark's words."""

from __future__ import annotations

import pytest

from weft.statement.spellings import in_sparks_words

FIVE, TEN = "INTERVAL '5' MINUTES", "INTERVAL '10' MINUTES"


@pytest.mark.parametrize(
    ("function", "window"),
    [
        (f"TUMBLE(TABLE bid, DESCRIPTOR(ts), {TEN})", "window(ts, '10 MINUTES')"),
        (f"HOP(TABLE bid, DESCRIPTOR(ts), {FIVE}, {TEN})", "window(ts, '10 MINUTES', '5 MINUTES')"),
        (
            f"TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), SIZE => {TEN}, "
            f"OFFSET => {FIVE})",
            "window(ts, '10 MINUTES', '10 MINUTES', '5 MINUTES')",
        ),
        (
            f"SESSION(TABLE bid PARTITION BY item, DESCRIPTOR(ts), {FIVE})",
            "session_window(ts, '5 MINUTES')",
        ),
    ],
)
@pytest.mark.parametrize("form", ["{}", "TABLE({})"])
def test_table_functions_that_are_grouped_by_are_windows(
    function: str, window: str, form: str
) -> None:
    name = window.partition("(")[0]
    text = f"SELECT item, window_end, COUNT(*) AS n FROM {form.format(function)} "
    assert in_sparks_words(text + "GROUP BY item, window_start, window_end") == (
        f"SELECT item, {name}.end AS window_end, COUNT(*) AS n FROM bid GROUP BY item, {window}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT device, COUNT(*) FROM readings GROUP BY device, window(ts, '1 hour')",
        "SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), size)",  # a length that is not written out
        "SELECT * FROM SESSION(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTES)",
        "SELECT time_bucket(INTERVAL '1' MONTH, ts) FROM t",
        "not SQL",
    ],
)
def test_anything_else_is_left_as_it_is(text: str) -> None:
    assert in_sparks_words(text) is None
