"""No text breaks the parser, and layout never changes what a statement means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot.errors import TokenError

from golden.loader import read
from weft.errors import QueryError
from weft.parsing import parse
from weft.parsing.dialect import Weft

if TYPE_CHECKING:
    import random

    from weft.query import Workload

_GOLDEN = Path(__file__).parents[1] / "golden"
GOOD = [c.text for p in sorted(_GOLDEN.glob("sql/*.test")) for c in read(p) if "--" not in c.text]
BAD = [c.text for p in sorted(_GOLDEN.glob("errors/sql*.test")) for c in read(p)]
VOCABULARY = sorted(
    {t.text for text in GOOD for t in Weft().tokenize(text) if t.text.isascii()}
    | {"HAVING", "ORDER BY", "OVER", "UNION", "WITH", "CASE", "WHEN", "END", "LIKE", "EXISTS"}
    | {"'", "`", "[", "]", "(", ")", "/*", "--", ";", "->", "=>", "::", "{", "}", "@", "?", "\\"}
)
_GAPS = (" ", "\n", "\t", "  ", " /* why not */ ", " -- so be it\n")


def tokens_of(text: str) -> list[str]:
    return [text[t.start : t.end + 1] for t in Weft().tokenize(text)]


def answer(text: str) -> Workload | None:
    """Parse; a refusal must be a `QueryError` with a place inside the text and a hint."""
    try:
        return parse(text)
    except QueryError as refusal:
        error = refusal
    assert error.hint
    assert error.line is not None
    assert error.column is not None
    lines = text.splitlines() or [""]
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    return None


def test_the_golden_statements_are_good() -> None:
    assert len(GOOD) > 40
    assert all(answer(text) is not None for text in GOOD)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(VOCABULARY), max_size=30))
def test_token_soup_is_refused_politely(words: list[str]) -> None:
    answer(" ".join(words))


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=80))
def test_any_text_is_refused_politely(text: str) -> None:
    answer("SELECT " + text)
    answer(text)


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(GOOD + BAD), st.randoms(use_true_random=False), st.integers(1, 4))
def test_damaged_statements_are_refused_politely(
    text: str, dice: random.Random, wounds: int
) -> None:
    try:
        words = tokens_of(text)
    except TokenError:
        words = text.split()
    for _ in range(wounds):
        at = dice.randrange(len(words) + 1)
        match dice.randrange(4):
            case 0:
                del words[at : at + dice.randrange(1, 4)]
            case 1:
                words.insert(at, dice.choice(VOCABULARY))
            case 2:
                words[at : at + 1] = [dice.choice(VOCABULARY)]
            case _:
                words[at:at] = words[at : at + dice.randrange(1, 6)]
    answer(" ".join(words))


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(GOOD), st.randoms(use_true_random=False))
def test_layout_and_case_do_not_change_the_workload(text: str, dice: random.Random) -> None:
    words = tokens_of(text)
    pieces = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        # Golden statements write keywords and units in capitals, and columns in small letters.
        free = len(word) > 1 and (word.isupper() or following == "(")
        recased = dice.choice([word, word.upper(), word.lower(), word.title()]) if free else word
        pieces.append(recased + dice.choice(_GAPS))
    assert parse("".join(pieces)) == parse(text)


@pytest.mark.parametrize("depth", [100, 1000])
def test_deep_nesting_is_refused_politely(depth: int) -> None:
    inside = "(" * depth + "x" + ")" * depth
    answer(f"SELECT MIN({inside}) FROM t GROUP BY window(ts, '1 hour')")
    sums = " + ".join(["x"] * depth)
    conjuncts = " AND ".join(["x > 1"] * depth)
    answer(f"SELECT MIN({sums}) FROM t [ROWS 1 SLIDE 1] WHERE {conjuncts}")
    for signs in range(depth, depth + 400, 20):
        answer(f"SELECT MIN({'- ' * signs}x) FROM t [ROWS 1 SLIDE 1]")
    answer(f"SELECT MIN({'abs(' * depth}x{')' * depth}) FROM t [ROWS 1 SLIDE 1]")
