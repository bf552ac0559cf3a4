"""Grouping by Patroumpas & Sellis (ADBIS 2011): the example, corrections, counts, speed."""

from __future__ import annotations

from random import Random
from time import process_time

import pytest

from weft.errors import InternalError
from weft.planners.subsume.groups import (
    Group,
    check_groups,
    minimum_groups,
    subsume_windows,
    subsumes,
)
from weft.window.periodic import PeriodicWindow

EXAMPLE = (
    (4, 2), (6, 2), (6, 3), (8, 2), (8, 4), (12, 3), (12, 4), (12, 6), (16, 8), (20, 10), (24, 12),
    (30, 10),
)  # fmt: skip


def hop(range_us: int, slide_us: int, offset_us: int = 0) -> PeriodicWindow:
    return PeriodicWindow(range_us, slide_us, offset_us)


def example() -> tuple[Group, ...]:
    return subsume_windows([hop(*w) for w in EXAMPLE])


def shape(groups) -> list[list[tuple[tuple[int, int], list[tuple[int, int, int]]]]]:
    """Every group as its members with their piggybacks: (range, slide), [(range, slide, q)]."""
    return [
        [
            (
                (member.range_us, member.slide_us),
                [(r.range_us, r.slide_us, r.slide_us // member.slide_us) for r in riders],
            )
            for member, riders in zip(group.chain, group.piggybacks, strict=True)
        ]
        for group in groups
    ]


def drawn(count: int, slide_max: int, seed: int) -> list[PeriodicWindow]:
    """Windows of the paper's experiments: slide < range <= 60, ending at multiples of the slide."""
    rng = Random(seed)
    found = []
    while len(found) < count:
        range_us, slide_us = rng.randint(1, 60), rng.randint(1, slide_max)
        if slide_us < range_us:
            found.append(hop(range_us, slide_us, -range_us))
    return found


def test_twelve_windows_make_three_groups():
    assert shape(example()) == [
        [((4, 2), []), ((6, 2), []), ((8, 2), [(8, 4, 2)]), ((12, 4), []), ((16, 8), [])],
        [((6, 3), []), ((12, 3), [(12, 6, 2)]), ((24, 12), [])],
        [((20, 10), []), ((30, 10), [])],
    ]
    assert [group.base_slide_us for group in example()] == [2, 3, 10]
    assert len(minimum_groups([hop(*w) for w in EXAMPLE])) == 3


def test_roles():
    roles = dict(example()[0].roles)
    assert roles[hop(4, 2)] == "seed"
    assert roles[hop(12, 4)] == "enclosing"
    assert roles[hop(8, 4)] == "piggybacked"


def test_a_range_that_is_no_multiple_stands_alone_and_says_why():
    groups = subsume_windows([hop(8, 2), hop(10, 4), hop(3, 5)])
    assert [g.reason is None for g in groups] == [False, True, False]
    assert "no multiple of its slide" in groups[0].reason
    check_groups(groups)
    check_groups(minimum_groups([hop(8, 2), hop(10, 4), hop(3, 5)]))


def test_queues_of_events_need_no_multiples_but_common_ends():
    ends_together = [hop(7, 2, -7), hop(10, 4, -10)]
    assert len(subsume_windows(ends_together)) == 2
    assert len(subsume_windows(ends_together, for_aggregates=False)) == 1
    assert len(subsume_windows([hop(7, 2), hop(10, 4)], for_aggregates=False)) == 2


def test_phases_must_agree():
    assert len(subsume_windows([hop(4, 2), hop(8, 4, 2)])) == 1
    assert len(subsume_windows([hop(4, 2), hop(8, 4, 1)])) == 2
    assert not subsumes(hop(8, 4, 1), hop(8, 2))
    assert len(subsume_windows([hop(4, 2), hop(8, 4), hop(8, 8, 3)])) == 2


@pytest.mark.parametrize(
    ("group", "complaint"),
    [
        (Group((), ()), "level without a member"),
        (Group((hop(4, 2), hop(9, 3)), ((), ())), "does not enclose"),
        (Group((hop(4, 2), hop(4, 4)), ((), ())), "does not enclose"),
        (Group((hop(4, 2),), ((hop(6, 2),),)), "cannot ride"),
        (Group((hop(4, 2),), ((hop(4, 4), hop(4, 4)),)), "in two groups"),
        (Group((hop(5, 2),), ((),)), "does not suit"),
        (Group((hop(4, 2),), ((),), "it is odd"), "does not suit"),
    ],
)
def test_broken_groups_are_found_out(group, complaint):
    with pytest.raises(InternalError, match=complaint):
        check_groups([group])


@pytest.mark.parametrize(
    ("slide_max", "count", "greedy", "least"),
    [(10, 1000, (8, 13), (5, 9)), (20, 1000, (19, 25), (14, 20)), (30, 2000, (20, 36), (12, 23))],
    ids=["smooth", "medium", "abrupt"],
)
def test_group_counts_of_random_pools(slide_max, count, greedy, least):
    for seed in range(4):
        pool = drawn(count, slide_max, seed)
        found = subsume_windows(pool, for_aggregates=False)
        fewest = minimum_groups(pool, for_aggregates=False)
        for groups in (found, fewest):
            check_groups(groups, for_aggregates=False)
            assert {w for g in groups for w in g.windows} == set(pool)
        assert greedy[0] <= len(found) <= greedy[1]
        assert least[0] <= len(fewest) <= min(least[1], len(found))


@pytest.mark.parametrize("slide_max", [10, 20, 30])
def test_ten_thousand_windows_are_grouped_within_a_second(slide_max):
    pool = drawn(10_000, slide_max, 1)
    started = process_time()
    subsume_windows(pool, for_aggregates=False)
    minimum_groups(pool, for_aggregates=False)
    assert process_time() - started < 1


def test_ten_thousand_unlike_windows_are_grouped_within_a_second():
    rng = Random(0)
    pool = [hop(s * rng.randint(1, 50), s) for s in (rng.randint(1, 1000) for _ in range(10_000))]
    took = []
    for _ in range(2):  # the collector may run through all of the test process in one of them
        started = process_time()
        groups = subsume_windows(pool)
        took.append(process_time() - started)
    assert min(took) < 1
    check_groups(groups)
