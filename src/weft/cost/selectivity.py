"""How many events a filter keeps: declared or measured, else assumed from its form.

The assumptions are those of Selinger et al., "Access Path Selection in a Relational Database
Management System" (SIGMOD 1979): a tenth for an equality, a third for a comparison, a quarter for
a range, and conditions are taken to be independent.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from weft.expression import stripped, tree

if TYPE_CHECKING:
    from sqlglot import exp

    from weft.statistics import Statistics

_EQUAL, _COMPARED, _BETWEEN, _UNKNOWN = 0.1, 1 / 3, 0.25, 0.5
_LEAST = 1e-6  # a filter that keeps nothing is still read for


def kept_fraction(where: str | None, statistics: Statistics) -> float:
    """Return the fraction of a source's events that a filter keeps.

    >>> from weft.statistics import Statistics
    >>> known = Statistics(kept={"action = 'buy'": 0.02})
    >>> [kept_fraction(text, known) for text in ("action = 'buy'", "action = 'sell'", None)]
    [0.02, 0.1, 1.0]
    """
    if where is None:
        return 1.0
    told = dict(statistics.kept)
    return max(told[where] if where in told else _assumed(where), _LEAST)


@lru_cache(maxsize=4096)
def _assumed(where: str) -> float:
    return _of(tree(where))


def _of(node: exp.Expr) -> float:
    from sqlglot import exp

    node = stripped(node)
    match node:
        case exp.And():
            return _of(node.this) * _of(node.expression)
        case exp.Or():
            return 1 - (1 - _of(node.this)) * (1 - _of(node.expression))
        case exp.Not():
            return 1 - _of(node.this)
        case exp.EQ() | exp.Is() | exp.NullSafeEQ():
            return _EQUAL
        case exp.In():
            return min(_EQUAL * len(node.expressions), 0.5)
        case exp.NEQ():
            return 1 - _EQUAL
        case exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
            return _COMPARED
        case exp.Between() | exp.Like():
            return _BETWEEN
        case exp.Boolean():
            return float(bool(node.this))
        case _:
            return _UNKNOWN
