"""Which instances read a row of another window: what the arithmetic finds is what they hold."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from weft.engines.spark.sql.fan_out import FanOut, Reading
from weft.engines.spark.sql.readings import reading_of
from weft.engines.spark.sql.slice_bounds import edge_after, edge_before, pane_of
from weft.plan import FOLD, Roll, Scan
from weft.window.periodic import PeriodicWindow

SCAN = Scan("t", "ts", None, ())


@st.composite
def feeders_and_windows(draw: st.DrawFn) -> tuple[PeriodicWindow, PeriodicWindow]:
    """A window, and one whose instances are made up of the first one's."""
    slide, times = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    feeder = PeriodicWindow(slide * times, slide, draw(st.integers(0, 5)))
    longer = feeder.range_us + draw(st.integers(1, 8)) * draw(
        st.sampled_from([slide, slide * times])
    )
    later = feeder.offset_us + slide * draw(st.integers(0, 3))
    window = PeriodicWindow(longer, slide * draw(st.integers(1, 6)), later)
    assume(feeder.covers(window) or feeder.tiles(window))
    return feeder, window


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient", "rest"),
    [(7, 2, 3, 1), (-7, 2, -3, 1), (7, -2, -3, 1), (-6, 2, -3, 0), (-1, 3, 0, 2)],
)
def test_whole_numbers_are_divided_as_spark_does(
    dividend: int, divisor: int, quotient: int, rest: int
) -> None:
    assert value(f"a div {divisor}", a=dividend) == quotient
    if divisor > 0:
        assert value(f"pmod(a, {divisor}L)", a=dividend) == rest


@settings(max_examples=500)
@given(feeders_and_windows(), st.integers(-20, 20))
def test_a_row_reaches_the_instances_that_read_it_and_no_others(
    pair: tuple[PeriodicWindow, PeriodicWindow], turn: int
) -> None:
    feeder, window = pair
    roll = Roll((SCAN,), feeder, FOLD, (), ())
    reading = reading_of((Roll((roll,), window, FOLD, (), ()), window), 1, roll, feeder)
    assert reading is not None
    event(f"one instance in {reading.stride}, {'checked' if reading.every > 1 else 'as it is'}")
    start = feeder.offset_us + turn * feeder.slide_us
    assert reached(reading, start) == readers(feeder, window, start)


def readers(feeder: PeriodicWindow, window: PeriodicWindow, start: int) -> list[int]:
    """The starts of all instances that read the feeder's instance, found one by one."""
    number, distance = window.reads(feeder)
    return [
        at
        for at in range(start - window.range_us, start + 1)
        if (at - window.offset_us) % window.slide_us == 0
        and start in range(at, at + number * distance, distance)
    ]


def reached(reading: Reading, start: int) -> list[int]:
    """The starts of all instances that the text of a fan-out finds."""
    plan = FanOut({0: [reading]})
    if plan.condition is not None and not value(plan.condition, start=start):
        return []
    found = (
        [value(plan.start, start=start)] if plan.starts is None else value(plan.starts, start=start)
    )
    if plan.later_condition is None:
        return list(found)
    return [at for at in found if value(plan.later_condition, start=start, instance=at)]


class Long(int):
    """A whole number of Spark's: 64 bits, and `div` cuts off towards zero."""

    def _wrapped(self, exact: int) -> Long:
        assert -(2**63) <= exact < 2**63, "Spark would have overflowed"
        return Long(exact)

    def __add__(self, other: int) -> Long:
        return self._wrapped(int(self) + int(other))

    def __sub__(self, other: int) -> Long:
        return self._wrapped(int(self) - int(other))

    def __mul__(self, other: int) -> Long:
        return self._wrapped(int(self) * int(other))

    def __truediv__(self, other: int) -> Long:
        whole = abs(int(self)) // abs(int(other))
        return Long(whole if (self < 0) == (other < 0) else -whole)


def pmod(position: int, modulus: int) -> Long:
    """The remainder as Spark makes it positive: cut off, and added to once."""
    rest = int(position) - int(Long(position) / modulus) * int(modulus)
    return Long(rest + modulus if rest < 0 else rest)


def sequence(first: int, last: int, step: int) -> list[Long]:
    """Both bounds are in it; Spark refuses a step that leads away from the last."""
    assert (last - first) * step >= 0, "Spark would have refused these bounds"
    return [Long(at) for at in range(first, last + (1 if step > 0 else -1), step)]


def value(text: str, **row: int) -> Any:
    """Evaluate the little SQL that a fan-out is made of."""
    spelled = re.sub(r"\b(\d+)L?\b", r"Long(\1)", text).replace(" div ", " / ")
    functions = {"Long": Long, "pmod": pmod, "sequence": sequence}
    return eval(spelled.replace(" = ", " == "), functions | {n: Long(v) for n, v in row.items()})


CLASSES = st.lists(
    st.integers(1, 9).flatmap(lambda m: st.tuples(st.integers(0, m - 1), st.just(m))),
    min_size=1,
    max_size=4,
)


@given(CLASSES, st.integers(-40, 40))
def test_edges_are_found_where_they_lie(classes: list[tuple[int, int]], position: int) -> None:
    def is_edge(at: int) -> bool:
        return any((at - residue) % modulus == 0 for residue, modulus in classes)

    before = next(at for at in range(position, position - 10, -1) if is_edge(at))
    after = next(at for at in range(position + 1, position + 11) if is_edge(at))
    assert (edge_before(position, classes), edge_after(position, classes)) == (before, after)
    first, size = pane_of(classes)
    assert all((residue - first) % size == 0 == modulus % size for residue, modulus in classes)
    wider = [(first % other, other) for other in range(size + 1, 10)]
    assert not any(
        all((r - residue) % other == 0 == m % other for r, m in classes) for residue, other in wider
    )
