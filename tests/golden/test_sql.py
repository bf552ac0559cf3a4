"""SQL in, workloads or errors out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from golden.loader import Case, cases
from weft.errors import QueryError
from weft.parsing import parse
from weft.query import AnyQuery, JoinQuery

if TYPE_CHECKING:
    from collections.abc import Callable

_TABLE = re.compile(r"^-- table (\w+)\((.*)\)$", re.M)


def schemas_of(text: str) -> dict[str, list[str]] | None:
    """Read the tables that comments such as `-- table readings(ts, temp)` declare."""
    return {name: columns.split(", ") for name, columns in _TABLE.findall(text)} or None


def describe(query: AnyQuery) -> str:
    """Print everything a query says, a line for each part."""
    lines = [f"query {query.name}"]
    if isinstance(query, JoinQuery):
        for i in query.inputs:
            where = f" where {i.where}" if i.where is not None else ""
            lines.append(f"  {i.source} as {i.alias}, time {i.time}, {i.window or 'table'}{where}")
        lines += [f"  on {left} = {right}" for left, right in query.on]
    else:
        lines.append(f"  from {query.source}, time {query.time}")
        if query.where is not None:
            lines.append(f"  where {query.where}")
        lines += [f"  window {label!r}: {window}" for label, window in query.windows]
    lines += [f"  key {name!r}: {expression}" for name, expression in query.keys]
    lines += [f"  agg {name!r}: {call}" for name, call in query.aggs]
    lines.append(f"  columns {', '.join(query.columns)}")
    return "\n".join(lines)


@pytest.mark.parametrize("case", cases("sql/*.test"))
def test_statement(case: Case, golden: Callable[[Case, str], None]) -> None:
    workload = parse(case.text, schemas_of(case.text))
    golden(case, "\n".join(describe(query) for query in workload))


@pytest.mark.parametrize("case", cases("errors/sql*.test"))
def test_bad_statement(case: Case, golden: Callable[[Case, str], None]) -> None:
    with pytest.raises(QueryError) as caught:
        parse(case.text, schemas_of(case.text))
    assert caught.value.hint
    assert_caret_in(case.text, str(caught.value))
    golden(case, str(caught.value))


def assert_caret_in(text: str, message: str) -> None:
    """The line and column of a message are those of its caret, in the user's own text."""
    place, shown, caret, *_ = message.splitlines()
    line, column = map(int, re.findall(r"\d+", place)[:2])
    source = [*text.splitlines(), ""][line - 1]
    assert shown == f"  {source}"
    assert caret == " " * (column + 1) + "^"
    assert column <= len(source) + 1


def test_there_are_enough_bad_statements() -> None:
    assert len(cases("errors/sql*.test")) >= 45
