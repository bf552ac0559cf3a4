"""The algebraic laws an aggregate declares and a technique may need.

Legality is decided by these laws alone, never by the name of a function.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Laws:
    """What holds for an aggregate's `combine`; property tests check each declared law.

    `invertible` means that removing a partial is exact: integer sums have it, float sums do
    not, because a running subtraction keeps the rounding of values that already left.

    >>> Laws(commutative=True, idempotent=True, selective=True).missing(("invertible",))
    ('invertible',)
    """

    associative: bool = True
    commutative: bool = False
    invertible: bool = False
    idempotent: bool = False
    selective: bool = False  # combine(a, b) is always a or b
    holistic: bool = False  # partials grow with the events; nothing is gained by sharing them

    def missing(self, needed: tuple[str, ...]) -> tuple[str, ...]:
        """Name the laws of `needed` that do not hold here."""
        return tuple(law for law in needed if not getattr(self, law))

    def __and__(self, other: Laws) -> Laws:
        """Combine the laws of two partials that travel together in one tuple.

        A tuple of selective partials is not selective: each field may pick another side.
        """
        both = {f.name: getattr(self, f.name) and getattr(other, f.name) for f in fields(Laws)}
        both["selective"] = False
        both["holistic"] = self.holistic or other.holistic
        return Laws(**both)
