"""How many events a filter keeps: declared or measured, else assumed from its form.

The assumptions are those of Selinger et al., "Access Path Selection in a Relational Database
Management System" (SIGMOD 1979): a tenth for an equality, a third for a comparison, a quarter for
a range, and conditions are taken to be independent.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from weft.expression import spelled, stripped, tree

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    >>> round(kept_fraction("action = 'buy' OR action = 'sell'", known), 3)
    0.118
    """
    return (
        1.0
        if where is None
        else max(_fraction(where, tuple(dict(statistics.kept).items())), _LEAST)
    )


@lru_cache(maxsize=4096)
def _fraction(where: str, told: tuple[tuple[str, float], ...]) -> float:
    return _of(tree(where), dict(told))


def _of(node: exp.Expr, told: Mapping[str, float]) -> float:
    from sqlglot import exp

    node = stripped(node)
    known = told.get(spelled(node)) if told else None
    if known is not None:
        return known
    match node:
        case exp.And():
            return _of(node.this, told) * _of(node.expression, told)
        case exp.Or():
            return 1 - (1 - _of(node.this, told)) * (1 - _of(node.expression, told))
        case exp.Not():
            return 1 - _of(node.this, told)
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
