"""Window kinds: validation, labels, and the calendar at every awkward clock change."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.time import instant, instant_us
from weft.window import CalendarWindow, CumulatingWindow, MeasuredWindow

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/St_Johns"]
ZONES += ["Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "America/Havana"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
@given(seconds=st.integers(-2_000_000_000, 4_000_000_000))
def test_calendar_instances_cover_time_without_gaps(unit: str, zone: str, seconds: int) -> None:
    window = CalendarWindow(unit, zone)
    at = seconds * 1_000_000
    ((start, end),) = window.instances(at)
    assert start <= at < end
    ((_, end_before),) = window.instances(start - 1)
    assert end_before == start
    ((start_after, _),) = window.instances(end)
    assert start_after == end


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", (2024, 3, 31), 23),
        ("Europe/Berlin", (2024, 10, 27), 25),
        ("America/Sao_Paulo", (2018, 11, 4), 23),  # midnight does not exist
        ("America/Sao_Paulo", (2018, 2, 17), 25),  # midnight comes an hour late
        ("America/Havana", (2024, 11, 3), 25),  # the hour after midnight comes twice
        ("Australia/Lord_Howe", (2024, 4, 7), 24.5),
        ("America/St_Johns", (2011, 3, 13), 23),
        ("America/Toronto", (1919, 3, 31), 23.5),  # clocks jumped from 23:30 to 0:30
    ],
)
def test_days_are_as_long_as_clocks_say(zone: str, day: tuple[int, int, int], hours: float) -> None:
    noon = instant_us(dt.datetime(*day, 12, tzinfo=ZoneInfo(zone)))
    ((start, end),) = CalendarWindow("day", zone).instances(noon)
    assert (end - start) / 3_600_000_000 == hours


def test_a_day_that_a_zone_skipped_belongs_to_nobody() -> None:
    """Samoa had no 30 December 2011: the day before ends where the day after starts."""
    eve = instant_us(dt.datetime(2011, 12, 29, 12, tzinfo=ZoneInfo("Pacific/Apia")))
    ((_, end),) = CalendarWindow("day", "Pacific/Apia").instances(eve)
    assert instant(end).astimezone(ZoneInfo("Pacific/Apia")).day == 31


def test_calendar_units_start_where_the_calendar_says() -> None:
    at = instant_us(dt.datetime(2024, 8, 15, 10, tzinfo=dt.UTC))
    starts = {
        unit: instant(next(CalendarWindow(unit).instances(at))[0]).date().isoformat()
        for unit in ("day", "week", "month", "quarter", "year")
    }
    assert starts == {
        "day": "2024-08-15",
        "week": "2024-08-12",
        "month": "2024-08-01",
        "quarter": "2024-07-01",
        "year": "2024-01-01",
    }


def test_times_outside_the_calendar_are_an_error_not_a_crash() -> None:
    with pytest.raises(weft.DataError, match="years 1 to 9999"):
        list(CalendarWindow("day").instances(10**18))


@given(st.integers(-100, 100), st.integers(1, 5), st.integers(1, 5))
def test_cumulating_instances_are_those_of_its_parts(at: int, steps: int, step: int) -> None:
    window = CumulatingWindow(steps * step, step)
    by_parts = sorted(i for part in window.parts() for i in part.instances(at))
    assert sorted(window.instances(at)) == by_parts


@given(st.integers(-50, 50), st.integers(1, 9), st.integers(1, 9))
def test_measured_ordinals_are_those_that_hold_the_value(value: int, size: int, slide: int) -> None:
    found = MeasuredWindow("km", size, slide).ordinals(value)
    wanted = [m for m in range(-100, 100) if m * slide <= value < m * slide + size]
    assert list(found) == wanted


def test_measured_borders_are_exact_in_decimal_fractions() -> None:
    assert list(MeasuredWindow("km", 0.1, 0.1).ordinals(0.1)) == [1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: weft.tumbling(0), "holds no event"),
        (lambda: weft.tumbling("-5 minutes"), "holds no event"),
        (lambda: weft.hopping("5 minutes", 0), "never moves on"),
        (lambda: weft.session("0 seconds"), "joins no events"),
        (lambda: weft.counting(0), "is empty"),
        (lambda: weft.counting(5, 0), "is empty"),
        (lambda: weft.cumulating("1 hour", "7 minutes"), "cannot grow in steps"),
        (lambda: weft.calendar("moth"), "did you mean 'month'"),
        (lambda: weft.calendar("day", "Europe/Berln"), "did you mean 'Europe/Berlin'"),
        (lambda: weft.punctuated(" "), "needs a predicate"),
        (lambda: weft.measured("km", 0, 1), "not a positive number"),
        (lambda: weft.measured("km", 1, float("nan")), "not a positive number"),
        (lambda: weft.tumbling("1 month"), "has no fixed length"),
        (lambda: weft.tumbling("20 minuts"), "did you mean 'minutes'"),
        (lambda: weft.tumbling("soon"), "cannot read 'soon' as a duration"),
        (lambda: weft.tumbling(True), "a duration cannot be bool"),
        (lambda: weft.tumbling(1.5), "a duration cannot be float"),
        (lambda: weft.tumbling("0.0000001 seconds"), "not a whole number of microseconds"),
    ],
)
def test_impossible_windows_are_refused_with_a_hint(make, message: str) -> None:
    with pytest.raises(weft.QueryError) as error:
        make()
    assert message in str(error.value)
    assert "\nhint: " in str(error.value)


def test_user_windows_are_equal_by_class_and_settings() -> None:
    class Every(weft.UserWindow):
        def __init__(self, n: int) -> None:
            self.n = n

    assert Every(3) == Every(3)
    assert hash(Every(3)) == hash(Every(3))
    assert Every(3) != Every(4)
    assert str(Every(3)) == "USER Every(n=3)"
    with pytest.raises(weft.QueryError, match="does not define begins"):
        Every(3).begins({}, {})


def test_the_default_discretizer_asks_event_by_event() -> None:
    class Pairs(weft.UserWindow):
        def begins(self, event, state):
            state["n"] = state.get("n", 0) + 1
            return state["n"] % 2

        def ends(self, event, state):
            return 1 if state.get("n", 0) and state["n"] % 2 == 0 else 0

    begins, ends = Pairs().discretize({"x": [1, 2, 3, 4]}, {})
    assert begins.tolist() == [1, 0, 1, 0]
    assert ends.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    "smallest",
    [
        lambda: weft.session(1),
        lambda: weft.tumbling(1),
        lambda: weft.hopping(1, 1),
        lambda: weft.cumulating(1, 1),
        lambda: weft.counting(1, 1),
        lambda: weft.measured("km", 1, 1),
    ],
)
def test_one_microsecond_one_row_and_one_unit_are_enough(smallest: Any) -> None:
    assert smallest() == smallest()


def test_a_measured_window_is_told_with_its_slide_where_that_is_another() -> None:
    assert str(MeasuredWindow("km", 10, 2.5)) == "MEASURED km 10/2.5"
    assert str(MeasuredWindow("km", 10, 10)) == "MEASURED km 10"
