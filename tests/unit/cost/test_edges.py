from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.edges import composite_edges
from weft.cost.edges.divisors import DivisorLattice, divisor_count, divisors, factorize
from weft.cost.edges.rates import (
    edge_density,
    edge_rate,
    independent_components,
    intersect_classes,
    scale_classes,
)
from weft.cost.edges.unions import AtomUnions, BitUnions, edge_unions
from weft.errors import UnsupportedError
from weft.window import PeriodicWindow, edge_classes, primitive_classes

ALIGNED_METHODS = ("auto", "bit_set", "f1", "merged_f1", "lattice", "crt_f1")
ANY_METHODS = ("auto", "bit_set", "crt_f1")

slide_sets = st.lists(st.integers(1, 16), min_size=1, max_size=5)
class_sets = st.lists(
    st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 18, 20, 24]).flatmap(
        lambda m: st.tuples(st.integers(0, m - 1), st.just(m))
    ),
    min_size=1,
    max_size=6,
)


def enumerated(classes: list[tuple[int, int]]) -> Fraction:
    period, edges = composite_edges(classes)
    return Fraction(len(edges), period)


@settings(deadline=None)
@given(slides=slide_sets, offset=st.integers(0, 100), unit=st.sampled_from([1, 7, 1_000_000]))
def test_every_method_counts_the_edges_of_slides(slides, offset, unit):
    classes = [(offset * unit % (slide * unit), slide * unit) for slide in slides]
    want = enumerated([(offset % slide, slide) for slide in slides]) / unit
    assert {method: edge_density(classes, method) for method in ALIGNED_METHODS} == dict.fromkeys(
        ALIGNED_METHODS, want
    )


@settings(deadline=None)
@given(classes=class_sets)
def test_methods_for_any_residues_agree_with_enumeration(classes):
    want = enumerated(classes)
    assert [edge_density(classes, method) for method in ANY_METHODS] == [want] * 3


@settings(deadline=None, max_examples=15)
@given(slides=st.lists(st.integers(20, 1000), min_size=2, max_size=8))
def test_the_sieve_is_within_a_tenth_of_a_percent(slides):
    classes = [(0, slide) for slide in slides]
    assert edge_rate(classes, "sieve") == pytest.approx(edge_rate(classes, "crt_f1"), rel=1e-3)


def test_published_example_of_f1():
    assert 60 * edge_density([(0, 4), (0, 6), (0, 10)], "f1") == 22
    assert 60 * edge_density([(0, slide) for slide in (2, 3, 4, 5)]) == 44


def test_ends_count_as_edges_in_pairs_but_not_in_begins():
    windows = [PeriodicWindow(5, 3), PeriodicWindow(14, 8)]
    assert 24 * edge_density(edge_classes(windows, "pairs")) == 18
    assert 24 * edge_density(edge_classes(windows, "begins")) == 10
    assert edge_rate(edge_classes(windows, "panes")) == 1.0


def test_ten_thousand_slides_cost_no_more_than_their_lattice():
    slides = [d for d in divisors(720_720) if d > 100] * 50
    classes = [(0, slide) for slide in slides]
    marks = np.zeros(720_720, dtype=bool)
    for slide in set(slides):
        marks[::slide] = True
    assert (
        edge_density(classes)
        == edge_density(classes, "lattice")
        == Fraction(int(marks.sum()), 720_720)
    )


def test_many_unrelated_slides_are_estimated():
    classes = [(0, slide) for slide in range(307, 1000, 13)]
    marks = np.zeros(1 << 22, dtype=bool)
    for _, slide in classes:
        marks[::slide] = True
    assert edge_rate(classes) == pytest.approx(marks.mean(), rel=2e-3)


def test_independent_components_multiply():
    left, right = [(0, 8), (3, 12)], [(1, 35), (6, 49)]
    together = 1 - (1 - enumerated(left)) * (1 - enumerated(right))
    assert independent_components(left + right) == [left, right]
    assert edge_density(left + right) == together


def test_a_long_period_with_residues_is_still_counted_exactly():
    classes = [(0, 600), (70, 840), (5, 990), (1, 1001), (3, 997)]
    assert edge_density(classes) == edge_density(classes, "crt_f1")


def test_no_classes_have_no_edges():
    assert edge_rate([]) == 0.0


def test_forced_methods_refuse_what_they_cannot_count():
    apart = [(0, 4), (1, 6)]
    for method in ("f1", "merged_f1", "lattice"):
        with pytest.raises(UnsupportedError, match=f"by {method}: the classes have no edge"):
            edge_density(apart, method)
    with pytest.raises(UnsupportedError, match="subsets"):
        edge_density([(0, 2 * n) for n in range(40, 80)], "f1")
    with pytest.raises(UnsupportedError, match="cannot mark a composite period"):
        edge_density([(0, 2 * n) for n in range(40, 80)], "bit_set")
    with pytest.raises(UnsupportedError, match="no such method"):
        edge_density(apart, "guess")


@settings(deadline=None)
@given(first=class_sets, second=class_sets)
def test_intersections_hold_exactly_the_common_positions(first, second):
    a, b = first[0], second[0]
    period = lcm(a[1], b[1])
    common = {x for x in range(period) if (x - a[0]) % a[1] == 0 and (x - b[0]) % b[1] == 0}
    met = intersect_classes(a, b)
    assert common == (set() if met is None else set(range(met[0], period, met[1])))


@settings(deadline=None)
@given(classes=class_sets)
def test_reductions_keep_the_edges(classes):
    reduced = primitive_classes(classes)
    assert enumerated(list(reduced)) == enumerated(classes)
    scaled, unit, origin = scale_classes(reduced)
    assert enumerated(list(scaled)) / unit == enumerated(classes)
    assert all(
        (r * unit + origin - a) % m == 0 for (r, _), (a, m) in zip(scaled, reduced, strict=True)
    )


def test_divisor_tables():
    assert divisors(1) == (1,)
    assert [len(divisors(n)) for n in (1000, 100_000, 720_720)] == [16, 36, 240]
    assert factorize(997 * 991) == {991: 1, 997: 1}
    assert divisor_count([1000, 720_720], most=10**6) == len(divisors(lcm(1000, 720_720)))
    lattice = DivisorLattice([4, 6, 10])
    assert lattice.edges(0) == 0
    assert lattice.edges(lattice.upset(1)) == 60


@settings(deadline=None)
@given(groups=st.lists(class_sets, min_size=3, max_size=5))
def test_unions_by_atoms_and_by_bits_agree_with_counting(groups):
    rows = [tuple(group) for group in groups]
    sets = edge_unions(rows)
    count = len(rows)
    period = lcm(*(m for row in rows for _, m in row))
    bits = BitUnions.of_classes([primitive_classes(row) for row in rows], 1, period)
    for unions in (sets, bits):
        assert unions.exact
        want = [edge_rate(row) for row in rows]
        assert unions.rates == pytest.approx(want)
        joined = unions.join_rates(0, unions, np.arange(count))
        assert joined == pytest.approx([edge_rate(rows[0] + row) for row in rows])
        rest = unions.unite_all_but_one(range(count)).rates
        whole = [sum(rows[:i] + rows[i + 1 :], ()) for i in range(count)]
        assert rest == pytest.approx([edge_rate(row) for row in whole])
        united = unions.unite([[0, 1], [2]])
        united.assign(1, united, 0)
        assert united.rates == pytest.approx([edge_rate(rows[0] + rows[1])] * 2)


def test_the_kind_of_union_follows_the_slides():
    related = edge_unions([[(0, d)] for d in divisors(720_720)])
    assert isinstance(related, AtomUnions)
    assert related.exact
    unrelated = edge_unions([[(0, slide)] for slide in range(20, 400)])
    assert isinstance(unrelated, BitUnions)
    assert not unrelated.exact
    want = [1 / slide for slide in range(20, 400)]
    assert unrelated.rates == pytest.approx(want, rel=0.01)


def test_unrelated_slides_of_millions_share_only_nested_edges():
    slides = [10_000_019 * n for n in range(2, 6)] + [9_000_000 + 1009 * n for n in range(200)]
    sets = edge_unions([[(0, slide)] for slide in slides])
    assert isinstance(sets, AtomUnions)
    assert not sets.exact
    nested, apart = sets.join_rates(0, sets, np.array([2, 9]))
    assert nested == pytest.approx(1 / slides[0])
    assert apart == pytest.approx(1 / slides[0] + 1 / slides[9])


def test_classes_of_which_one_is_beyond_64_bits_are_inside_others_all_the_same() -> None:
    huge = 1 << 62
    sets = edge_unions([[(0, huge)], [(1, huge // 2)], [(0, huge // 2)], [(3, 5 * huge)]])
    joined = sets.join_rates(0, sets, np.array([1, 2, 3])) * float(5 * huge)
    assert joined.tolist() == [15.0, 10.0, 6.0]


def test_the_unit_of_classes_that_never_meet_is_what_lies_between_them() -> None:
    assert scale_classes([(1, 6), (4, 6)]) == (((0, 2), (1, 2)), 3, 1)
