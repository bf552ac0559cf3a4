"""Window functions in GROUP BY, as window values with their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.expression import stripped
from weft.parsing.literals import Amount, number, text_duration, unit_duration, whole, word
from weft.parsing.names import WINDOW_FUNCTIONS
from weft.parsing.scope import Scope, unknown_function
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
    Window,
)
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.errors import QueryError

# How each window is written, shown when a call has the wrong number of arguments.
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
    "slidingwindow": "SlidingWindow(minute, 10)",
    "measuredwindow": "MeasuredWindow(odometer, 100, 10)",
}
# Azure Stream Analytics may wrap each duration by its meaning; the position says the same.
_WRAPPERS = ("duration", "hop", "offset", "timeout", "step")
_REFUSED = {
    "slidingwindow": (
        "SlidingWindow has an instance for every event, and stands in a statement of its own",
        "give that statement alone to weft.sql, or use HoppingWindow(minute, 10, 1)",
    ),
    "snapshotwindow": (
        "SnapshotWindow is not supported",
        "use TumblingWindow(microsecond, 1): each instance holds one instant",
    ),
    "windows": ("a list of windows stands inside another one", "write one Windows(...)"),
}


@dataclass(frozen=True, slots=True)
class LabelledWindow:
    """A window, the label of its rows, and the node that an error about the label points at."""

    label: str
    window: Window
    node: exp.Expr


@dataclass(frozen=True, slots=True)
class Grouping:
    """The windows of one element of GROUP BY, and the time columns that it names."""

    windows: tuple[LabelledWindow, ...]
    times: tuple[exp.Column, ...]


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
    """Tell whether this node calls a window, or a list of them."""
    return isinstance(node, exp.Anonymous) and node.name.casefold() in WINDOW_FUNCTIONS


@dataclass(frozen=True, slots=True)
class WindowReader:
    """Reads the window functions of the statement with this scope."""

    scope: Scope

    def read(self, call: exp.Expr) -> Grouping:
        """Read one element of GROUP BY: a window, or a list of them."""
        if call.name.casefold() != "windows":
            elements = [call]
        else:
            elements = [stripped(element) for element in call.expressions]
        if not elements:
            raise self._error(
                "this list of windows is empty",
                "add one, such as Window('20 min', TumblingWindow(minute, 20))",
                call,
            )
        times: list[exp.Column] = []
        windows = tuple(self._labelled(element, times) for element in elements)
        return Grouping(windows, tuple(times))

    def _labelled(self, node: exp.Expr, times: list[exp.Column]) -> LabelledWindow:
        arguments = [stripped(argument) for argument in node.expressions]
        label: exp.Expr | None = None
        # Window('label', ...) of Azure and window(ts, ...) of Spark differ in the first argument.
        if is_window_function(node) and arguments and arguments[0].is_string:
            if node.name.casefold() == "window" and len(arguments) == 2:
                label, node = arguments
            elif node.name.casefold() == "window":
                raise self._error(
                    "Window needs a label and a window",
                    "write Window('20 min', TumblingWindow(minute, 20))",
                    node,
                )
        if not isinstance(node, exp.Anonymous):
            raise self._error(
                "this is not a window", "write one, such as TumblingWindow(minute, 20)", node
            )
        window = self._window(node, [stripped(a) for a in node.expressions], times)
        if label is None:
            return LabelledWindow(default_label(window), window, node)
        if not label.name.strip():
            raise self._error("this label is empty", "name the window, such as '20 min'", label)
        return LabelledWindow(label.name, window, label)

    def _window(
        self, call: exp.Anonymous, arguments: list[exp.Expr], times: list[exp.Column]
    ) -> Window:
        kind = call.name.casefold()
        match kind:
            case "window":
                amounts = self._over_time(call, arguments, 3, times)
                return self._build(_tumbling_or_hopping, amounts, call)
            case "session_window":
                return self._build(SessionWindow, self._over_time(call, arguments, 1, times), call)
            case "tumblingwindow":
                amount, *offset = self._durations(call, arguments, 1, 2)
                return self._build(PeriodicWindow, [amount, amount, *offset], call)
            case "hoppingwindow":
                return self._build(PeriodicWindow, self._durations(call, arguments, 2, 3), call)
            case "sessionwindow":
                return self._build(SessionWindow, self._gap(call, arguments), call)
            case "cumulatingwindow":
                return self._build(CumulatingWindow, self._durations(call, arguments, 2, 2), call)
            case "countingwindow":
                self._check_arity(call, arguments, 1, 2)
                rows = [whole(self.scope.script, argument) for argument in arguments]
                return self._build(CountingWindow, [rows[0], rows[-1]], call)
            case "calendarwindow":
                return self._calendar(call, arguments)
            case "punctuatedwindow":
                self._check_arity(call, arguments, 1, 1)
                return PunctuatedWindow(self._predicate(arguments[0]))
            case "measuredwindow":
                return self._measured(call, arguments)
        if kind in _REFUSED:
            raise self._error(*_REFUSED[kind], call)
        raise unknown_function(self.scope.script, call, ())

    def sliding(self, call: exp.Expr) -> Trailing:
        """Read `SlidingWindow(minute, 10)`: it holds its end, and not its beginning."""
        if not isinstance(call, exp.Anonymous) or call.name.casefold() != "slidingwindow":
            raise self._error(
                "a window that slides with the events stands alone",
                "write one SlidingWindow(minute, 10) in GROUP BY",
                call,
            )
        arguments = [stripped(argument) for argument in call.expressions]
        (amount,) = self._durations(call, arguments, 1, 1)
        with self.scope.script.located(amount.node):
            return Trailing(amount.value, "right")

    def _build(
        self, kind: Callable[..., Window], amounts: list[Amount], call: exp.Anonymous
    ) -> Window:
        """Build the window; an error points at the first range or slide that is not positive."""
        positive = amounts[:2]
        wrong = next((amount.node for amount in positive if amount.value <= 0), call)
        with self.scope.script.located(wrong):
            return kind(*(amount.value for amount in amounts))

    def _over_time(
        self, call: exp.Anonymous, arguments: list[exp.Expr], most: int, times: list[exp.Column]
    ) -> list[Amount]:
        """Read the arguments of Spark's functions: a time column, then durations as text."""
        self._check_arity(call, arguments, 2, 1 + most)
        time, *durations = arguments
        if not isinstance(time, exp.Column):
            raise self._error(
                "a window needs the name of its time column",
                "compute the event time in the table first, then name that column",
                time,
            )
        times.append(time)
        return [self._duration(duration) for duration in durations]

    def _durations(
        self, call: exp.Anonymous, arguments: list[exp.Expr], least: int, most: int
    ) -> list[Amount]:
        """Read `minute, 60, 5`, or `Duration(minute, 60), Hop(minute, 5)`, or `'1 hour', '5m'`."""
        if arguments and isinstance(arguments[0], exp.Column):
            self._check_arity(call, arguments, least + 1, most + 1)
            unit, *numbers = arguments
            return [unit_duration(self.scope.script, unit, n) for n in numbers]
        self._check_arity(call, arguments, least, most)
        return [self._duration(argument) for argument in arguments]

    def _duration(self, node: exp.Expr) -> Amount:
        if isinstance(node, exp.Anonymous) and node.name.casefold() in _WRAPPERS:
            parts = [stripped(part) for part in node.expressions]
            self._check_arity(node, parts, 2, 2)
            return unit_duration(self.scope.script, parts[0], parts[1])
        return text_duration(self.scope.script, node)

    def _gap(self, call: exp.Anonymous, arguments: list[exp.Expr]) -> list[Amount]:
        amounts = self._durations(call, arguments, 1, 2)
        if len(amounts) > 1:
            raise self._error(
                "a session has no greatest duration",
                "give the gap alone, such as SessionWindow(minute, 5)",
                amounts[1].node,
            )
        return amounts

    def _calendar(self, call: exp.Anonymous, arguments: list[exp.Expr]) -> CalendarWindow:
        script = self.scope.script
        self._check_arity(call, arguments, 1, 2)
        unit = word(script, arguments[0]).lower()
        with script.located(arguments[0]):
            window = CalendarWindow(unit)
        if len(arguments) == 1:
            return window
        with script.located(arguments[1]):
            return CalendarWindow(unit, word(script, arguments[1]))

    def _predicate(self, node: exp.Expr) -> str:
        predicate = self.scope.script.embedded(node) if node.is_string else node
        return self.scope.scalar(predicate, "predicate")

    def _measured(self, call: exp.Anonymous, arguments: list[exp.Expr]) -> MeasuredWindow:
        self._check_arity(call, arguments, 3, 3)
        column, *amounts = arguments
        if not isinstance(column, exp.Column):
            raise self._error("a window is measured over a column", "name a column", column)
        text = self.scope.scalar(column, "window")
        range, slide = (number(self.scope.script, amount) for amount in amounts)
        with self.scope.script.located(amounts[0] if range <= 0 else amounts[1]):
            return MeasuredWindow(text, range, slide)

    def _check_arity(
        self, call: exp.Anonymous, arguments: list[exp.Expr], least: int, most: int
    ) -> None:
        if least <= len(arguments) <= most:
            return
        wanted = str(least) if least == most else f"{least} to {most}"
        form = _FORMS.get(call.name.casefold(), "Duration(minute, 20)")
        raise self._error(
            f"{call.name} takes {wanted} argument{'s' if most > 1 else ''}, not {len(arguments)}",
            f"write {form}",
            call,
        )

    def _error(self, message: str, hint: str, at: exp.Expr) -> QueryError:
        return self.scope.script.error(message, hint=hint, at=at)


def _tumbling_or_hopping(range_us: int, slide_us: int | None = None, offset_us: int = 0) -> Window:
    return PeriodicWindow(range_us, range_us if slide_us is None else slide_us, offset_us)
