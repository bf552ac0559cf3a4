"""Moments of pairs and of higher order: correlation, regression, skewness, kurtosis.

Partials hold means and central sums, which are merged pairwise (Chan, Golub & LeVeque; Pébay), for
sums of powers would cancel digits. A column whose values are all equal has central sums of exactly
zero however it was split: whether a slope exists depends on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.aggregates.base import AggregateFunction, Monoid, register_function, register_monoid
from weft.aggregates.laws import Laws

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Comoments(NamedTuple):
    """Of pairs (y, x): count, means, the sum of products of distances, and those of squares."""

    n: Any = 0
    mean_y: Any = 0.0
    mean_x: Any = 0.0
    c: Any = 0.0
    m2_y: Any = 0.0
    m2_x: Any = 0.0


class ShapeMoments(NamedTuple):
    """Count, mean, and the sums of second, third and fourth powers of distances from it."""

    n: Any = 0
    mean: Any = 0.0
    m2: Any = 0.0
    m3: Any = 0.0
    m4: Any = 0.0


@register_monoid
class ComomentsOf(Monoid):
    """Moments of pairs; a pair with a NULL does not count.

    >>> m = ComomentsOf()
    >>> m.combine(m.lift((1.0, 10.0), 0), m.lift((3.0, 20.0), 0))
    Comoments(n=2, mean_y=2.0, mean_x=15.0, c=10.0, m2_y=2.0, m2_x=50.0)
    """

    name = "comoments"
    laws = Laws(commutative=True)
    identity = Comoments()

    def lift(self, args: tuple[Any, ...], time_us: int) -> Comoments:
        """One pair is its own mean."""
        if args[0] is None or args[1] is None:
            return self.identity
        y, x = float(args[0]), float(args[1])
        off_y, off_x = y - y, x - x  # 0; of what is infinite there is none
        return Comoments(1, y, x, off_y + off_x, off_y, off_x)

    def combine(self, a: Comoments, b: Comoments) -> Comoments:
        """Merge two sets of moments."""
        if not a.n or not b.n:
            return a if a.n else b
        n = a.n + b.n
        dy, dx, weight = b.mean_y - a.mean_y, b.mean_x - a.mean_x, a.n * b.n / n
        return Comoments(
            n,
            a.mean_y + dy * b.n / n,
            a.mean_x + dx * b.n / n,
            a.c + b.c + dy * dx * weight,
            a.m2_y + b.m2_y + dy * dy * weight,
            a.m2_x + b.m2_x + dx * dx * weight,
        )


@register_monoid
class ShapeMomentsOf(Monoid):
    """First four moments.

    >>> m = ShapeMomentsOf()
    >>> m.combine(m.lift((1.0,), 0), m.lift((3.0,), 0))
    ShapeMoments(n=2, mean=2.0, m2=2.0, m3=0.0, m4=2.0)
    """

    name = "shape_moments"
    laws = Laws(commutative=True)
    identity = ShapeMoments()

    def lift(self, args: tuple[Any, ...], time_us: int) -> ShapeMoments:
        """One value is its own mean."""
        if args[0] is None:
            return self.identity
        value = float(args[0])
        off = value - value  # 0; of what is infinite there is none
        return ShapeMoments(1, value, off, off, off)

    def combine(self, a: ShapeMoments, b: ShapeMoments) -> ShapeMoments:
        """Merge two sets of moments."""
        if not a.n or not b.n:
            return a if a.n else b
        n = a.n + b.n
        d, p, q = b.mean - a.mean, a.n / n, b.n / n
        weight = d * d * p * b.n
        return ShapeMoments(
            n,
            a.mean + d * q,
            a.m2 + b.m2 + weight,
            a.m3 + b.m3 + weight * d * (p - q) + 3 * d * (p * b.m2 - q * a.m2),
            a.m4
            + b.m4
            + weight * d * d * (p * p - p * q + q * q)
            + 6 * d * d * (p * p * b.m2 + q * q * a.m2)
            + 4 * d * (p * b.m3 - q * a.m3),
        )


@dataclass(frozen=True, slots=True)
class Statistic:
    """A result read off moments, whose fields are numbers or columns of them.

    `value` takes the moments and a square root; `defined` says where there is a result.
    """

    value: Callable[[Any, Callable[[Any], Any]], Any]
    defined: Callable[[Any], Any]


def _some(m: Any) -> Any:
    return m.n > 0


def _two(m: Any) -> Any:
    return m.n > 1


def _slope(m: Any, root: Callable[[Any], Any]) -> Any:
    return m.c / m.m2_x


def _sloped(m: Any) -> Any:
    return m.m2_x != 0


def _determination(m: Any, root: Callable[[Any], Any]) -> Any:
    """Return how much of y a line through x explains; of a y that is constant, all."""
    level = m.m2_x * m.m2_y == 0
    return level + (1 - level) * (m.c * m.c / (m.m2_x * m.m2_y + level))


PAIR_STATISTICS: Mapping[str, Statistic] = {
    "corr": Statistic(
        lambda m, root: m.c / (root(m.m2_x) * root(m.m2_y)),
        lambda m: (m.m2_x != 0) & (m.m2_y != 0),
    ),
    "covar_pop": Statistic(lambda m, root: m.c / m.n, _some),
    "covar_samp": Statistic(lambda m, root: m.c / (m.n - 1), _two),
    "regr_avgx": Statistic(lambda m, root: m.mean_x, _some),
    "regr_avgy": Statistic(lambda m, root: m.mean_y, _some),
    "regr_count": Statistic(lambda m, root: m.n, lambda m: m.n >= 0),
    "regr_intercept": Statistic(lambda m, root: m.mean_y - _slope(m, root) * m.mean_x, _sloped),
    "regr_r2": Statistic(_determination, _sloped),
    "regr_slope": Statistic(_slope, _sloped),
    "regr_sxx": Statistic(lambda m, root: m.m2_x, _some),
    "regr_sxy": Statistic(lambda m, root: m.c, _some),
    "regr_syy": Statistic(lambda m, root: m.m2_y, _some),
}
# A square of the smallest numbers may be nothing: then there is no result either.
SHAPE_STATISTICS: Mapping[str, Statistic] = {
    "skewness": Statistic(lambda m, root: root(m.n) * m.m3 / m.m2**1.5, lambda m: m.m2**1.5 != 0),
    "kurtosis": Statistic(
        lambda m, root: m.n * m.m4 / (m.m2 * m.m2) - 3, lambda m: m.m2 * m.m2 != 0
    ),
}
# Signed sums may cancel to nothing, and then they differ by what was rounded before.
_NEARLY_ZERO = 1e-9


def _lowering(statistic: Statistic) -> Callable[[tuple[Any, ...], tuple[float, ...]], Any]:
    def lower(partials: tuple[Any, ...], ranks: tuple[float, ...]) -> Any:
        (moments,) = partials
        return statistic.value(moments, math.sqrt) if statistic.defined(moments) else None

    return lower


for _name, _statistic in PAIR_STATISTICS.items():
    register_function(
        AggregateFunction(
            _name,
            ("comoments",),
            _lowering(_statistic),
            "numbers",
            "long" if _name == "regr_count" else "double",
            arity=(2,),
            absolute_error=_NEARLY_ZERO,
        )
    )
for _name, _statistic in SHAPE_STATISTICS.items():
    register_function(
        AggregateFunction(
            _name,
            ("shape_moments",),
            _lowering(_statistic),
            "numbers",
            "double",
            absolute_error=_NEARLY_ZERO,
        )
    )
