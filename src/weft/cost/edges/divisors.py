"""The divisors of a composite period as bits: sets of slides united by OR, edges by popcount.

A position x of the period L is an edge of the slide s exactly when s divides gcd(x, L). So the
edges of any slides that divide L are told by a set of divisors of L, closed under multiples, and
a divisor d stands for phi(L / d) positions. Ten thousand slides cost no more than one.
"""

from __future__ import annotations

from itertools import product
from math import lcm, prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def factorize(number: int) -> dict[int, int]:
    """Return the prime factors of a number with their exponents.

    >>> factorize(720_720)
    {2: 4, 3: 2, 5: 1, 7: 1, 11: 1, 13: 1}
    """
    factors: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors[divisor] = factors.get(divisor, 0) + 1
            number //= divisor
        divisor += 1 if divisor == 2 else 2
    if number > 1:
        factors[number] = factors.get(number, 0) + 1
    return factors


def common_factors(numbers: Iterable[int]) -> dict[int, int]:
    """Return the prime factors of the least common multiple, without factoring it.

    >>> common_factors([4, 6, 10])
    {2: 2, 3: 1, 5: 1}
    """
    factors: dict[int, int] = {}
    for number in set(numbers):
        for prime, exponent in factorize(number).items():
            factors[prime] = max(factors.get(prime, 0), exponent)
    return dict(sorted(factors.items()))


def divisor_count(numbers: Iterable[int], most: int) -> int:
    """Count the divisors of the least common multiple; stops counting above `most`.

    >>> divisor_count([720_720], most=1000), divisor_count([720_720], most=100) > 100
    (240, True)
    """
    factors: dict[int, int] = {}
    count = 1
    for number in set(numbers):
        for prime, exponent in factorize(number).items():
            factors[prime] = max(factors.get(prime, 0), exponent)
        count = prod(exponent + 1 for exponent in factors.values())
        if count > most:
            break
    return count


def divisors(number: int) -> tuple[int, ...]:
    """List the divisors of a number in ascending order.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    powers = ([prime**e for e in range(top + 1)] for prime, top in factorize(number).items())
    return tuple(sorted(prod(choice) for choice in product(*powers)))


class DivisorLattice:
    """The divisors of the least common multiple of some slides, one bit each.

    >>> lattice = DivisorLattice([4, 6, 10])
    >>> both = lattice.upset(4) | lattice.upset(6)
    >>> lattice.period, lattice.edges(both), lattice.edges(both | lattice.upset(10))
    (60, 20, 22)
    """

    def __init__(self, slides: Sequence[int]) -> None:
        self.period = lcm(*slides)
        self._primes = common_factors(slides)
        powers = ([p**e for e in range(top + 1)] for p, top in self._primes.items())
        self._divisors = sorted(prod(choice) for choice in product(*powers))
        self._bit = {divisor: 1 << i for i, divisor in enumerate(self._divisors)}
        self._weights = [self._positions(divisor) for divisor in self._divisors]
        self._edges: dict[int, int] = {0: 0}

    def upset(self, slide: int) -> int:
        """Return the mask of the divisors whose positions are edges of this slide."""
        return sum(bit for divisor, bit in self._bit.items() if divisor % slide == 0)

    def edges(self, mask: int) -> int:
        """Count the edges of one period under a mask, or an OR of masks."""
        known = self._edges.get(mask)
        if known is None:
            known = sum(w for i, w in enumerate(self._weights) if mask >> i & 1)
            self._edges[mask] = known
        return known

    def _positions(self, divisor: int) -> int:
        """Count x in 1..L with gcd(x, L) equal to the divisor: Euler's phi of L / divisor."""
        quotient = totient = self.period // divisor
        for prime in self._primes:
            if quotient % prime == 0:
                totient -= totient // prime
        return totient
