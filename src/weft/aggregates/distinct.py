"""Sets and multisets of values: exact distinct counts and exact percentiles."""

from __future__ import annotations

import math
from typing import Any

from weft.aggregates.base import Monoid, register_monoid
from weft.aggregates.extremes import order_key
from weft.aggregates.laws import Laws

_NAN = math.nan


def canonical(value: Any) -> Any:
    """Make equal values identical: one NaN for all, and 0.0 for -0.0, as Spark compares them.

    >>> len({canonical(v) for v in (0.0, -0.0, float("nan"), math.nan)})
    2
    """
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value + 0.0
    return value


@register_monoid
class Distinct(Monoid):
    """The set of values seen."""

    name = "distinct"
    laws = Laws(commutative=True, idempotent=True)
    grows = True
    identity: frozenset[Any] = frozenset()

    def lift(self, args: tuple[Any, ...], time_us: int) -> frozenset[Any]:
        """NULL is skipped."""
        return self.identity if args[0] is None else frozenset((canonical(args[0]),))

    def combine(self, a: frozenset[Any], b: frozenset[Any]) -> frozenset[Any]:
        """Unite."""
        return a | b


@register_monoid
class Values(Monoid):
    """All values, sorted; grows with the events, so sharing it gains nothing."""

    name = "values"
    laws = Laws(commutative=True, holistic=True)
    grows = True
    identity: tuple[Any, ...] = ()

    def lift(self, args: tuple[Any, ...], time_us: int) -> tuple[Any, ...]:
        """NULL is skipped."""
        return () if args[0] is None else (args[0],)

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge, keeping the order of values."""
        return tuple(sorted(a + b, key=order_key))
