"""Bench entries as data: who runs against whom, on what, and what must hold.

A `Race` times contenders on the same inputs; its figures are ratios between contenders that were
interleaved in one run. A `Table` computes figures, such as the cost of plans, beside published
ones. Both check their answers: a wrong answer is a failure, however fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.util import find_spec
from statistics import quantiles
from typing import Any, Literal

from weft.errors import InternalError

Runner = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its quartiles: one disturbed round of a shared machine moves none of them.

    >>> print(Spread.of([2.0, 2.2, 2.1, 9.0, 2.0]))
    2.1 (2-2.2)
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Summarize one or more values."""
        ordered = sorted(values)
        low, median, high = quantiles(ordered * (2 if len(ordered) == 1 else 1), method="inclusive")
        return cls(median, low, high)

    def __str__(self) -> str:
        return f"{_short(self.median)} ({_short(self.low)}-{_short(self.high)})"


def _short(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 1000 else f"{figure:.3g}"


Cell = str | int | float | Spread | None
Row = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of figures; a published one holds the numbers of a paper and is not ours."""

    name: str
    form: str = ".4g"
    published: bool = False

    def text(self, cell: Cell) -> str:
        """Write a cell as this column shows it.

        >>> Column("cost", ",.1f").text(1234.56), Column("cost").text(None)
        ('1,234.6', '')
        """
        if cell is None:
            return ""
        return str(cell) if isinstance(cell, str | Spread) else format(cell, self.form)


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing: lines of points, or boxes from five numbers (least, quartiles, greatest)."""

    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = field(default_factory=dict)
    boxes: Mapping[str, tuple[float, float, float, float, float]] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One size of a race: the arguments its inputs are made from, and the items they hold."""

    label: str
    arguments: Mapping[str, int]
    items: int = 0


@dataclass(frozen=True, slots=True)
class Contender:
    """Gets ready on the inputs and returns what is timed; `needs` names optional libraries."""

    start: Callable[[Any], Runner]
    needs: tuple[str, ...] = ()
    # How often it is timed where a run takes long, the run whose answer is checked being the first.
    runs: int | None = None
    yardstick: bool = False  # does other work, to measure by: its answer is not compared


@dataclass(frozen=True, slots=True)
class Bar:
    """What a race must show: `faster` has at least so many times the speed of `slower`."""

    faster: str
    slower: str
    at_least: float
    cases: str = "*"
    at_quick: bool = False  # most ratios are promised at full size only

    def __str__(self) -> str:
        return f"{self.faster} at least {self.at_least:g}x {self.slower}"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a table must show: every cell of a column, in the rows meant, is within bounds."""

    column: str
    at_least: float | None = None
    at_most: float | None = None
    rows: Mapping[str, str] = field(default_factory=dict)  # column: pattern of its text
    at_quick: bool = True

    def __str__(self) -> str:
        bounds = [
            f"{words} {bound:g}"
            for words, bound in (("at least", self.at_least), ("at most", self.at_most))
            if bound is not None
        ]
        where = ", ".join(f"{column} {pattern}" for column, pattern in self.rows.items())
        return f"{self.column} {' and '.join(bounds)}" + (f" where {where}" if where else "")

    def meant(self, row: Row) -> bool:
        """Tell whether this limit speaks of a row."""
        return all(fnmatchcase(str(row.get(c)), pattern) for c, pattern in self.rows.items())

    def met(self, value: float) -> bool:
        """Tell whether a value is within the bounds."""
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)


def equal(expected: Any, answer: Any) -> str:
    """Compare with `==`; the text says what is wrong and is empty when nothing is.

    >>> equal([1, 2], [1, 2]), equal(3, 4)
    ('', 'expected 3, got 4')
    """
    return "" if expected == answer else f"expected {expected!r}, got {answer!r}"


@dataclass(frozen=True, slots=True)
class Race:
    """Contenders timed on the same inputs, all of whose answers must be the expected one.

    `inputs` is called with the arguments of a case, `expected` with those inputs; without it the
    baseline's answer is the expected one. `same` compares an answer with the expected one and says
    what differs. Ratios are against the `baseline`.
    """

    name: str
    question: str
    inputs: Callable[..., Any]
    expected: Callable[[Any], Any] | None
    contenders: Mapping[str, Contender]
    baseline: str
    full: tuple[Case, ...]
    quick: tuple[Case, ...]
    bars: tuple[Bar, ...] = ()
    same: Callable[[Any, Any], str] = equal
    rounds: int = 9
    item: str = "item"
    warm_heap: bool = True  # False: outputs cost new memory, as they do for a first call
    panels: Callable[[tuple[Row, ...]], tuple[Panel, ...]] | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        named = {self.baseline, *(name for bar in self.bars for name in (bar.faster, bar.slower))}
        if unknown := named - set(self.contenders):
            raise InternalError(f"bench entry {self.name} names no contender {sorted(unknown)}")

    @property
    def group(self) -> str:
        """The part of the name before the slash."""
        return self.name.split("/")[0]


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a table computed; `wrong` lists the answers that failed their check."""

    rows: tuple[Row, ...]
    wrong: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Figures that are computed: `compute(quick)` returns the rows and checks its own answers."""

    name: str
    question: str
    columns: tuple[Column, ...]
    compute: Callable[[bool], Sheet]
    limits: tuple[Limit, ...] = ()
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        known = {column.name for column in self.columns}
        named = {name for limit in self.limits for name in (limit.column, *limit.rows)}
        if unknown := named - known:
            raise InternalError(f"bench entry {self.name} has no column {sorted(unknown)}")

    @property
    def group(self) -> str:
        """The part of the name before the slash."""
        return self.name.split("/")[0]


Entry = Race | Table
Judgement = Literal["met", "missed", "not judged"]
Status = Literal["ok", "missed", "wrong", "skipped"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One bar or limit at one case or row, the figure it was judged by, and the judgement."""

    promise: str
    where: str
    figure: Cell
    judgement: Judgement
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that is reported of one entry; a wrong or skipped one has no figures."""

    name: str
    question: str
    status: Status
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """True when an answer is wrong or a bar is missed."""
        return self.status in ("wrong", "missed")


def missing(needs: Iterable[str]) -> str:
    """Say which libraries are absent and how to get them; empty when all are there.

    >>> missing(["math"]), missing(["no_such_library"])
    ('', "needs no_such_library: pip install 'weft-spark[bench]'")
    """
    absent = [library for library in needs if find_spec(library) is None]
    return f"needs {', '.join(absent)}: pip install 'weft-spark[bench]'" if absent else ""


def _check_name(name: str) -> None:
    group, slash, rest = name.partition("/")
    if not (group and slash and rest):
        raise InternalError(f"bench entry {name!r} is not named group/name")
