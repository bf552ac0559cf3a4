"""Every named invariant has a plan that breaks it, and the error gives its name."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from weft.aggregates import AggregateCall, Partial, rows_where
from weft.aggregates.custom import custom
from weft.errors import InternalError
from weft.plan import FOLD, PICK, RANGES, STAIR, Emit, Join, JoinSide, Node, Roll, Scan, Slice
from weft.plan import validate as validate_module
from weft.plan.nodes import topological
from weft.plan.validate import cuts, cuts_begin, encloses, validate
from weft.window import (
    CalendarWindow,
    CumulatingWindow,
    Edges,
    PeriodicWindow,
    SessionWindow,
    Window,
    hopping,
    session,
    tumbling,
)

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = (("device", "device"),)
OTHER_KEYS = (("city", "city"),)
MIN = (Partial("min", ("x",)),)
MAX = (Partial("max", ("x",)),)
SUM = (Partial("count_rows", ()),)
VALUES = (Partial("values", ("x",)),)
SCAN = Scan("t", "ts", None, ("x",))
TOLD = custom(
    "told_in_order",
    lift=lambda x: (x,),
    combine=lambda a, b: a + b,
    lower=len,
    identity=(),
    commutative=False,
    idempotent=False,
)("x")
LISTED = TOLD.partials
LOW = (("lo", AggregateCall("min", ("x",))),)
ROWS = (("n", AggregateCall("count")),)
MID = (("mid", AggregateCall("median", ("x",))),)


def minutes(range_: int, slide: int | None = None) -> PeriodicWindow:
    return hopping(f"{range_} minutes", f"{slide or range_} minutes")


def roll(
    window: Window,
    *inputs: Scan | Slice | Roll,
    read: str | None = None,
    technique: str | None = None,
    keys: tuple[tuple[str, str], ...] = KEYS,
    partials: tuple[Partial, ...] = MIN,
) -> Roll:
    way = read or (FOLD if technique is None else RANGES)
    return Roll(inputs or (SCAN,), window, way, keys, partials, technique)


def joined(
    partials: tuple[Partial, ...],
    on: tuple[tuple[str, str], ...] = (("a.k", "b.k"),),
    result: tuple[Partial, ...] | None = None,
) -> tuple[Node, ...]:
    sides = tuple(JoinSide(SCAN, alias, minutes(10), True, KEYS, partials) for alias in "ab")
    join = Join(sides, on, KEYS, SUM if result is None else result)
    return topological((Emit((join,), "q", "10m", ROWS),))


def joined_slices(*, early: bool, keys: tuple[tuple[str, str], ...] = KEYS) -> tuple[Node, ...]:
    """A join of slices, which only early sides of the same keys may read."""
    held = sliced(minutes(10), partials=SUM)
    sides = tuple(JoinSide(held, alias, minutes(10), early, keys, SUM) for alias in "ab")
    return topological((Emit((Join(sides, (("a.k", "b.k"),), KEYS, SUM),), "q", "10m", ROWS),))


def sliced(
    *windows: Window, feeder: Scan | Slice = SCAN, partials: tuple[Partial, ...] = MIN
) -> Slice:
    return Slice(feeder, KEYS, Edges.of(windows), partials)


def plan(*feeders: Roll, outputs: tuple[tuple[str, AggregateCall], ...] = LOW) -> tuple[Node, ...]:
    return topological((Emit(feeders, "q", "w", outputs),))


TEN, TWENTY = roll(minutes(10)), roll(minutes(20))


def stair(step: Roll, slices: Slice | Roll, window: PeriodicWindow) -> tuple[Node, ...]:
    return plan(roll(window, step, slices, read=STAIR))


WHERE = "x > 1"
TEN_WHERE = (MIN[0].under(WHERE), rows_where(WHERE))
LOW_WHERE = (("lo", AggregateCall("min", ("x",), where=WHERE)),)


def mixed(
    partials: tuple[Partial, ...] = (*TEN_WHERE, *MIN),
    outputs: tuple[tuple[str, AggregateCall], ...] = LOW_WHERE,
    scanned: str | None = None,
    exists: Partial = TEN_WHERE[1],
    window: Window | None = None,
) -> tuple[Node, ...]:
    """A query that keeps fewer events than its scan."""
    read = Roll((replace(SCAN, where=scanned),), window or minutes(10), FOLD, KEYS, partials)
    return topological((Emit((read,), "q", "w", outputs, exists=exists),))


def joined_where() -> tuple[Node, ...]:
    """A join that would filter its matches."""
    nodes = joined(SUM)
    emit = nodes[-1]
    assert isinstance(emit, Emit)
    return topological((replace(emit, outputs=LOW_WHERE, exists=TEN_WHERE[1]),))


BROKEN: list[tuple[str, str, Callable[[], tuple[Node, ...]]]] = [
    ("inputs-come-first", "reversed", lambda: plan(TEN)[::-1]),
    ("inputs-come-first", "missing scan", lambda: plan(TEN)[1:]),
    ("each-node-once", "scan twice", lambda: (SCAN, *plan(TEN))),
    ("nothing-is-computed-in-vain", "unread window", lambda: (*plan(TEN), TWENTY)),
    ("slices-have-edges", "none", lambda: plan(roll(minutes(10), sliced()))),
    (
        "holistic-is-not-sliced",
        "median",
        lambda: plan(
            roll(minutes(10), sliced(minutes(10), partials=VALUES), partials=VALUES), outputs=MID
        ),
    ),
    (
        "keys-only-shrink",
        "window",
        lambda: plan(roll(minutes(20), TEN, keys=OTHER_KEYS)),
    ),
    (
        "keys-only-shrink",
        "slices",
        lambda: plan(
            roll(
                minutes(10),
                replace(sliced(minutes(10)), input=sliced(minutes(5)), keys=OTHER_KEYS),
                keys=OTHER_KEYS,
            )
        ),
    ),
    (
        "keys-only-shrink",
        "other order",
        lambda: plan(
            roll(
                minutes(20),
                roll(minutes(10), keys=KEYS + OTHER_KEYS),
                keys=OTHER_KEYS + KEYS,
            )
        ),
    ),
    (
        "regrouping-combines",
        "pick",
        lambda: plan(roll(minutes(10, 20), roll(minutes(10)), read=PICK, keys=())),
    ),
    (
        "events-of-others-move-no-window",
        "regrouped sessions",
        lambda: plan(roll(session("5 minutes"), sliced(session("5 minutes")), keys=())),
    ),
    (
        "events-of-others-move-no-window",
        "regrouped slices of sessions",
        lambda: plan(roll(minutes(10), sliced(minutes(10), session("5 minutes")), keys=())),
    ),
    (
        "holistic-is-not-combined",
        "regrouped",
        lambda: plan(
            roll(minutes(10), roll(minutes(10), partials=VALUES), keys=(), partials=VALUES),
            outputs=MID,
        ),
    ),
    (
        "regrouping-needs-commutativity",
        "custom",
        lambda: plan(
            roll(minutes(10), sliced(minutes(10), partials=LISTED), keys=(), partials=LISTED),
            outputs=(("list", TOLD),),
        ),
    ),
    (
        "same-keys-as-the-feeder",
        "emit",
        lambda: plan(TEN, roll(minutes(10), keys=OTHER_KEYS)),
    ),
    (
        "same-keys-as-the-feeder",
        "slices of a late input",
        lambda: joined_slices(early=False),
    ),
    (
        "same-keys-as-the-feeder",
        "slices of other keys",
        lambda: joined_slices(early=True, keys=OTHER_KEYS),
    ),
    (
        "partials-come-from-the-feeder",
        "window",
        lambda: plan(roll(minutes(20), TEN, partials=MAX)),
    ),
    (
        "partials-come-from-the-feeder",
        "slices",
        lambda: plan(
            roll(minutes(10), sliced(minutes(10), feeder=sliced(minutes(5)), partials=MAX))
        ),
    ),
    (
        "edges-are-coarser",
        "other period",
        lambda: plan(roll(minutes(10), sliced(minutes(10), feeder=sliced(minutes(4))))),
    ),
    (
        "edges-are-coarser",
        "unknown calendar",
        lambda: plan(
            roll(
                CalendarWindow("day"),
                sliced(minutes(4), CalendarWindow("day"), feeder=sliced(minutes(4))),
            )
        ),
    ),
    ("reading-is-known", "guess", lambda: plan(roll(minutes(20), TEN, read="guess"))),
    (
        "picks-combine-nothing",
        "a technique",
        lambda: plan(roll(minutes(10, 4), roll(minutes(10, 2)), read=PICK, technique="naive")),
    ),
    ("technique-is-known", "magic", lambda: plan(roll(minutes(20), TEN, technique="magic"))),
    (
        "technique-is-legal",
        "subtracting minima",
        lambda: plan(roll(minutes(20, 10), sliced(minutes(20, 10)), technique="subtract_on_evict")),
    ),
    ("events-are-folded", "two stacks", lambda: plan(roll(minutes(10), technique="two_stacks"))),
    (
        "slices-end-at-the-window",
        "begins elsewhere",
        lambda: plan(roll(minutes(10), sliced(minutes(4)))),
    ),
    (
        "slices-end-at-the-window",
        "ends elsewhere",
        lambda: plan(roll(minutes(5, 3), sliced(minutes(3)))),
    ),
    (
        "only-periodic-windows-feed-windows",
        "session",
        lambda: plan(roll(minutes(20), roll(session("1 minute")))),
    ),
    (
        "picked-instances-exist",
        "other range",
        lambda: plan(roll(minutes(20), TEN, read=PICK)),
    ),
    (
        "holistic-is-not-combined",
        "median",
        lambda: plan(
            roll(minutes(20), roll(minutes(10), partials=VALUES), partials=VALUES), outputs=MID
        ),
    ),
    ("feeder-covers-the-window", "30 from 20", lambda: plan(roll(minutes(30), TWENTY))),
    ("feeder-covers-the-window", "regrouped", lambda: plan(roll(minutes(30), TWENTY, keys=()))),
    (
        "overlap-needs-idempotence",
        "counts",
        lambda: plan(
            roll(minutes(10, 2), roll(minutes(8, 2), partials=SUM), partials=SUM), outputs=ROWS
        ),
    ),
    (
        "stair-encloses-its-step",
        "longer step",
        lambda: stair(TWENTY, sliced(minutes(10), minutes(20)), minutes(10)),
    ),
    (
        "stair-encloses-its-step",
        "ends elsewhere",
        lambda: stair(roll(minutes(10)), sliced(minutes(5)), minutes(15)),
    ),
    (
        "stair-encloses-its-step",
        "slices begin elsewhere",
        lambda: stair(TEN, sliced(minutes(20)), minutes(20)),
    ),
    ("stair-encloses-its-step", "no slices", lambda: stair(TEN, TEN, minutes(20))),
    ("results-have-their-partials", "no count", lambda: plan(TEN, outputs=ROWS)),
    ("results-have-their-partials", "no count of its events", lambda: mixed(TEN_WHERE[:1])),
    ("results-are-of-the-events-of-their-query", "all", lambda: mixed(outputs=LOW)),
    ("the-scan-keeps-the-events-of-its-queries", "others", lambda: mixed(scanned="x < 0")),
    ("rows-exist-by-a-count", "minimum", lambda: mixed(exists=TEN_WHERE[0])),
    ("events-of-others-move-no-window", "session", lambda: mixed(window=session("5 minutes"))),
    ("joins-filter-their-inputs", "condition", lambda: joined_where()),
    ("one-window-per-emit", "two", lambda: plan(TEN, TWENTY)),
    ("early-inputs-carry-counts", "minimum only", lambda: joined(MIN)),
    ("inputs-are-tied", "no equality", lambda: joined(SUM, on=())),
    (
        "columns-of-several-inputs-are-carried",
        "only joined on",
        lambda: joined(SUM, result=(Partial("sum", ("a.x * b.x",)),)),
    ),
]


@pytest.mark.parametrize(
    ("invariant", "broken"),
    [pytest.param(name, make, id=f"{name}: {case}") for name, case, make in BROKEN],
)
def test_a_broken_plan_is_refused_by_name(
    invariant: str, broken: Callable[[], tuple[Node, ...]]
) -> None:
    with pytest.raises(InternalError, match=f"breaks the invariant {invariant} at"):
        validate(broken())


def test_every_invariant_has_a_broken_plan() -> None:
    named = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', inspect.getsource(validate_module)))
    assert named == {name for name, _, _ in BROKEN}


LEGAL: dict[str, Callable[[], tuple[Node, ...]]] = {
    "slices regrouped": lambda: plan(
        roll(minutes(10), replace(sliced(minutes(10)), input=sliced(minutes(5)), keys=()), keys=())
    ),
    "a window of regrouped slices": lambda: plan(roll(minutes(10), sliced(minutes(5)), keys=())),
    "a window regrouped": lambda: plan(roll(minutes(10), TEN, keys=())),
    "tiled": lambda: plan(roll(minutes(40), TWENTY)),
    "covered": lambda: plan(roll(minutes(10, 2), roll(minutes(8, 2)))),
    "tiled counts": lambda: plan(
        roll(minutes(20), roll(minutes(10, 5), partials=SUM), partials=SUM), outputs=ROWS
    ),
    "picked": lambda: plan(roll(minutes(10, 4), roll(minutes(10, 2)), read=PICK)),
    "picked median": lambda: plan(
        roll(minutes(10), roll(minutes(10, 5), partials=VALUES), read=PICK, partials=VALUES),
        outputs=MID,
    ),
    "same session": lambda: plan(roll(SessionWindow(5), roll(SessionWindow(5)))),
    "a condition": mixed,
    "a condition within the scan's": lambda: mixed(scanned="x > 0"),
    "slices": lambda: plan(roll(minutes(5, 3), sliced(minutes(5, 3)), technique="two_stacks")),
    "exact counts": lambda: plan(
        roll(
            minutes(20, 10),
            sliced(minutes(10), partials=SUM),
            technique="prefix_ring",
            partials=SUM,
        ),
        outputs=ROWS,
    ),
    "finer slices": lambda: plan(roll(minutes(10), sliced(minutes(10), feeder=sliced(minutes(5))))),
    "stair": lambda: stair(roll(minutes(4, 2)), sliced(minutes(2)), minutes(12, 4)),
    "join": lambda: joined(SUM),
    "join of slices": lambda: joined_slices(early=True),
    "two inputs": lambda: plan(TEN, roll(minutes(10), partials=VALUES), outputs=(*LOW, *MID)),
}


@pytest.mark.parametrize("legal", LEGAL.values(), ids=LEGAL)
def test_a_legal_plan_passes(legal: Callable[[], tuple[Node, ...]]) -> None:
    validate(legal())


def test_enclosing_means_longer_and_ending_together() -> None:
    assert encloses(PeriodicWindow(4, 2), PeriodicWindow(12, 4))
    assert not encloses(PeriodicWindow(12, 4), PeriodicWindow(4, 4))
    assert not encloses(PeriodicWindow(4, 2), PeriodicWindow(4, 2))
    assert not encloses(PeriodicWindow(4, 2), PeriodicWindow(13, 4))
    assert not encloses(PeriodicWindow(4, 4), PeriodicWindow(12, 2))


@pytest.mark.parametrize(
    ("edges", "window", "begin", "whole"),
    [
        (Edges.of([minutes(5)]), CumulatingWindow(600_000_000, 300_000_000), True, True),
        (Edges.of([minutes(10)]), CumulatingWindow(600_000_000, 300_000_000), True, False),
        (Edges.of([minutes(3)]), CumulatingWindow(600_000_000, 300_000_000), False, False),
        (Edges.of([CalendarWindow("day")]), CalendarWindow("day"), True, True),
        (Edges.of([CalendarWindow("day")]), CalendarWindow("month"), False, False),
        (Edges.of([minutes(3)], "begins"), minutes(5, 3), True, True),
        (Edges.of([minutes(3)]), minutes(5, 3), True, False),
        (Edges.of([tumbling("3 minutes")]), minutes(6, 3), True, True),
    ],
)
def test_what_slices_cut(edges: Edges, window: Window, begin: bool, whole: bool) -> None:
    assert (cuts_begin(edges, window), cuts(edges, window)) == (begin, whole)
