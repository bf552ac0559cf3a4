"""Every statement in docs/sql.md is read, and every error in it is the real one."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import weft.agg
from weft.aggregates.base import function_names
from weft.aggregates.names import AGGREGATE_SYNONYMS
from weft.errors import QueryError
from weft.expression import SCALAR_FUNCTIONS
from weft.parsing import parse
from weft.parsing.names import WINDOW_FUNCTIONS

PAGE = Path(__file__).parents[3] / "docs" / "sql.md"
_BLOCK = re.compile(r"```sql\n(?P<sql>.*?)\n```\n(?:\n```text\n(?P<error>.*?)\n```)?", re.S)
EXAMPLES = [(m["sql"], m["error"]) for m in _BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("sql", "error"), EXAMPLES)
def test_example(sql: str, error: str | None) -> None:
    if error is None:
        assert len(parse(sql)) == sql.count(";\n\n") + 1
    else:
        with pytest.raises(QueryError) as caught:
            parse(sql)
        assert str(caught.value) == error


def test_python_examples() -> None:
    failed, tried = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert tried >= 5
    assert failed == 0


def test_the_page_names_everything_that_can_be_called() -> None:
    text = PAGE.read_text(encoding="utf-8")
    words = {word.casefold() for word in re.findall(r"\w+", text)}
    built_in = [name for name in function_names() if hasattr(weft.agg, name)]
    refused = {"slidingwindow", "snapshotwindow"}
    called = {*SCALAR_FUNCTIONS, *AGGREGATE_SYNONYMS, *built_in, *WINDOW_FUNCTIONS} - refused
    assert not sorted(called - words)
