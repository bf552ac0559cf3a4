"""Windows of SQL: functions in GROUP BY and brackets after a source, as window values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.errors import QueryError
from weft.expression import canonical
from weft.sql.names import WINDOW_FUNCTIONS
from weft.sql.scope import Scope, stripped, unknown_function
from weft.sql.script import Script, suggest
from weft.time import duration_us
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    LandmarkWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.sql.dialect import StreamWindow

_LONGEST_US = 2**63 - 1
# Abbreviations of Azure Stream Analytics that mean nothing elsewhere.
_UNITS = {"dd": "day", "hh": "hour", "mi": "minute", "n": "minute", "ss": "second", "mcs": "us"}
# Wrapped durations of Azure Stream Analytics, by position: Duration(minute, 20), Hop(minute, 5).
_WRAPPERS = ("duration", "hop", "offset", "timeout", "step")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A window with the label of its rows, and the places both were written at."""

    label: str
    window: Window
    node: exp.Expr


@dataclass(frozen=True, slots=True)
class Timing:
    """The windows of one element of GROUP BY, and the time columns they name."""

    windows: tuple[Labelled, ...]
    times: tuple[exp.Column, ...] = ()


def default_label(window: Window) -> str:
    """Name a window by what it is.

    >>> default_label(PeriodicWindow(1_200_000_000, 1_200_000_000))
    '20m'
    >>> default_label(PeriodicWindow(3_600_000_000, 300_000_000, 60_000_000))
    '1h/5m@1m'
    >>> default_label(SessionWindow(300_000_000))
    'session 5m'
    """
    kind, _, rest = str(window).partition(" ")
    return rest.replace(" @", "@") if kind in ("TUMBLE", "HOP") else f"{kind.lower()} {rest}"


def is_window_function(node: exp.Expr) -> bool:
    """Tell whether this node calls a window."""
    return isinstance(node, exp.Anonymous) and node.name.casefold() in WINDOW_FUNCTIONS


def stream_window(
    script: Script, node: StreamWindow
) -> PeriodicWindow | CountingWindow | LandmarkWindow:
    """Read a bracket of CQL."""
    kind: str = node.args["kind"]
    if kind == "UNTIL":
        return LandmarkWindow()
    wide, slide = node.args["range"], node.args.get("slide")
    if slide is None:
        written = script.text[wide.expressions[0].meta["start"] : _end(wide) + 1]
        raise script.error(
            f"[{kind} {written}] does not say how far it moves on",
            hint=f"add SLIDE, such as [{kind} {written} SLIDE {written}] for one after the other",
            at=node,
        )
    read = _rows if kind == "ROWS" else _span_us
    values = [(wide, read(script, wide)), (slide, read(script, slide))]
    build: Callable[[int, int], PeriodicWindow | CountingWindow]
    build = CountingWindow if kind == "ROWS" else PeriodicWindow
    with script.located(next((n for n, value in values if value <= 0), node)):
        return build(values[0][1], values[1][1])


def _end(span: exp.Expr) -> int:
    return max(int(inner.meta["end"]) for inner in span.walk() if "end" in inner.meta)


def _rows(script: Script, span: exp.Expr) -> int:
    number = span.expressions[0]
    try:
        return int(number.name)
    except ValueError:
        hint = "write a whole number"
        raise script.error(f"{number.name} is no number of rows", hint=hint, at=number) from None


def _span_us(script: Script, span: exp.Expr) -> int:
    total = 0
    for term in span.expressions:
        if isinstance(term, exp.Interval):
            with script.located(term.args["unit"]):
                total += duration_us(f"{term.name} {term.args['unit'].name}")
        else:
            with script.located(term):
                total += duration_us(term.name)
    return _bounded(script, span, total)


def _bounded(script: Script, node: exp.Expr, us: int) -> int:
    if abs(us) > _LONGEST_US:
        hint = "give a duration below 290,000 years"
        raise script.error("this is longer than any time weft can hold", hint=hint, at=node)
    return us


@dataclass(frozen=True, slots=True)
class WindowReader:
    """Reads the window functions in the GROUP BY of the statement with this scope."""

    scope: Scope

    def read(self, call: exp.Anonymous) -> Timing:
        """Read one element of GROUP BY: a window, or a list of them."""
        if call.name.casefold() != "windows":
            return self._element(call)
        if not call.expressions:
            raise self._error(
                "this list of windows is empty",
                "add one, such as Window('20 min', TumblingWindow(minute, 20))",
                call,
            )
        elements = [self._element(stripped(inner)) for inner in call.expressions]
        return Timing(
            tuple(labelled for element in elements for labelled in element.windows),
            tuple(time for element in elements for time in element.times),
        )

    def _element(self, node: exp.Expr) -> Timing:
        label: exp.Expr | None = None
        inner: exp.Expr = node
        if isinstance(node, exp.Anonymous) and node.name.casefold() == "window":
            first, *rest = node.expressions or [None]
            if first is not None and first.is_string:
                if len(rest) != 1:
                    raise self._error(
                        "Window needs a label and a window",
                        "write Window('20 min', TumblingWindow(minute, 20))",
                        node,
                    )
                label, inner = first, stripped(rest[0])
        if not isinstance(inner, exp.Anonymous):
            raise self._error(
                "this is not a window", "write one, such as TumblingWindow(minute, 20)", inner
            )
        window, times = self._window(inner)
        name = default_label(window) if label is None else label.name
        if not name:
            raise self._error("this label is empty", "name the window, such as '20 min'", node)
        return Timing((Labelled(name, window, label or inner),), times)

    def _window(self, call: exp.Anonymous) -> tuple[Window, tuple[exp.Column, ...]]:
        arguments = [stripped(argument) for argument in call.expressions]
        match call.name.casefold():
            case "window" | "session_window":
                return self._of_spark(call, arguments)
            case "tumblingwindow":
                range_us, *offset = self._durations(call, arguments, 1, 2)
                values = [range_us, range_us, *offset]
                return self._built(PeriodicWindow, call, arguments, values), ()
            case "hoppingwindow":
                values = self._durations(call, arguments, 2, 3)
                return self._built(PeriodicWindow, call, arguments, values), ()
            case "sessionwindow":
                values = self._session_gap(call, arguments)
                return self._built(SessionWindow, call, arguments, values), ()
            case "cumulatingwindow":
                values = self._durations(call, arguments, 2, 2)
                return self._built(CumulatingWindow, call, arguments, values), ()
            case "countingwindow":
                self._arity(call, arguments, 1, 2)
                counts = [self._whole(argument) for argument in arguments]
                return self._built(CountingWindow, call, arguments, [counts[0], counts[-1]]), ()
            case "calendarwindow":
                self._arity(call, arguments, 1, 2)
                with self.scope.script.located(arguments[0]):
                    unit = CalendarWindow(self._word(arguments[0]).lower()).unit
                with self.scope.script.located(arguments[-1]):
                    return CalendarWindow(unit, *map(self._word, arguments[1:])), ()
            case "punctuatedwindow":
                self._arity(call, arguments, 1, 1)
                return PunctuatedWindow(self._predicate(arguments[0])), ()
            case "measuredwindow":
                self._arity(call, arguments, 3, 3)
                return self._measured(call, arguments), ()
            case other:
                raise self._not_a_window(call, other)

    def _not_a_window(self, call: exp.Anonymous, folded: str) -> QueryError:
        if folded == "slidingwindow":
            return self._error(
                "SlidingWindow is not supported: it has an instance for every event",
                "use HoppingWindow(minute, 10, 1) with a slide that is fine enough",
                call,
            )
        if folded == "snapshotwindow":
            return self._error(
                "SnapshotWindow is not supported", "group by the time column instead", call
            )
        if folded == "windows":
            return self._error(
                "a list of windows stands inside another", "write one Windows(...)", call
            )
        return unknown_function(self.scope.script, call, ())

    def _built(
        self,
        build: Callable[..., Window],
        call: exp.Anonymous,
        arguments: list[exp.Expr],
        values: list[int],
    ) -> Window:
        """Build the window; an error points at the first number that is not positive."""
        guilty = (a for a in arguments if a.sql().strip("'") in ("0",) or isinstance(a, exp.Neg))
        with self.scope.script.located(next(guilty, call)):
            return build(*values)

    def _of_spark(
        self, call: exp.Anonymous, arguments: list[exp.Expr]
    ) -> tuple[Window, tuple[exp.Column, ...]]:
        session = call.name.casefold() == "session_window"
        self._arity(call, arguments, 2, 2 if session else 4)
        time = arguments[0]
        if not isinstance(time, exp.Column):
            raise self._error(
                "a window stands over a column",
                "name the column with the event time; compute it in the table first if need be",
                time,
            )
        values = [self._duration(argument) for argument in arguments[1:]]
        if session:
            return self._built(SessionWindow, call, arguments, values), (time,)
        if len(values) == 1:
            values *= 2
        return self._built(PeriodicWindow, call, arguments, values), (time,)

    def _session_gap(self, call: exp.Anonymous, arguments: list[exp.Expr]) -> list[int]:
        values = self._durations(call, arguments, 1, 2)
        if len(values) > 1:
            raise self._error(
                "a session has no greatest duration here",
                "give the gap alone: SessionWindow(minute, 5)",
                call,
            )
        return values

    def _durations(
        self, call: exp.Anonymous, arguments: list[exp.Expr], least: int, most: int
    ) -> list[int]:
        """Read `minute, 60, 5`, or `Duration(minute, 60), Hop(minute, 5)`, or `'1 hour', '5m'`."""
        if arguments and isinstance(arguments[0], exp.Column | exp.Var):
            unit, *numbers = arguments
            self._arity(call, arguments, least + 1, most + 1)
            return [self._number_of(unit, number) for number in numbers]
        self._arity(call, arguments, least, most)
        return [self._duration(argument) for argument in arguments]

    def _duration(self, node: exp.Expr) -> int:
        if isinstance(node, exp.Anonymous) and node.name.casefold() in _WRAPPERS:
            parts = [stripped(part) for part in node.expressions]
            self._arity(node, parts, 2, 2)
            return self._number_of(*parts)
        if not node.is_string and not isinstance(node, exp.Interval):
            raise self._error(
                "this is not a duration",
                "write it as text, such as '20 minutes', or as a unit and a number",
                node,
            )
        text = node.name if node.is_string else node.sql().replace("'", "")
        with self.scope.script.located(node):
            return _bounded(self.scope.script, node, duration_us(text))

    def _number_of(self, unit: exp.Expr, number: exp.Expr) -> int:
        word = unit.name.casefold()
        with self.scope.script.located(unit):
            one = duration_us(f"1 {_UNITS.get(word, unit.name)}")
        literal = number.this if isinstance(number, exp.Neg) else number
        if not isinstance(literal, exp.Literal) or literal.is_string:
            raise self._error("this is not a number", "write a number, such as 20", number)
        with self.scope.script.located(number):
            sign = -1 if isinstance(number, exp.Neg) else 1
            value = sign * duration_us(f"{literal.name} {_UNITS.get(word, unit.name)}")
        return _bounded(self.scope.script, number, value) if one else 0

    def _whole(self, node: exp.Expr) -> int:
        literal = node.this if isinstance(node, exp.Neg) else node
        if not literal.is_int:
            raise self._error("this is not a whole number", "write one, such as 100", node)
        return int(literal.name) * (-1 if isinstance(node, exp.Neg) else 1)

    def _word(self, node: exp.Expr) -> str:
        if node.is_string or (isinstance(node, exp.Column) and not node.table):
            return node.name
        raise self._error("this is not a name", "write it as text, such as 'month'", node)

    def _predicate(self, node: exp.Expr) -> str:
        if not node.is_string:
            return self.scope.scalar(node, "predicate")
        with self.scope.script.located(node):
            return canonical(node.name)

    def _measured(self, call: exp.Anonymous, arguments: list[exp.Expr]) -> MeasuredWindow:
        column, *extents = arguments
        if not isinstance(column, exp.Column):
            raise self._error("a window is measured over a column", "name a column", column)
        values = [self._measure(extent) for extent in extents]
        wrong = next((e for e, value in zip(extents, values, strict=True) if value <= 0), call)
        text = self.scope.scalar(column, "window")
        with self.scope.script.located(wrong):
            return MeasuredWindow(text, *values)

    def _measure(self, node: exp.Expr) -> int | float:
        literal = node.this if isinstance(node, exp.Neg) else node
        if not isinstance(literal, exp.Literal) or literal.is_string:
            raise self._error("this is not a number", "write a number, such as 2.5", node)
        value = int(literal.name) if literal.is_int else float(literal.name)
        return -value if isinstance(node, exp.Neg) else value

    def _arity(self, call: exp.Anonymous, arguments: list[exp.Expr], least: int, most: int) -> None:
        if least <= len(arguments) <= most:
            return
        wanted = str(least) if least == most else f"{least} to {most}"
        raise self._error(
            f"{call.name} takes {wanted} arguments, not {len(arguments)}", _form(call), call
        )

    def _error(self, message: str, hint: str, at: exp.Expr) -> QueryError:
        return self.scope.script.error(message, hint=hint, at=at)


_FORMS = {
    "window": "window(ts, '20 minutes', '5 minutes')",
    "session_window": "session_window(ts, '10 minutes')",
    "tumblingwindow": "TumblingWindow(minute, 20)",
    "hoppingwindow": "HoppingWindow(minute, 60, 5)",
    "sessionwindow": "SessionWindow(minute, 5)",
    "countingwindow": "CountingWindow(100, 10)",
    "cumulatingwindow": "CumulatingWindow(hour, 24, 1)",
    "calendarwindow": "CalendarWindow('month', 'Europe/Berlin')",
    "punctuatedwindow": "PunctuatedWindow(kind = 'start')",
    "measuredwindow": "MeasuredWindow(odometer, 100, 10)",
}


def _form(call: exp.Anonymous) -> str:
    return f"write {_FORMS.get(call.name.casefold(), 'Duration(minute, 20)')}"
