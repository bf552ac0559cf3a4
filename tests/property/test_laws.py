"""Every declared law of every aggregate, on random inputs."""

from __future__ import annotations

import math
from dataclasses import fields
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from weft import agg
from weft.aggregates import AggregateCall, base, decompose, monoid, monoid_names
from weft.aggregates.custom import same_partial
from weft.aggregates.laws import Laws
from weft.aggregates.spark_sketches import MERGED_BY
from weft.errors import QueryError

numbers = st.one_of(st.none(), st.integers(-1000, 1000), st.floats(-1e6, 1e6), st.just(math.nan))
whole = st.one_of(st.none(), st.integers(-(2**40), 2**40))
INPUTS: dict[str, st.SearchStrategy[Any]] = {
    "bool_and": st.one_of(st.none(), st.booleans()),
    "bool_or": st.one_of(st.none(), st.booleans()),
    "bit_and": whole,
    "bit_or": whole,
    "bit_xor": whole,
    "moments": st.one_of(st.none(), st.floats(-1e3, 1e3)),
    "product": st.one_of(st.none(), st.floats(-10, 10)),
    "comoments": st.tuples(*(st.one_of(st.none(), st.floats(-1e3, 1e3)),) * 2),
    "shape_moments": st.one_of(st.none(), st.floats(-1e3, 1e3)),
    "min_by": st.tuples(numbers, numbers),
    "max_by": st.tuples(numbers, numbers),
    "count_rows": st.just(()),
}
# Other test modules and doctests define aggregates of their own in the same process.
BUILT_IN = [n for n in monoid_names() if n in base._BUILT_IN and n not in MERGED_BY]


def lifted(data: st.DataObject, name: str) -> Any:
    value = data.draw(INPUTS.get(name, numbers))
    args = value if isinstance(value, tuple) else (value,)
    return monoid(name).lift(args, data.draw(st.integers(-5, 5)))


@pytest.mark.parametrize("name", BUILT_IN)
@given(data=st.data())
def test_the_identity_changes_nothing(name: str, data: st.DataObject) -> None:
    m, x = monoid(name), lifted(data, name)
    assert same_partial(m.combine(m.identity, x), x)
    assert same_partial(m.combine(x, m.identity), x)


LAWS = [field.name for field in fields(Laws)]
EXACT = st.one_of(st.none(), st.integers(-(2**40), 2**40), st.decimals(-9, 9, places=2))


def broken(law: str, m: Any, x: Any, y: Any, z: Any) -> bool:
    """Tell whether some partials show that a law does not hold."""
    both = m.combine(x, y)
    match law:
        case "associative":
            return not same_partial(m.combine(both, z), m.combine(x, m.combine(y, z)))
        case "commutative":
            return not same_partial(both, m.combine(y, x))
        case "idempotent":
            return not same_partial(m.combine(x, x), x)
        case "selective":
            return not same_partial(both, x) and not same_partial(both, y)
        case "invertible":
            return not same_partial(m.invert(both, x), y)
        case "holistic":  # as many values as there were
            return len(both) != len(x) + len(y)
        case _:
            raise AssertionError(f"nobody says what {law} means")


def declared(exact: bool) -> list[tuple[str, str]]:
    found = {n: m.exact_laws if exact else m.laws for n in BUILT_IN for m in [monoid(n)]}
    return [(n, law) for n, laws in found.items() for law in LAWS if laws and getattr(laws, law)]


@pytest.mark.parametrize(("name", "law"), declared(exact=False))
@given(data=st.data())
def test_declared_laws_hold(name: str, law: str, data: st.DataObject) -> None:
    assert not broken(law, monoid(name), *(lifted(data, name) for _ in range(3)))


@pytest.mark.parametrize(("name", "law"), declared(exact=True))
@given(values=st.lists(EXACT, min_size=3, max_size=3))
def test_laws_of_exact_numbers_hold(name: str, law: str, values: list[Any]) -> None:
    m = monoid(name)
    assert not broken(law, m, *(m.lift((value,), 0) for value in values))


# What holds and is not declared, because nothing could use it.
UNUSED = {("bool_and", "selective"), ("bool_or", "selective")}
FORGOTTEN = [
    (name, law)
    for name in BUILT_IN
    for law in ("idempotent", "selective")
    if not getattr(monoid(name).laws, law) and (name, law) not in UNUSED
]


@pytest.mark.parametrize(("name", "law"), FORGOTTEN)
def test_laws_that_are_not_declared_are_not_merely_forgotten(name: str, law: str) -> None:
    """Of every law that a monoid does not declare there is an example that breaks it."""
    m = monoid(name)
    drawn = st.tuples(*(st.tuples(INPUTS.get(name, numbers), st.integers(-5, 5)),) * 3)

    def breaks(inputs: Any) -> bool:
        parts = [m.lift(v if isinstance(v, tuple) else (v,), at) for v, at in inputs]
        return broken(law, m, *parts)

    first = settings(max_examples=2000, database=None, phases=[Phase.generate])
    assert find(drawn, breaks, settings=first)


@given(st.data(), st.sampled_from(BUILT_IN), st.sampled_from(BUILT_IN))
def test_partials_that_travel_together_have_the_laws_of_both(
    data: st.DataObject, first: str, second: str
) -> None:
    one, other = monoid(first), monoid(second)
    together = one.laws & other.laws
    pairs = [(lifted(data, first), lifted(data, second)) for _ in range(3)]
    for law in ("associative", "commutative", "idempotent", "invertible"):
        if getattr(together, law):
            assert not broken(law, one, *(pair[0] for pair in pairs))
            assert not broken(law, other, *(pair[1] for pair in pairs))
    assert not together.selective  # each of the two may pick another side
    assert together.holistic == (one.laws.holistic or other.laws.holistic)


def test_an_average_shares_its_partials_with_sum_and_count() -> None:
    asked = [agg.avg("x"), agg.sum("x"), agg.count("x"), agg.var("x"), agg.stddev_pop("x")]
    assert [str(p) for p in decompose(asked)] == ["sum(x)", "count(x)", "moments(x)"]


def fold(call: AggregateCall, values: list[Any]) -> Any:
    parts = []
    for partial in call.partials:
        m = partial.monoid
        total = m.identity
        for i, value in enumerate(values):
            total = m.combine(total, m.lift((value,) * max(len(partial.args), 1), i))
        parts.append(total)
    return call.lower(tuple(parts))


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20))
def test_a_float_sum_is_the_exact_sum_rounded_once(values: list[float]) -> None:
    assert fold(agg.sum("x"), values) == math.fsum(values)


@pytest.mark.parametrize(
    ("call", "values", "wanted"),
    [
        (agg.sum("x"), [None, None], None),
        (agg.sum("x"), [1, 2, None], 3),
        (agg.sum("x"), [Decimal("0.10"), Decimal("0.20")], Decimal("0.30")),
        (agg.avg("x"), [1, 2], 1.5),
        (agg.avg("x"), [], None),
        (agg.var("x"), [1.0], None),
        (agg.var("x"), [1.0, 3.0], 2.0),
        (agg.var_pop("x"), [1.0, 3.0], 1.0),
        (agg.stddev("x"), [1.0, 3.0], math.sqrt(2)),
        (agg.min("x"), [2.0, math.nan], 2.0),
        (agg.max("x"), [2.0, math.inf], math.inf),
        (agg.first("x"), [None, 7, 8], 7),
        (agg.last("x"), [7, 8, None], 8),
        (agg.product("x"), [2, 3, None], 6.0),
        (agg.bool_and("x"), [True, None, False], False),
        (agg.bool_or("x"), [None], None),
        (agg.bit_and("x"), [6, 3], 2),
        (agg.bit_or("x"), [6, 3], 7),
        (agg.bit_xor("x"), [6, 6], 0),
        (agg.bit_xor("x"), [None], None),
        (agg.count_distinct("x"), [1, 1, 2, None, -0.0, 0.0], 3),
        (agg.median("x"), [1, 2, 3, 10], 2.5),
        (agg.percentile("x", 0.25), [1, 2, 3, 4, 5], 2.0),
        (agg.min_by("x", "x"), [3, 1, 2], 1),
        (agg.max_by("x", "x"), [3, 1, 2], 3),
    ],
    ids=str,
)
def test_results_by_hand(call: AggregateCall, values: list[Any], wanted: Any) -> None:
    assert same_partial(fold(call, values), wanted)


def test_the_maximum_with_nan_is_nan() -> None:
    assert math.isnan(fold(agg.max("x"), [1.0, math.nan, math.inf]))


@pytest.mark.parametrize("size", [1, 10, 1000, 30_000])
def test_approximate_distinct_counts_are_within_their_error(size: int) -> None:
    call = agg.approx_count_distinct("x")
    m = call.partials[0].monoid
    registers = bytearray(m.identity)
    for i in range(size):
        one = m.lift((f"user-{i}",), 0)
        at = next(j for j, r in enumerate(one) if r)
        registers[at] = max(registers[at], one[at])
    estimate = call.lower((bytes(registers),))
    assert abs(estimate - size) <= max(call.aggregate.relative_error * size, 1)


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=50), st.floats(0, 1))
def test_approximate_percentiles_are_within_one_percent_of_a_value(values, p) -> None:
    exact = sorted(values)[math.floor(p * (len(values) - 1))]
    assert fold(agg.approx_percentile("x", p), values) == pytest.approx(exact, rel=0.01001)


def test_an_integer_sum_beyond_64_bits_is_an_error() -> None:
    from weft.errors import DataError

    with pytest.raises(DataError, match="does not fit 64 bits"):
        fold(agg.sum("x"), [2**62, 2**62])


@pytest.mark.parametrize(
    ("law", "settings"),
    [
        ("commutative", {"combine": lambda a, b: a or b, "identity": 0}),
        ("idempotent", {"combine": lambda a, b: a + b, "identity": 0, "idempotent": True}),
        ("a monoid", {"combine": lambda a, b: a + b, "identity": 1}),
        ("invertible", {"combine": max, "identity": -1, "inverse": lambda a, b: a - b}),
        (
            "associative",
            {"combine": lambda a, b: (a + b) / 2 if a and b else a or b, "identity": 0},
        ),
    ],
)
def test_a_custom_aggregate_that_breaks_a_declared_law_is_refused(law, settings) -> None:
    complete = {"commutative": True, "idempotent": False, "examples": [1, 2, 5], **settings}
    with pytest.raises(QueryError, match=f"is not {law}"):
        agg.custom("broken", lift=lambda x: x, lower=lambda p: p, **complete)


@pytest.mark.parametrize("name", ["median", "max", "sum", "moments", "distinct"])
def test_a_custom_aggregate_cannot_take_a_built_in_name(name: str) -> None:
    with pytest.raises(QueryError, match="belongs to a built-in aggregate"):
        agg.custom(
            name,
            lift=lambda x: x,
            combine=max,
            lower=lambda p: p,
            identity=0,
            commutative=True,
            idempotent=True,
            examples=[1, 2],
        )


def test_a_custom_aggregate_takes_as_many_columns_as_its_lift() -> None:
    weighted = agg.custom(
        "weighted_total",
        lift=lambda value, weight: value * weight,
        combine=lambda a, b: a + b,
        lower=lambda p: p,
        identity=0,
        commutative=True,
        idempotent=False,
    )
    assert str(weighted("price", "quantity")) == "weighted_total(price, quantity)"
    with pytest.raises(QueryError, match="takes 2 arguments, not 1"):
        weighted("price")
