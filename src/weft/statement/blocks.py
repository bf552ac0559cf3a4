"""Blocks: the parts of a statement that group by a window, read into what weft shares of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.errors import QueryError
from weft.statement.grouping import Grouping, grouped_by
from weft.statement.names import VOLATILE
from weft.statement.relations import Obstacle, Source, definitions_for
from weft.statement.spellings import CUMULATE, bucket_of
from weft.statement.syntax import is_call, written_of
from weft.time import DAY, HOUR, MINUTE, SECOND, duration_us
from weft.window import CalendarWindow, CumulatingWindow, PeriodicWindow, SessionWindow
from weft.window.frame import is_utc

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOWS = ("window", "session_window", CUMULATE)
TRUNCATION = "date_trunc"
TRUNCATED = "weft_start"  # the column of results that a truncated time is
_SPANS_US = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
_CALENDAR = ("day", "week", "month", "quarter", "year")
_COMPARISONS = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
# Parts of a SELECT that a block may have; those with another are left to Spark.
_PARTS = frozenset(
    {
        *("with_", "expressions", "from_", "joins", "laterals", "where", "group", "having"),
        *("order", "limit", "offset", "distinct", "qualify", "windows", "hint"),
    }
)


@dataclass(frozen=True)
class TimeWindow:
    """The window of a block: its event time, its kind, and how the statement may refer to it."""

    time: exp.Expr
    kind: PeriodicWindow | SessionWindow | CalendarWindow | CumulatingWindow
    name: str  # the column of results: window or session_window, or that of a truncated time
    call: str  # the text of the call

    @property
    def overlaps(self) -> bool:
        """True when an event is in several instances."""
        if isinstance(self.kind, CumulatingWindow):
            return True
        return isinstance(self.kind, PeriodicWindow) and self.kind.range_us > self.kind.slide_us


@dataclass(frozen=True)
class Surroundings:
    """What a block means depends on: the columns that a SELECT reads, and the zone of times."""

    columns_of: Callable[[exp.Select], frozenset[str]]  # in lower case
    zone: str


@dataclass(frozen=True)
class Block:
    """One SELECT that groups by a window: what it reads, keeps, and groups by."""

    select: exp.Select
    source: Source
    window: TimeWindow
    keys: tuple[exp.Expr, ...]  # in the order of their texts, which is that of every block
    conditions: tuple[exp.Expr, ...] = field(default=())  # of WHERE, all of which hold
    # Of ROLLUP, CUBE and GROUPING SETS: the places of each set's keys, and what Spark numbers.
    sets: tuple[tuple[int, ...], ...] = ()
    numbered: tuple[str, ...] = ()  # the texts of what is grouped by, window included

    @property
    def events(self) -> tuple[str, str]:
        """What blocks of one workload have in common: what they read, and its event time."""
        return self.source.text, self.source.same_text(self.window.time)

    @property
    def key_texts(self) -> tuple[tuple[str, ...], ...]:
        """The keys of each set, as texts that are equal when they are."""
        texts = tuple(map(self.source.same_text, self.keys))
        return tuple(tuple(texts[at] for at in places) for places in self.key_sets)

    @property
    def key_sets(self) -> tuple[tuple[int, ...], ...]:
        """The places of the keys of each set; without grouping sets there is one of all."""
        return self.sets or (tuple(range(len(self.keys))),)


def window_call(node: exp.Expr) -> exp.Anonymous | None:
    """Return the window that a grouping expression is, or is the start or the end of."""
    if isinstance(node, exp.Dot) and node.name.casefold() in ("start", "end"):
        node = node.this
    return node if isinstance(node, exp.Anonymous) and is_call(node, *WINDOWS) else None


def _groups_time(node: exp.Expr) -> bool:
    """Tell whether a grouping expression may be a window, in one spelling or another."""
    return window_call(node) is not None or _truncates(node)


def _truncates(node: exp.Expr) -> bool:
    return is_call(node, TRUNCATION) or bucket_of(node) is not None


def window_selects(tree: exp.Expr) -> list[exp.Select]:
    """Return every SELECT that seems to group by a window, in the order in which they end."""
    known = tree.args.get("with_")
    inner = [known] if known is not None else []
    inner += [child for child in tree.iter_expressions() if child is not known]
    found = [select for child in inner for select in window_selects(child)]
    if isinstance(tree, exp.Select) and tree.args.get("group") and _calls_of_grouping(tree):
        found.append(tree)
    return found


def _calls_of_grouping(select: exp.Select) -> list[exp.Expr]:
    """Return calls of windows in GROUP BY, or in SELECT where GROUP BY may mean them."""
    group = select.args["group"]
    places = list(grouped_by(group))
    if group.args.get("all") or any(isinstance(g, exp.Literal | exp.Column) for g in places):
        places += [item.unalias() for item in select.expressions]
    return [place for place in places if _groups_time(place)]


def block_of(select: exp.Select, around: Surroundings) -> Block:
    """Read a block, or raise the obstacle that leaves it to Spark."""
    for part, value in select.args.items():
        if value and part not in _PARTS:
            raise Obstacle(f"{part.rstrip('_').upper()} is Spark's")
    _refuse_volatile(select)
    source = Source.of(select)
    grouping = Grouping.of(select, source, around.columns_of)
    windows = [g for g in grouping.columns if window_call(g) is not None]
    windows = windows or [g for g in grouping.columns if _truncates(g)]
    if len(windows) != 1:
        raise Obstacle("it does not group by exactly one window")
    at = next(i for i, g in enumerate(grouping.columns) if g is windows[0])
    if not all(at in one for one in grouping.sets):
        raise Obstacle("one of its grouping sets has no window")
    texts = tuple(map(source.same_text, grouping.columns))
    order = sorted((i for i in range(len(texts)) if i != at), key=texts.__getitem__)
    places = {i: place for place, i in enumerate(order)}
    sets = tuple(tuple(sorted(places[i] for i in one - {at})) for one in grouping.sets)
    where = select.args.get("where")
    conditions = tuple(_conjuncts(where.this)) if where is not None else ()
    if _truncates(windows[0]):
        window = _truncation(windows[0], source, conditions, around.zone)
    else:
        window = _window(windows[0], source)
    keys = tuple(grouping.columns[i] for i in order)
    if not grouping.analytic:
        return Block(select, source, window, keys, conditions)
    return Block(select, source, window, keys, conditions, sets, texts)


def _truncation(
    call: exp.Expr, source: Source, conditions: tuple[exp.Expr, ...], zone: str
) -> TimeWindow:
    """Read `date_trunc('hour', ts)`: hours and less in UTC, days and more in any zone; a bucket."""
    bucket = bucket_of(call)
    if bucket is None and len(call.expressions) != 2:
        raise Obstacle(f"{written_of(call)} is Spark's")
    unit, time = (call, bucket[0]) if bucket else call.expressions
    word = written_of(unit)[1:-1].casefold()
    utc = is_utc(zone)
    if bucket is not None:
        kind: PeriodicWindow | CalendarWindow = PeriodicWindow(
            bucket[1], bucket[1], bucket[2] % bucket[1]
        )
    elif utc and word in _SPANS_US:
        kind = PeriodicWindow(_SPANS_US[word], _SPANS_US[word], 0)
    elif word in _CALENDAR:
        try:
            kind = CalendarWindow(word, "UTC" if utc else zone)
        except QueryError as error:
            raise Obstacle(f"the zone {zone} is Spark's") from error
    else:
        raise Obstacle(f"{written_of(call)} is Spark's")
    text = source.same_text(time)
    if not any(_is_never_null(condition, text, source) for condition in conditions):
        raise Obstacle(f"events without {written_of(time)} are a group of their own")
    return TimeWindow(time, kind, TRUNCATED, source.same_text(call))


def _is_never_null(condition: exp.Expr, time: str, source: Source) -> bool:
    """Tell whether a condition keeps no event without a time."""
    if isinstance(condition, exp.Is) and isinstance(condition.expression, exp.Null):
        return bool(condition.args.get("negate")) and source.same_text(condition.this) == time
    if isinstance(condition, exp.Between):
        return source.same_text(condition.this) == time
    compared = isinstance(condition, _COMPARISONS)
    return compared and time in map(source.same_text, (condition.this, condition.expression))


def _refuse_volatile(select: exp.Select) -> None:
    read = (cte.this for cte in definitions_for(select))
    for node in (n for tree in (select, *read) for n in tree.walk()):
        name = ""
        if isinstance(node, exp.Anonymous):
            name = str(node.this).casefold()
        elif isinstance(node, exp.Column) and len(node.parts) == 1:
            name = node.name.casefold()  # CURRENT_DATE needs no parentheses
        if name in VOLATILE:
            raise Obstacle(f"{name} is not the same from call to call")


def _window(element: exp.Expr, source: Source) -> TimeWindow:
    call = window_call(element)
    assert call is not None
    name = str(call.this).casefold()
    if not call.expressions:
        raise Obstacle(f"{written_of(call)} is Spark's")
    time, *durations = call.expressions
    lengths = [_duration_of(duration) for duration in durations]
    try:
        if name == "session_window" and len(lengths) == 1:
            kind: PeriodicWindow | SessionWindow | CumulatingWindow = SessionWindow(lengths[0])
        elif name == CUMULATE:
            kind = CumulatingWindow(lengths[0], lengths[1])
        elif name == "window" and 1 <= len(lengths) <= 3:
            slide = lengths[1] if len(lengths) > 1 else lengths[0]
            offset = lengths[2] if len(lengths) > 2 else 0
            kind = PeriodicWindow(lengths[0], slide, offset % slide)
        else:
            raise Obstacle(f"{written_of(call)} is Spark's")
    except (QueryError, ZeroDivisionError) as error:
        raise Obstacle(f"{written_of(call)} is Spark's") from error
    return TimeWindow(time, kind, name, source.same_text(call))


def _duration_of(node: exp.Expr) -> int:
    """Read a length of time that is written out: text, or a number of microseconds."""
    written = written_of(node)
    if written.isdigit():
        return int(written)
    text = written[1:-1]
    if written[:1] not in ("'", '"') or "\\" in text or written[0] in text:
        raise Obstacle(f"the length {written} is not written out")
    words = text.strip().casefold().removeprefix("interval ")
    try:
        return duration_us(words)
    except QueryError as error:
        raise Obstacle(f"the length {written} is Spark's") from error


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    if isinstance(condition, exp.And):
        return [*_conjuncts(condition.this), *_conjuncts(condition.expression)]
    if isinstance(condition, exp.Paren) and isinstance(condition.this, exp.And):
        return _conjuncts(condition.this)
    return [condition]
