"""Windows that come and go in any order leave groups that keep their promises."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from weft.planners.subsume.groups import (
    check_groups,
    minimum_groups,
    reason_to_stand_alone,
    subsume_windows,
    subsumes,
)
from weft.window.periodic import PeriodicWindow

multiples = st.builds(
    lambda slide, times, offset: PeriodicWindow(slide * times, slide, offset),
    st.integers(1, 12),
    st.integers(1, 6),
    st.sampled_from([0, 0, 0, 1, 2]),
)
windows = multiples | st.builds(PeriodicWindow, st.integers(1, 30), st.integers(1, 12))


@settings(deadline=None)
@given(st.lists(windows, max_size=30), st.booleans())
def test_static_groups_keep_their_promises(pool, for_aggregates):
    for group_all in (subsume_windows, minimum_groups):
        groups = group_all(pool, for_aggregates=for_aggregates)
        check_groups(groups, for_aggregates=for_aggregates)
        assert {w for g in groups for w in g.windows} == set(pool)


def plainly_grouped(pool):
    """Algorithm 1 as printed: every group is tried, coarsest seed first."""
    groups = []
    for window in sorted(set(pool), key=lambda w: (w.range_us, w.slide_us, w.offset_us)):
        lone = reason_to_stand_alone(window) is not None
        for group in () if lone else sorted(groups, key=lambda g: -g["seed"].slide_us):
            last = group["chain"][-1]
            if group["lone"] or not subsumes(window, last):
                continue
            if window.range_us > last.range_us:
                group["chain"].append(window)
            break
        else:
            groups.append({"seed": window, "chain": [window], "lone": lone})
    return [tuple(group["chain"]) for group in groups]


@settings(deadline=None)
@given(st.lists(windows, max_size=40))
def test_the_index_finds_the_group_that_trying_all_finds(pool):
    assert [group.chain for group in subsume_windows(pool)] == plainly_grouped(pool)


def fewest_chains(pool):
    """The least number of groups by trying to put each window into every group."""
    ordered = sorted(pool, key=lambda w: (w.range_us, w.slide_us, w.offset_us))
    best = len(ordered)

    def place(position, ends):
        nonlocal best
        if len(ends) >= best:
            return
        if position == len(ordered):
            best = len(ends)
            return
        window = ordered[position]
        for i, last in enumerate(ends):
            if subsumes(window, last):
                # On the back of the last member, or after it.
                end = last if window.range_us == last.range_us else window
                place(position + 1, [*ends[:i], end, *ends[i + 1 :]])
        place(position + 1, [*ends, window])

    place(0, [])
    return best


@settings(deadline=None)
@given(st.lists(multiples, min_size=1, max_size=8, unique=True))
def test_minimum_groups_are_as_few_as_trying_all_finds(pool):
    assert len(minimum_groups(pool)) == fewest_chains(pool)
    assert len(minimum_groups(pool)) <= len(subsume_windows(pool))
