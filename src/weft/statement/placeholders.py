"""What stands in a statement for something that is given beside it: tables and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot.tokenizer_core import TokenType

from weft.statement.syntax import tokens_of

if TYPE_CHECKING:
    from collections.abc import Collection

Arguments = Mapping[str, Any] | Sequence[Any]


def with_plain_names(text: str, tables: Collection[str]) -> str:
    """Write `{readings}`, as `spark.sql` names a DataFrame that is given, as the name alone.

    >>> with_plain_names("SELECT '{t}' FROM {t} JOIN {u}", {"t"})
    "SELECT '{t}' FROM t JOIN {u}"
    """
    if "{" not in text:
        return text
    tokens = tokens_of(text) or []
    kinds = (TokenType.L_BRACE, TokenType.R_BRACE)
    for first, name, last in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        if (first.token_type, last.token_type) == kinds and name.text in tables:
            text = text[: first.start] + name.text + text[last.end + 1 :]
    return text


def with_named_parameters(
    text: str, args: Arguments | None
) -> tuple[str, Mapping[str, Any] | None]:
    """Give parameters that are told by their order names, so that a text may be taken apart.

    >>> with_named_parameters("SELECT ?, '?' FROM t WHERE x > ?", [1, 2])
    ("SELECT :weft_p0, '?' FROM t WHERE x > :weft_p1", {'weft_p0': 1, 'weft_p1': 2})
    """
    if args is None or isinstance(args, Mapping):
        return text, args
    marks = [t for t in tokens_of(text) or () if t.token_type == TokenType.PLACEHOLDER]
    for number, mark in reversed(list(enumerate(marks))):
        text = f"{text[: mark.start]}:weft_p{number}{text[mark.end + 1 :]}"
    return text, {f"weft_p{number}": value for number, value in enumerate(args)}
