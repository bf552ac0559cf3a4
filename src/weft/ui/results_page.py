"""Results of streams: the last rows of each query, and a curve of an aggregate over its windows."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from weft.engines.spark.streaming.checkpoint.places import Place
from weft.errors import DataError, UnsupportedError, WeftError
from weft.ui.curves import Curve, count_text
from weft.ui.frame import card, choice, error_text, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.query import Query
    from weft.ui.attached import Attached
    from weft.ui.settings import Settings

LAST_ROWS = 50
_MOST_ROWS = 20_000  # that are read for the curve
_MOST_POINTS = 300
_MOST_KEYS = 200


def content(attached: Sequence[Attached], settings: Settings, asked: Mapping[str, str]) -> str:
    """Write the page: the queries to choose from, and the rows of the chosen one."""
    found = [(one, query) for one in attached for query in _queries(one)]
    links = "".join(
        f'<a class="chip" href="/results?{_address(one, q)}"'
        f"{' aria-current=true' if _is_chosen(one, q, asked) else ''}>{escape(q.name)}"
        f'<span class="soft"> of {escape(one.name)}</span></a>'
        for one, q in found
    )
    chosen = [(one, q) for one, q in found if _is_chosen(one, q, asked)] or found[:1]
    parts = [f'<section class="card"><h1>Results</h1><div class="line">{links}</div></section>']
    for one, query in chosen[:1]:
        try:
            parts.append(_query(one, query, settings, asked))
        except WeftError as error:
            parts.append(card(query.name, error_text(error)))
    return "".join(parts)


def _address(one: Attached, query: Query) -> str:
    return escape(urlencode({"stream": one.number, "query": query.name}))


def _queries(one: Attached) -> list[Query]:
    try:
        return [query for query, _ in one.look().queries]
    except WeftError:
        return []


def _is_chosen(one: Attached, query: Query, asked: Mapping[str, str]) -> bool:
    return (str(one.number), query.name) == (asked.get("stream"), asked.get("query"))


def _query(one: Attached, query: Query, settings: Settings, asked: Mapping[str, str]) -> str:
    sink = one.journal.sinks().get(query.name)
    if sink is None:
        raise UnsupportedError(
            f"the rows of {query.name!r} do not go to a directory", hint="look where they go"
        )
    try:
        rows = last_rows(sink, settings)
    except (OSError, ValueError) as error:  # what Arrow says of files that are no parquet
        raise DataError(
            f"the rows of {query.name!r} cannot be read: {error}", hint="look into the sink"
        ) from error
    if rows is None:
        return card(query.name, '<p class="soft">no window has closed yet</p>')
    label, start, end = query.window_columns
    rows = rows.sort_by([(name, "ascending") for name in (end, start) if name in rows.column_names])
    last = rows.slice(max(rows.num_rows - LAST_ROWS, 0))
    shown = [[_text(v) for v in row.values()] for row in reversed(last.to_pylist())]
    drawn = _curve(one, query, rows, (label, start), asked)
    listed = card(
        "Last rows", table(rows.column_names, shown), f"from {'/'.join(sink.split('/')[-2:])}"
    )
    return f"{drawn}{listed}"


def _text(value: object) -> str:
    return "NULL" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def last_rows(sink: str, settings: Settings) -> pa.Table | None:
    """Read the latest micro-batches of a sink, as many as the page can use; None without any."""
    place = Place.of(sink)
    if place.local is not None:
        settings.within(place.local)
    numbers = [n.removeprefix("batch=") for n in place.names() if n.startswith("batch=")]
    found: list[pa.Table] = []
    for number in sorted((int(n) for n in numbers if n.isdecimal()), reverse=True):
        batch = place / f"batch={number}"
        files = [batch / name for name in batch.names() if name.endswith(".parquet")]
        for file in files:
            if file.local is not None:
                settings.within(Path(file.uri))  # a link may lead anywhere
            table = ds.dataset(file.uri, format="parquet").head(_MOST_ROWS)
            if table.num_rows:
                found.insert(0, table)
        if sum(table.num_rows for table in found) >= _MOST_ROWS:
            break
    return pa.concat_tables(found) if found else None


def _curve(
    one: Attached,
    query: Query,
    rows: pa.Table,
    columns: tuple[str, str],
    asked: Mapping[str, str],
) -> str:
    """Draw an aggregate of one key over the instances of one window."""
    label, start = columns
    numeric = [
        name
        for name, _ in query.aggs
        if name in rows.column_names and _is_number(rows.schema.field(name).type)
    ]
    if not numeric or start not in rows.column_names:
        return ""
    keys = [name for name, _ in query.keys]
    labels = [name for name, _ in query.windows]
    column = asked.get("column", "") if asked.get("column") in numeric else numeric[0]
    window = asked.get("window", "") if asked.get("window") in labels else labels[0]
    own = rows
    if label in rows.column_names:
        own = rows.filter(pc.equal(rows[label], pa.scalar(window)))
    names = _key_texts(own, keys)
    options = [str(key) for key in pc.unique(names).slice(0, _MOST_KEYS).to_pylist()]
    key = asked.get("key", "") if asked.get("key") in options else (options or [""])[0]
    if keys:
        own = own.filter(pc.equal(names, pa.scalar(key)))
    own = own.slice(max(own.num_rows - _MOST_POINTS, 0))
    values = own[column].cast(pa.float64()).to_pylist()
    times = [f"{t:%m-%d %H:%M:%S}" for t in own[start].to_pylist()]
    ends = (times[0], times[-1]) if times else ("", "")
    choices = choice("column", "aggregate", {n: n for n in numeric}, column)
    choices += choice("window", "window", {n: n for n in labels}, window)
    if keys:
        choices += choice("key", ", ".join(keys), {k: k for k in sorted(options)}, key)
    form = (
        '<form method="get" action="/results" class="line">'
        f'<input type="hidden" name="stream" value="{one.number}">'
        f'<input type="hidden" name="query" value="{escape(query.name)}">{choices}'
        "<button>draw</button></form>"
    )
    drawn = Curve(f"{column} of {window}", values, count_text, ends, width=1000).svg()
    return card(query.name, f'{form}<div class="curves large">{drawn}</div>')


def _is_number(type: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(type) for is_kind in kinds)


def _key_texts(rows: pa.Table, keys: Sequence[str]) -> Any:
    """Write the keys of every row as one text."""
    texts: list[Any] = [rows[name].cast(pa.string()) for name in keys]
    if not texts:
        return pa.array([], pa.string())
    # Its types know of no text between the columns.
    join: Any = pc.binary_join_element_wise
    return join(*texts, ", ", null_handling="replace", null_replacement="NULL")
