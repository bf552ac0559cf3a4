"""What users ask: queries over a source, joins of sources, and workloads of many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from weft.aggregates import AggregateCall
from weft.errors import QueryError
from weft.expression import canonical, columns_of, inputs_of
from weft.time import Duration, duration_us
from weft.window import (
    LandmarkWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    UserWindow,
    Window,
    tumbling,
)

Keys = tuple[tuple[str, str], ...]  # (name of the output column, expression)
AskedKeys = str | Sequence[str] | Mapping[str, str]
AskedWindows = Mapping[str, Window | str | timedelta]  # a duration is a tumbling window
AskedAggregates = Mapping[str, AggregateCall | str]  # or SQL, such as "avg(temp)"
WINDOW_COLUMNS = ("window", "window_start", "window_end")


def as_keys(keys: AskedKeys) -> Keys:
    """Read grouping keys: a column, a list of columns or expressions, or expressions by name.

    >>> as_keys("device"), as_keys(["device"]), as_keys({"city": "upper(town)"})
    ((('device', 'device'),), (('device', 'device'),), (('city', 'UPPER(town)'),))
    """
    if isinstance(keys, str):
        keys = [keys]
    named = keys.items() if isinstance(keys, Mapping) else ((k, k) for k in keys)
    return tuple((name, canonical(expression)) for name, expression in named)


@dataclass(frozen=True, slots=True, init=False)
class Query:
    """One or more windows over one source, with the aggregates wanted of each.

    Windows are of any kind, or durations, which tumble; aggregates are calls of `weft.agg`, or SQL.

    >>> q = Query("lows", source="readings", time="ts", keys=["device"],
    ...           windows={"20m": PeriodicWindow(20, 20)},
    ...           aggs={"lo": AggregateCall("min", ("temp",))})
    >>> q.columns
    ('device', 'window', 'window_start', 'window_end', 'lo')
    >>> q == Query("lows", source="readings", time="ts", keys="device",
    ...            windows={"20m": "20 us"}, aggs={"lo": "min(temp)"})
    True
    """

    name: str
    source: str
    time: str | None
    keys: Keys
    where: str | None
    windows: tuple[tuple[str, Window], ...]
    aggs: tuple[tuple[str, AggregateCall], ...]
    watermark_us: int | None
    window_columns: tuple[str, str, str]

    def __init__(
        self,
        name: str,
        *,
        source: str,
        windows: AskedWindows,
        aggs: AskedAggregates,
        time: str | None = None,
        keys: AskedKeys = (),
        where: str | None = None,
        watermark: Duration | None = None,
        window_columns: tuple[str, str, str] = WINDOW_COLUMNS,
    ) -> None:
        for argument, given in (("windows", windows), ("aggs", aggs)):
            if not isinstance(given, Mapping):
                raise QueryError(
                    f"{argument} of query {name!r} is {type(given).__name__}, not a mapping",
                    hint=f"name each: {argument}={{'label': ...}}",
                )
        fields: dict[str, Any] = {
            "name": name,
            "source": source,
            "time": time,
            "keys": as_keys(keys),
            "where": None if where is None else canonical(where),
            "windows": _as_windows(windows),
            "aggs": tuple(
                (alias, replace(call, args=tuple(map(canonical, call.args))))
                for alias, call in checked_aggs(name, aggs)
            ),
            "watermark_us": None if watermark is None else duration_us(watermark),
            "window_columns": window_columns,
        }
        for attribute, value in fields.items():
            object.__setattr__(self, attribute, value)
        _check(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the result, in order."""
        names = tuple(name for name, _ in self.keys)
        return (*names, *self.window_columns, *(alias for alias, _ in self.aggs))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of the source that are read, the time column excepted, sorted."""
        expressions = [e for _, e in self.keys] + [a for _, call in self.aggs for a in call.args]
        if self.where is not None:
            expressions.append(self.where)
        for _, window in self.windows:
            if isinstance(window, PunctuatedWindow):
                expressions.append(window.predicate)
            elif isinstance(window, MeasuredWindow):
                expressions.append(window.column)
        return tuple(sorted({c for e in expressions for c in columns_of(e)}))

    @property
    def needs_whole_events(self) -> bool:
        """True when a user-defined window may look at any column."""
        return any(isinstance(window, UserWindow) for _, window in self.windows)

    def with_time(self, column: str) -> Query:
        """Return the same query with its event-time column known."""
        return self._with(time=column)

    def with_watermark(self, delay: Duration) -> Query:
        """Return the same query with events allowed to be late by `delay`."""
        changed = self._with(watermark_us=duration_us(delay))
        _check(changed)
        return changed

    def with_windows(self, windows: AskedWindows) -> Query:
        """Return the same query over other windows."""
        changed = self._with(windows=_as_windows(windows))
        _check(changed)
        return changed

    def _with(self, **values: Any) -> Query:
        changed = object.__new__(Query)
        for attribute in self.__slots__:
            object.__setattr__(changed, attribute, values.get(attribute, getattr(self, attribute)))
        return changed


def _as_windows(windows: AskedWindows) -> tuple[tuple[str, Window], ...]:
    """Read windows by label; a duration by itself is a tumbling window.

    >>> _as_windows({"1m": "1 minute"})
    (('1m', PeriodicWindow(range_us=60000000, slide_us=60000000, offset_us=0)),)
    """
    return tuple(
        (label, tumbling(window) if isinstance(window, str | timedelta) else window)
        for label, window in windows.items()
    )


def checked_aggs(query: str, aggs: AskedAggregates) -> Iterator[tuple[str, AggregateCall]]:
    """Read aggregates by alias; refuse what is none, and a query without any."""
    if not aggs:
        raise QueryError(
            f"query {query!r} asks for no aggregate", hint="add one, such as weft.agg.count()"
        )
    for alias, call in aggs.items():
        if isinstance(call, str):
            from weft.aggregate_text import call_of  # with the parser, which takes its time

            call = call_of(call)
        if not isinstance(call, AggregateCall):
            raise QueryError(
                f"{alias!r} is {call!r}, not an aggregate",
                hint="write weft.agg.min('column') or 'min(column)'",
            )
        yield alias, call


def _check(query: Query) -> None:
    if not query.name or not isinstance(query.name, str):
        raise QueryError("a query needs a name", hint="name it, such as Query('lows', ...)")
    if not query.windows:
        raise QueryError(
            f"query {query.name!r} has no window", hint="add one, such as weft.tumbling('1 hour')"
        )
    for label, window in query.windows:
        if not isinstance(window, Window):
            raise QueryError(
                f"window {label!r} of query {query.name!r} is {window!r}, not a window",
                hint="write '20 minutes', weft.tumbling('20 minutes') or another window kind",
            )
    if query.watermark_us is not None and query.watermark_us < 0:
        raise QueryError(
            f"query {query.name!r} has a negative watermark", hint="give a delay of zero or more"
        )
    seen: set[str] = set()
    for column in query.columns:
        if column in seen:
            raise QueryError(
                f"query {query.name!r} has two result columns named {column!r}",
                hint="give one of them another name",
            )
        seen.add(column)


@dataclass(frozen=True, slots=True)
class JoinInput:
    """One stream or table of a join: its window, its filter, the name it goes by."""

    source: str
    alias: str
    time: str | None
    window: PeriodicWindow | LandmarkWindow | None
    where: str | None = None
    watermark_us: int | None = None  # how long its events may be late, in a stream


def check_matches_answer(call: AggregateCall) -> None:
    """Refuse a call over columns of several inputs that asks for the time of a match."""
    read = inputs_of(call.args)
    if len(read) > 1 and call.asks_time:
        raise QueryError(
            f"{call} reads columns of {' and '.join(read)} at once and asks what came first, and a "
            "match has no time of its own",
            hint="ask it of columns of one stream, or use MIN_BY or MAX_BY with a time column",
        )


@dataclass(frozen=True, slots=True)
class JoinQuery:
    """An aggregation over the equi-join of windowed streams (and tables, which have no window).

    `on` holds pairs of qualified columns that must be equal; keys and arguments are qualified too.
    """

    name: str
    inputs: tuple[JoinInput, ...]
    on: tuple[tuple[str, str], ...]
    keys: Keys
    aggs: tuple[tuple[str, AggregateCall], ...]
    window_columns: tuple[str, str, str] = WINDOW_COLUMNS

    def __post_init__(self) -> None:
        aliases = [i.alias for i in self.inputs]
        if len(self.inputs) < 2 or len(set(aliases)) != len(aliases):
            raise QueryError(
                f"join {self.name!r} needs two or more inputs under different names",
                hint="give each source an alias: FROM a AS x [...], b AS y [...]",
            )
        if not self.aggs:
            raise QueryError(
                f"join {self.name!r} asks for no aggregate", hint="add one, such as COUNT(*)"
            )
        if not any(isinstance(i.window, PeriodicWindow) for i in self.inputs):
            raise QueryError(
                f"no stream of join {self.name!r} has a window that moves, so there is no time "
                "at which it has a result",
                hint="give one stream a slide: [RANGE 1 HOUR SLIDE 5 MINUTES]",
            )
        for _, call in self.aggs:
            check_matches_answer(call)

    def with_watermark(self, delay: Duration) -> JoinQuery:
        """Return the same join; events of inputs that do not say so may be late by `delay`."""
        late_us = duration_us(delay)
        if late_us < 0:
            raise QueryError(
                f"join {self.name!r} has a negative watermark", hint="give a delay of zero or more"
            )
        inputs = (
            replace(i, watermark_us=late_us)
            if i.watermark_us is None and i.window is not None
            else i
            for i in self.inputs
        )
        return replace(self, inputs=tuple(inputs))

    @property
    def label(self) -> str:
        """The name of the windows in results: what they are, each once."""
        windows = (i.window for i in self.inputs if i.window is not None)
        return ", ".join(dict.fromkeys(map(str, windows)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the result, in order."""
        names = tuple(name for name, _ in self.keys)
        return (*names, *self.window_columns, *(alias for alias, _ in self.aggs))


AnyQuery = Query | JoinQuery


@dataclass(slots=True)
class Workload:
    """Queries that are optimized together; names are unique.

    >>> w = Workload()
    >>> w.add(Query("n", source="t", windows={"1h": PeriodicWindow(60, 60)},
    ...             aggs={"n": AggregateCall("count")}))
    >>> [q.name for q in w.queries], w.sources
    (['n'], ('t',))
    """

    _queries: dict[str, AnyQuery] = field(default_factory=dict)

    def __init__(self, queries: AnyQuery | Iterable[AnyQuery] = ()) -> None:
        self._queries = {}
        if isinstance(queries, Query | JoinQuery):
            queries = (queries,)
        elif isinstance(queries, str) or not isinstance(queries, Iterable):
            raise QueryError(
                f"{queries!r} is neither a query nor a workload",
                hint="build queries with weft.Query(...); weft.sql and weft.parse read SQL",
            )
        for query in queries:
            self.add(query)

    @classmethod
    def of(cls, asked: Workload | AnyQuery | Iterable[AnyQuery]) -> Workload:
        """Return what is asked as a workload: a query by itself is a workload of one."""
        return asked if isinstance(asked, Workload) else cls(asked)

    @property
    def queries(self) -> tuple[AnyQuery, ...]:
        """All queries, in the order in which they were added."""
        return tuple(self._queries.values())

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the tables that are read, in order of first use."""
        named = (
            [q.source] if isinstance(q, Query) else [i.source for i in q.inputs]
            for q in self._queries.values()
        )
        return tuple(dict.fromkeys(source for sources in named for source in sources))

    def add(self, query: AnyQuery) -> None:
        """Add a query under a name that is not taken."""
        if not isinstance(query, Query | JoinQuery):
            raise QueryError(f"{query!r} is not a query", hint="build it with weft.Query(...)")
        if query.name in self._queries:
            raise QueryError(
                f"a query named {query.name!r} is already in the workload",
                hint="give it another name, or remove the other one first",
            )
        self._queries[query.name] = query

    def remove(self, name: str) -> None:
        """Remove the query of this name."""
        if name not in self._queries:
            known = ", ".join(self._queries) or "none"
            raise QueryError(f"no query is named {name!r}", hint=f"the queries are: {known}")
        del self._queries[name]

    def __iter__(self) -> Iterator[AnyQuery]:
        return iter(self._queries.values())

    def __len__(self) -> int:
        return len(self._queries)
