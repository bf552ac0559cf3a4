"""EXPLAIN, form by form: plans built by hand, and plans of the portfolio in the paper's counting.

No case depends on calibrated costs, so measuring a machine again changes no golden file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import pytest

from golden.loader import Case, cases
from weft.aggregates import AggregateCall, Partial
from weft.plan import (
    FOLD,
    FORMATS,
    PICK,
    RANGES,
    STAIR,
    Candidate,
    Emit,
    Join,
    JoinSide,
    Plan,
    Roll,
    Scan,
    Share,
    Slice,
)
from weft.plan.body import Format, StrategyChoice
from weft.plan.nodes import topological
from weft.statistics import Statistics
from weft.window import (
    Edges,
    Window,
    calendar,
    hopping,
    punctuated,
    session,
    tumbling,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICE = (("device", "device"),)
MIN = (Partial("min", ("temp",)),)
SUM = (Partial("sum", ("temp",)), Partial("count", ("temp",)))
LOW = (("lo", AggregateCall("min", ("temp",))),)
MEAN = (("mean", AggregateCall("avg", ("temp",))),)
READINGS = Scan("readings", "ts", None, ("device", "temp"))


def fold(feeder: Scan | Slice | Roll, window: Window, partials: tuple[Partial, ...] = MIN) -> Roll:
    return Roll((feeder,), window, FOLD, DEVICE, partials)


def factor_windows() -> Plan:
    scan = Scan("readings", "ts", "temp > 0", ("device", "temp"))
    ten = fold(scan, tumbling("10 minutes"))
    twenty = fold(ten, tumbling("20 minutes"))
    thirty = fold(ten, tumbling("30 minutes"))
    forty = fold(twenty, tumbling("40 minutes"))
    labels = {"20m": twenty, "30m": thirty, "40m": forty}
    nodes = topological(tuple(Emit((r,), "lows", label, LOW) for label, r in labels.items()))
    costs = {ten: 120.0, twenty: 12.0, thirty: 12.0, forty: 6.0}
    return Plan(
        nodes,
        "factor",
        "spark",
        "paper",
        "operations per 2h",
        tuple(costs.get(node, 0.0) for node in nodes),
        (
            Candidate("independent", 360.0, "2.4x the cost of the chosen plan"),
            Candidate("factor", 150.0, "chosen"),
            Candidate("weave", float("inf"), "no plan of its own"),
        ),
        Statistics(rate=1 / 60),
        tuple(
            Share("lows", label, str(r.window), str(r.inputs[0].window), costs[r], 120.0, "")
            for label, r in labels.items()
        ),
        ("min(temp) is idempotent, so that overlapping windows may feed others",),
    )


def strategies() -> Plan:
    few, many = ("lows",), tuple(f"q{i}" for i in range(9))
    chosen = (
        StrategyChoice(few, "native", "slices", 1.5e6, 3e6, "the other costs 2x"),
        StrategyChoice(many, "columnar", "events", None, 9.0, "native cannot run it: COUNT 3"),
        StrategyChoice(("forced",), "columnar", "slices", None, None, "forced"),
    )
    return replace(factor_windows(), shares=(), notes=(), strategies=chosen)


def slices() -> Plan:
    """Two trees over common slices; uneven edges; costs with float noise."""
    near = [hopping("5 minutes", "3 minutes"), hopping("7 minutes", "3 minutes")]
    far = [hopping("1 hour", "15 minutes")]
    finest = Slice(READINGS, DEVICE, Edges.of([*near, *far]), SUM)
    emits = []
    for name, windows, technique in (("near", near, "two_stacks"), ("far", far, "flat_fat")):
        tree = Slice(finest, DEVICE, Edges.of(windows), SUM)
        for window in windows:
            roll = Roll((tree,), window, RANGES, DEVICE, SUM, technique)
            emits.append(Emit((roll,), name, str(window), MEAN))
    nodes = topological(tuple(emits))
    costs = (0.0, 0.1 + 0.2, 2 / 3, 1e7, 0.0, 123456.789, *([0.0] * (len(nodes) - 6)))
    return Plan(nodes, "triweave", "local", "paper", "operations per second", costs)


def stairs() -> Plan:
    """A seed over slices, two windows around it, and one that picks instances of another."""
    seed, middle, outer = (
        hopping(f"{n} minutes", f"{s} minutes") for n, s in ((10, 5), (20, 10), (60, 20))
    )
    grains = Slice(READINGS, DEVICE, Edges.of([seed, middle, outer]), SUM)
    first = Roll((grains,), seed, RANGES, DEVICE, SUM, "two_stacks_lite")
    second = Roll((first, grains), middle, STAIR, DEVICE, SUM)
    third = Roll((second, grains), outer, STAIR, DEVICE, SUM, "sliding_ranges")
    hourly = Roll((third,), tumbling("1 hour"), PICK, DEVICE, SUM)
    # Nobody asks for the second window: it only carries the third.
    nodes = topological(
        (
            Emit((first,), "a", "10m", MEAN),
            Emit((third,), "a", "1h", MEAN),
            Emit((hourly,), "b", "hourly", MEAN),
        )
    )
    return Plan(
        nodes,
        "subsume",
        "local",
        "paper",
        "operations per second",
        tuple(float(i) for i in range(len(nodes))),
    )


def unshared_parts() -> Plan:
    """Medians beside shared minima; other window kinds; no keys; computed keys; assumed time."""
    hour = tumbling("1 hour", "5 minutes")
    values = (Partial("values", ("temp",)),)
    low, mid = fold(READINGS, hour), fold(READINGS, hour, values)
    both = Emit((low, mid), "lows", "1h", (*LOW, ("mid", AggregateCall("median", ("temp",)))))
    unkeyed = Scan("clicks", None, "note = 'a\nb'", ("note",), whole_events=True)
    rows = (Partial("count_rows", ()),)
    edges = Edges.of([calendar("day", "Europe/Berlin"), punctuated("kind = 'start'")])
    keys = (("day", "to_date(ts)"),)
    daily = Roll(
        (Slice(unkeyed, keys, edges, rows),), calendar("day", "Europe/Berlin"), FOLD, keys, rows
    )
    visits = Roll((unkeyed,), session("30 minutes"), FOLD, (), rows)
    count = (("n", AggregateCall("count")),)
    nodes = topological(
        (both, Emit((daily,), "days", "d", count), Emit((visits,), "visit's", "s", count))
    )
    reason = "exact percentiles of temp need every event of the window"
    return Plan(
        nodes,
        "mixed",
        "reference",
        "paper",
        "operations per 1h",
        (1.0,) * len(nodes),
        (Candidate("independent", 9.0, "10 % less"),),
        Statistics(key_skew=0.25, lateness_us=(1_000_000, 5_000_000, 90_000_000)),
        (
            Share("lows", "1h", str(hour), "events", 3.0, 3.0, reason),
            Share("days", "d", "CALENDAR day Europe/Berlin", "slices", 2.0, 2.0, ""),
        ),
    )


def joined() -> Plan:
    left = Scan("clink", "ts", None, ("id", "source"))
    right = Scan("blink", "ts", "bytes > 0", ("bytes", "id"))
    hour = hopping("1 hour", "1 minute")
    rows = (Partial("count_rows", ()),)
    sides = (
        JoinSide(left, "c", hour, True, (("c.source", "c.source"), ("c.id", "c.id")), rows),
        JoinSide(right, "b", None, False, (("b.id", "b.id"),), ()),
    )
    join = Join(
        sides, (("c.id", "b.id"), ("c.source", "b.source")), (("source", "c.source"),), rows
    )
    nodes = topological((Emit((join,), "links", "1h/1m", (("n", AggregateCall("count")),)),))
    return Plan(nodes, "early", "spark", "paper", "operations per second", (2.0, 3.0, 5.5, 0.0))


def hundred() -> Plan:
    """A hundred results over one slicing, from windows of long and short ranges."""
    windows = [hopping(f"{n} minutes", "1 minute") for n in range(1, 101)]
    grains = Slice(READINGS, DEVICE, Edges.of(windows), MIN)
    emits = tuple(
        Emit((Roll((grains,), w, RANGES, DEVICE, MIN, "slick_deque"),), f"q{n}", str(w), LOW)
        for n, w in enumerate(windows)
    )
    nodes = topological(emits)
    shares = tuple(
        Share(emit.query, emit.label, emit.label, "slices", 1.0, 60.0, "") for emit in emits
    )
    costs = tuple(1.0 if isinstance(node, Roll) else 0.0 for node in nodes)
    return Plan(
        nodes,
        "slice",
        "local",
        "paper",
        "operations per minute",
        costs,
        (Candidate("independent", 5050.0, "50.5x"), Candidate("slice", 100.0, "chosen")),
        shares=shares,
    )


def hostile() -> Plan:
    """Names that would like to be markup."""
    scan = Scan('t"]; x', "<b>ts</b>", "a < 1 & b > 2", ())
    roll = Roll((scan,), tumbling("1 hour"), FOLD, (), (Partial("min", ('`x"y`',)),))
    emit = Emit(
        (roll,),
        "<script>alert(1)</script>",
        "a\n# ; | `b`",
        (('"lo"', AggregateCall("min", ('`x"y`',))),),
    )
    return Plan(
        (scan, roll, emit),
        "independent",
        "local",
        "paper",
        "per 1h",
        (0.0, 60.0, 0.0),
        notes=("<img src=x onerror=alert(1)>",),
    )


PLANS: dict[str, Callable[[], Plan]] = {
    make.__name__: make
    for make in (
        factor_windows,
        strategies,
        slices,
        stairs,
        unshared_parts,
        joined,
        hundred,
        hostile,
    )
}
HANDMADE = [
    case
    for form in FORMATS
    if form not in ("html", "svg")
    for case in cases(f"explain/{form}.test")
]


@pytest.mark.parametrize("case", HANDMADE)
def test_explain_of_plans_built_by_hand(case: Case, golden: Callable[[Case, str], None]) -> None:
    form = case.path.stem
    assert form in get_args(Format)
    golden(case, PLANS[case.text]().explain(form))
