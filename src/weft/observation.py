"""What tables tell of themselves without being read: how many events, how long, how many keys.

An Arrow table knows its length and the bounds of its times; parquet files have both in their
footers, and a catalog may know the length of a table. Keys are told by a bounded sample. Nothing
here reads a whole table, and what cannot be had for so little stays unknown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft.cost.occupancy import keys_behind
from weft.frames import kind_of
from weft.query import JoinQuery, Query
from weft.statistics import Bounds, Statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from weft.query import AnyQuery

SAMPLED_ROWS = 1 << 16
_BLOCKS = 16  # of the sample: keys that come in runs are not all of one run


def observed(workload: Iterable[AnyQuery], tables: Mapping[str, Any]) -> dict[str, Statistics]:
    """Observe every source that queries without joins read; keys that are expressions stay unknown.

    >>> import pyarrow as pa
    >>> from weft import agg, tumbling
    >>> ticks = pa.table({"ts": pa.array([0, 30, 60], pa.timestamp("s")), "k": ["a", "b", "a"]})
    >>> query = Query("q", source="t", time="ts", keys=["k"], windows={"1m": "1 minute"},
    ...               aggs={"n": agg.count()})
    >>> known = observed([query], {"t": ticks})["t"]
    >>> known.events, known.duration, known.keys
    (3, 60000000, 2)
    """
    asked: dict[str, list[Query]] = {}
    for query in workload:
        if isinstance(query, Query) and query.source in tables:
            asked.setdefault(query.source, []).append(query)
    joined = {i.source for q in workload if isinstance(q, JoinQuery) for i in q.inputs}
    return {
        source: _observed(queries, tables[source])
        for source, queries in asked.items()
        if source not in joined
    }


def completed(
    declared: Statistics | Mapping[str, Statistics] | None, seen: Mapping[str, Statistics]
) -> dict[str, Statistics] | Statistics | None:
    """Fill in what was not declared; where nothing was seen, what was declared is all there is.

    >>> completed(Statistics(keys=3), {"t": Statistics(events=9, duration=9)})["t"].keys
    3
    """
    if not seen:
        return declared if declared is None or isinstance(declared, Statistics) else {**declared}
    if declared is None or isinstance(declared, Statistics):
        return {source: (declared or Statistics()).filled(own) for source, own in seen.items()}
    return {**declared, **{s: declared.get(s, Statistics()).filled(o) for s, o in seen.items()}}


def _observed(queries: Sequence[Query], table: Any) -> Statistics:
    key_sets = tuple(dict.fromkeys(tuple(text for _, text in q.keys) for q in queries))
    time = queries[0].time
    if kind_of(table) == "spark":
        return _observed_by_spark(table, time, key_sets)
    names = [name for name in _columns(key_sets) if name in table.schema.names]
    return _statistics(_bounds(table, time), _sample(table, names), key_sets, "the table")


def _observed_by_spark(
    frame: Any, time: str | None, key_sets: Sequence[tuple[str, ...]]
) -> Statistics:
    from weft.engines.spark.footers import read_footers, session_facts, tasks_over, told_rows

    facts = session_facts(frame)
    if frame.isStreaming:
        return facts
    seen = read_footers(frame, time, _columns(key_sets))
    if seen is None:
        rows = told_rows(frame)
        told = "" if rows is None else "from statistics of its tables"
        return replace(facts, events=rows, told_by=told)
    known = _statistics(seen.bounds, seen.sample, key_sets, "footers of its files")
    return replace(
        known, cores=facts.cores, adaptive=facts.adaptive, partitions=tasks_over(frame, seen)
    )


def _columns(key_sets: Iterable[tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(name for keys in key_sets for name in keys))


def _bounds(table: pa.Table, time: str | None) -> Bounds:
    import pyarrow.compute as pc

    from weft.frames import in_microseconds

    if time is None or time not in table.schema.names or not table.num_rows:
        return Bounds(table.num_rows, None, None)
    ends = pc.min_max(table[time])
    both = in_microseconds(_column([ends["min"], ends["max"]])).cast("int64").to_pylist()
    return Bounds(table.num_rows, *both)


def _column(values: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.chunked_array([pa.array([v.as_py() for v in values], values[0].type)])


def _sample(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Take blocks of rows from all over a table, of these columns."""
    import pyarrow as pa

    few = table.select(names)
    if few.num_rows <= SAMPLED_ROWS:
        return few
    length, step = SAMPLED_ROWS // _BLOCKS, few.num_rows // _BLOCKS
    return pa.concat_tables([few.slice(at * step, length) for at in range(_BLOCKS)])


def _statistics(
    bounds: Bounds, sample: pa.Table, key_sets: Sequence[tuple[str, ...]], where: str
) -> Statistics:
    lasts = bounds.first_us is not None and bounds.last_us is not None
    lasts_us = bounds.last_us - bounds.first_us if lasts else 0  # type: ignore[operator]
    counted = {keys: _keys(sample, keys, bounds.events) for keys in key_sets}
    known = {keys: found for keys, found in counted.items() if found is not None}
    first = known.get(key_sets[0])
    bytes = _key_bytes(sample, key_sets[0]) if first is not None else None
    sampled = "" if sample.num_rows >= bounds.events else f", keys by {sample.num_rows:,} rows"
    return Statistics(
        events=bounds.events,
        duration=lasts_us if lasts_us > 0 else None,
        keys=None if first is None else first[0],
        key_skew=0.0 if first is None else first[1],
        key_bytes=bytes,
        key_sets=tuple((keys, found[0]) for keys, found in known.items()),
        told_by=f"from {where}{sampled if known else ''}",
    )


def _keys(sample: pa.Table, keys: tuple[str, ...], events: int) -> tuple[int, float] | None:
    """Tell distinct keys, and what the most frequent one has beyond its fair share."""
    import pyarrow.compute as pc

    from weft.frames import in_parts

    if not keys:
        return 1, 0.0
    if not sample.num_rows or not set(keys).issubset(sample.schema.names):
        return None
    parts = in_parts(sample, keys)
    counts = parts.group_by(parts.column_names).aggregate([([], "count_all")])["count_all"]
    distinct, rows = len(counts), sample.num_rows
    among = distinct if rows >= events else round(keys_behind(distinct, rows, events))
    return max(among, 1), max(pc.max(counts).as_py() / rows - 1 / distinct, 0.0)


def _key_bytes(sample: pa.Table, keys: tuple[str, ...]) -> float:
    """Return the bytes of the keys of a row, in the mean."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def width(name: str) -> float:
        column = sample[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return float(pc.mean(pc.binary_length(column)).as_py() or 0.0)
        return 8.0

    return sum(width(name) for name in keys)
