"""Arrow tables as JSON, one object a line, rendered a column at a time."""

from __future__ import annotations

import json
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import UnsupportedError
from weft.generate.draws import Column, concat, literal

# Enough rows to make the work per row vanish, few enough to stay in the cache of one core.
_BATCH_ROWS = 1 << 16

_MUST_ESCAPE = r'[\x00-\x1f"\\]'
_ESCAPES = {"\\": r"\\", '"': r"\""} | {
    chr(code): json.dumps(chr(code))[1:-1] for code in range(0x20)
}


def write_json_lines(table: pa.Table, sink: BinaryIO) -> None:
    r"""Write `table` to `sink` as one JSON object a line.

    Instants become ISO-8601 text in UTC, with microseconds; numbers keep every digit; NULL is
    `null`. A NaN or an infinity, for which JSON has no word, is written as text, as Spark reads it.

    >>> import io
    >>> sink = io.BytesIO()
    >>> write_json_lines(pa.table({"device": ["a", None], "temp": [20.5, 21.0]}), sink)
    >>> print(sink.getvalue().decode(), end="")
    {"device":"a","temp":20.5}
    {"device":null,"temp":21.0}
    """
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        pieces: list[Column | str] = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            pieces += [("," if pieces else "{") + json.dumps(name) + ":", _rendered(name, column)]
        lines = concat(*pieces, "}\n")
        sink.write(_characters(lines))


def _rendered(name: str, column: Column) -> Column:
    """Spell each value of a column as JSON."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        text = _quoted(iso_8601(column))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = _quoted(_escaped(column.cast(pa.string())))
    elif pa.types.is_floating(kind):
        text = _number(column)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        text = column.cast(pa.string())
    else:
        raise UnsupportedError(
            f"column {name!r} of type {kind} cannot be written as json",
            hint="write parquet, or cast the column to a number, string, boolean or timestamp",
        )
    return pc.fill_null(text, literal("null"))


def iso_8601(column: Column) -> Column:
    """Spell instants as ISO-8601 text in UTC, to the microsecond; without a zone is UTC already.

    >>> iso_8601(pa.array([1_500_000], pa.timestamp("us", tz="Europe/Berlin"))).to_pylist()
    ['1970-01-01T00:00:01.500000Z']
    """
    # Cast without the zone: it changes no instant, and Arrow spells it twenty times faster.
    text = column.cast(pa.timestamp("us")).cast(pa.string())
    return concat(pc.replace_substring(text, " ", "T", max_replacements=1), "Z")


def _number(column: Column) -> Column:
    text = column.cast(pa.string())
    # Without the fraction a reader that guesses types would take 21.0 for an integer.
    is_bare = pc.match_substring_regex(text, r"^-?\d+$")
    text = pc.if_else(is_bare, concat(text, ".0"), text)
    is_finite = pc.is_finite(column)
    if pc.all(is_finite).as_py() in (True, None):
        return text
    return pc.if_else(is_finite, text, _quoted(_spark_spelling(column)))


def _spark_spelling(column: Column) -> Column:
    infinity = pc.if_else(pc.greater(column, pa.scalar(0.0)), "Infinity", "-Infinity")
    return pc.if_else(pc.is_nan(column), "NaN", infinity)


def _escaped(text: Column) -> Column:
    if not pc.any(pc.match_substring_regex(text, _MUST_ESCAPE)).as_py():
        return text
    for character, escape in _ESCAPES.items():
        text = pc.replace_substring(text, character, escape)
    return text


def _quoted(text: Column) -> Column:
    return concat('"', text, '"')


def _characters(lines: Column) -> pa.Buffer:
    """The bytes of all strings of an array, end to end, without a copy."""
    _, offsets, characters = lines.buffers()
    bounds = memoryview(offsets).cast("i")
    first, last = bounds[lines.offset], bounds[lines.offset + len(lines)]
    block: pa.Buffer = characters.slice(first, last - first)
    return block
