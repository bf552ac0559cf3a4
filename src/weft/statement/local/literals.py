"""What is written out in a statement: numbers, texts, times and lengths of time."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.errors import QueryError
from weft.statement.local.column_types import INSTANT, LENGTH, WALL_TIME, duck_name
from weft.statement.local.values import Value, number, text
from weft.statement.relations import Obstacle
from weft.time import duration_us

if TYPE_CHECKING:
    from sqlglot import exp

    from weft.statement.syntax import PlainInterval, TypedLiteral

_SUFFIXES: dict[str, pa.DataType] = {"Y": pa.int8(), "S": pa.int16(), "L": pa.int64()}
_NUMBER = re.compile(r"(\d+)?(\.\d*)?(E[+-]?\d+)?(BD|[YSLDF])?", re.IGNORECASE)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|\+00:00)?)?")


def literal(node: exp.Expr) -> Value:
    """Read a literal as it is written."""
    source = str(node.this)
    if source[0] in "'\"":
        return text_literal(_unquoted(source))
    if source[0] in "rR" and source[1] in "'\"":
        return text_literal(source[2:-1])
    return _number(source)


def text_literal(value: str) -> Value:
    """Return a text; its name is what it says."""
    return Value(text(value), pa.string(), value, value)


def _unquoted(source: str) -> str:
    quote, inner = source[0], source[1:-1].replace(source[0] * 2, source[0])
    if "\\" not in inner:
        return inner

    def plain(match: re.Match[str]) -> str:
        sign = match[1]
        if sign not in _ESCAPES:
            raise Obstacle(f"the text {source} has an escape that is Spark's")
        return _ESCAPES[sign]

    if quote in inner:
        raise Obstacle(f"the text {source} has quotes and escapes")
    return re.sub(r"\\(.)", plain, inner, flags=re.DOTALL)


def _number(source: str) -> Value:
    match = _NUMBER.fullmatch(source)
    if match is None:
        raise Obstacle(f"the literal {source} is Spark's")
    whole, point, power, suffix = match.groups()
    suffix = (suffix or "").upper()
    digits = source[: len(source) - len(suffix)]
    if suffix == "F":
        raise Obstacle(f"the literal {source} is Spark's")
    if suffix == "D" or (power and not suffix):
        real = float(digits)
        name = str(real) if 1e-3 <= real < 1e7 else None  # beyond, Java writes another form
        return Value(f"CAST('{digits}' AS DOUBLE)", pa.float64(), name)
    value = Decimal(digits)
    if point is None and not power and suffix != "BD":
        narrow = pa.int32() if value < 2**31 else pa.int64()
        kind = _SUFFIXES.get(suffix, narrow)
        if value < 2**63:
            return Value(f"CAST({whole} AS {duck_name(kind)})", kind, str(value), value)
    if power:
        raise Obstacle(f"the literal {source} is Spark's")
    scale = len(point) - 1 if point else 0
    count = max(len((whole or "").lstrip("0")) + scale, scale, 1)
    kind = pa.decimal128(count, scale)
    return Value(f"CAST('{value}' AS {duck_name(kind)})", kind, str(value), value)


def typed_literal(node: TypedLiteral) -> Value:
    """Read `TIMESTAMP '...'` and `DATE '...'`; a time without a zone is one of UTC."""
    kind = str(node.args["kind"]).upper()
    inner = _unquoted(str(node.this.this))
    match = _TIME.fullmatch(inner)
    if match is None:
        raise Obstacle(f"{kind} '{inner}' is Spark's")
    day, clock, zone = match.groups()
    try:
        read = datetime.fromisoformat(f"{day}T{clock or '00:00:00'}").replace(tzinfo=UTC)
    except ValueError as error:
        raise Obstacle(f"{kind} '{inner}' is no time") from error
    if kind == "DATE":
        if clock:
            raise Obstacle(f"DATE '{inner}' has a time of day")
        return Value(f"DATE '{day}'", pa.date32(), f"DATE '{day}'")
    if kind == "TIMESTAMP_NTZ" and zone:
        raise Obstacle(f"TIMESTAMP_NTZ '{inner}' has a zone")
    written = read.strftime("%Y-%m-%d %H:%M:%S.%f")
    plain = written.removesuffix(".000000")
    return Value(
        f"TIMESTAMP '{written}'",
        WALL_TIME if kind == "TIMESTAMP_NTZ" else INSTANT,
        f"{kind} '{plain}'" if "." not in plain else None,
    )


def interval(node: PlainInterval) -> Value:
    """Read a length of time of days and less; months and years are no such."""
    said = " ".join(part.name.strip("'\"") for part in node.expressions)
    if re.search(r"\b(months?|years?|quarters?|to|nanoseconds?)\b", said, re.IGNORECASE):
        raise Obstacle(f"INTERVAL {said} is Spark's")
    try:
        return Value(number(duration_us(said)), LENGTH)
    except QueryError as error:
        raise Obstacle(f"INTERVAL {said} is Spark's") from error
