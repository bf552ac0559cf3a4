"""Aggregates that gather values: lists and sets of them, sums of distinct ones, the most frequent.

What is gathered is a bag: its order is that of the values, whatever the order of events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.aggregates.base import AggregateFunction, register_function, register_monoid
from weft.aggregates.distinct import Distinct, Values, canonical
from weft.aggregates.extremes import order_key
from weft.aggregates.functions import average
from weft.aggregates.laws import Laws
from weft.aggregates.sums import Total

if TYPE_CHECKING:
    from weft.aggregates.sums import Sum


@register_monoid
class Bag(Values):
    """All values, in their order; unlike those of a percentile they are put together from slices.

    >>> bag = Bag()
    >>> bag.combine(bag.lift(("b",), 0), bag.lift(("a",), 1))
    ('a', 'b')
    """

    name = "bag"
    laws = Laws(commutative=True)


@register_monoid
class Members(Distinct):
    """The values themselves, each once."""

    name = "set"


@register_monoid
class Tally(Bag):
    """How often each value is there."""

    name = "tally"

    def lift(self, args: tuple[Any, ...], time_us: int) -> tuple[Any, ...]:
        """NULL is skipped."""
        return () if args[0] is None else (canonical(args[0]),)


def _listed(partials: tuple[Any, ...], ranks: tuple[float, ...]) -> list[Any]:
    return sorted(partials[0], key=order_key)


def _total(values: frozenset[Any]) -> Sum:
    adding = Total()
    total = adding.identity
    for value in values:
        total = adding.combine(total, adding.lift((value,), 0))
    return total


def _sum(partials: tuple[Any, ...], ranks: tuple[float, ...]) -> Any:
    return _total(partials[0]).value() if partials[0] else None


def _average(partials: tuple[Any, ...], ranks: tuple[float, ...]) -> Any:
    return average((_total(partials[0]), len(partials[0])), ranks)


def _mode(partials: tuple[Any, ...], ranks: tuple[float, ...]) -> Any:
    """Return the most frequent value; of several, the least."""
    best, most, before = None, 0, 0
    values = partials[0]
    for place, value in enumerate(values, 1):
        if place == len(values) or order_key(values[place]) != order_key(value):
            if place - before > most:
                best, most = value, place - before
            before = place
    return best


for _function in (
    AggregateFunction("collect_list", ("bag",), _listed, result="list"),
    AggregateFunction("collect_set", ("set",), _listed, result="list"),
    AggregateFunction("sum_distinct", ("set",), _sum, "numbers", "sum"),
    AggregateFunction("avg_distinct", ("set",), _average, "numbers", "average"),
    AggregateFunction("mode", ("tally",), _mode),
):
    register_function(_function)
