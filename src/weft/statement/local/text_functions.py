"""Functions of texts that DuckDB computes to Spark's answer."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.statement.local.operators import literal_number
from weft.statement.local.rules import Rule, need, texts
from weft.statement.local.values import Value, unless

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ASCII = "a text is not ASCII; Spark and DuckDB differ on letters of other alphabets"


def _ascii(function: str) -> Rule:
    def rule(values: Sequence[Value]) -> Value:
        (one,) = texts(values)
        made = unless(f"strlen({one}) <> length({one})", _ASCII, f"{function}({one})")
        return Value(made, pa.string())

    return rule


def _textual(template: str, kind: pa.DataType) -> Rule:
    """A function of texts alone, as many as the template has places."""

    def rule(values: Sequence[Value]) -> Value:
        sqls = texts(values)
        need(template.count("{") == len(sqls))
        return Value(template.format(*sqls), kind)

    return rule


def _concat(values: Sequence[Value]) -> Value:
    return Value(f"({' || '.join(texts(values))})", pa.string())


def _concat_ws(values: Sequence[Value]) -> Value:
    separator, *rest = texts(values)
    need(bool(rest) and values[0].literal is not None)
    return Value(f"concat_ws({separator}, {', '.join(rest)})", pa.string())


def _substring(values: Sequence[Value]) -> Value:
    first, *bounds = values
    (one,) = texts([first])
    start, *count = (literal_number(bound, "a bound of substring") for bound in bounds)
    need(start > 0 and all(c >= 0 for c in count))
    places = ", ".join(map(str, (start, *count)))
    return Value(f"substring({one}, {places})", pa.string())


def _replace(values: Sequence[Value]) -> Value:
    one, search, made = texts(values)
    need(bool(values[1].literal) and values[2].literal is not None)
    return Value(f"replace({one}, {search}, {made})", pa.string())


TEXT_FUNCTIONS: Mapping[str, Rule] = MappingProxyType(
    {
        "char_length": _textual("CAST(length({}) AS INTEGER)", pa.int32()),
        "concat": _concat,
        "concat_ws": _concat_ws,
        "contains": _textual("contains({}, {})", pa.bool_()),
        "endswith": _textual("ends_with({}, {})", pa.bool_()),
        "lcase": _ascii("lower"),
        "length": _textual("CAST(length({}) AS INTEGER)", pa.int32()),
        "lower": _ascii("lower"),
        "replace": _replace,
        "startswith": _textual("starts_with({}, {})", pa.bool_()),
        "substring": _substring,
        "trim": _textual("trim({}, ' ')", pa.string()),
        "ucase": _ascii("upper"),
        "upper": _ascii("upper"),
    }
)
