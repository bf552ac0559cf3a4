"""Filters as sets of conditions: what filters have in common, and which follows from which.

Only what is simple and certain is recognised: equal conditions, conditions out of several, and
comparisons of one expression with whole numbers. Anything else is taken to be independent.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from weft.expression import canonical, spelled, stripped, tree

if TYPE_CHECKING:
    from collections.abc import Iterable


@lru_cache(maxsize=4096)
def conditions_of(where: str) -> tuple[str, ...]:
    """List the conditions that a filter joins by AND, each once, in its order.

    >>> conditions_of("a = 1 AND (b > 2 AND a = 1) AND (c OR d)")
    ('a = 1', 'b > 2', '(c OR d)')
    """
    from sqlglot import exp

    found: dict[str, None] = {}
    waiting = [tree(where)]
    while waiting:
        node = waiting.pop()
        inner = stripped(node)
        if isinstance(inner, exp.And):
            waiting += [inner.expression, inner.this]
        else:
            text = spelled(inner)
            found[f"({text})" if isinstance(inner, exp.Or) else text] = None
    return tuple(found)


@lru_cache(maxsize=4096)
def alternatives_of(condition: str) -> tuple[str, ...]:
    """List the filters that a condition joins by OR, each once, in its order.

    >>> alternatives_of("(a = 1 OR b > 2 AND c) OR d"), alternatives_of("a AND b")
    (('a = 1', 'b > 2 AND c', 'd'), ('a AND b',))
    """
    from sqlglot import exp

    found: dict[str, None] = {}
    waiting = [tree(condition)]
    while waiting:
        node = stripped(waiting.pop())
        if isinstance(node, exp.Or):
            waiting += [node.expression, node.this]
        else:
            found[spelled(node)] = None
    return tuple(found)


@lru_cache(maxsize=65536)
def implies(stronger: str | None, weaker: str | None) -> bool:
    """Tell whether events that pass one filter are known to pass the other.

    >>> implies("a = 1 AND b > 2", "b > 2"), implies("b > 2", "a = 1 AND b > 2")
    (True, False)
    >>> implies("x > 5", "x >= 3"), implies("a = 1", "a = 1 OR b = 2"), implies("a = 1", None)
    (True, True, True)
    """
    if weaker is None or stronger == weaker:
        return True
    if stronger is None:
        return False
    known = conditions_of(stronger)
    return all(_follows(wanted, stronger, known) for wanted in conditions_of(weaker))


def weakest(filters: Iterable[str | None]) -> str | None:
    """Return the narrowest filter that keeps every event which one of these keeps.

    What all of them ask stands by itself, so that a reader of files can skip what it rules out.

    >>> weakest(["a = 1 AND b > 2", "a = 1 AND c < 3"])
    'a = 1 AND (b > 2 OR c < 3)'
    >>> weakest(["a = 1 AND b > 2", "a = 1"]), weakest(["a = 1", None])
    ('a = 1', None)
    """
    asked = list(dict.fromkeys(filters))
    kept: list[str] = []
    for at, one in enumerate(asked):
        if one is None:
            return None
        others = asked[:at] + asked[at + 1 :]
        # Of two that follow from each other, the first stands for both.
        weaker = (o for o in others if implies(one, o) and (not implies(o, one) or o in kept))
        if next(weaker, None) is None:
            kept.append(one)
    if len(kept) == 1:
        return kept[0]
    common: tuple[str, ...] = ()
    if all(map(cannot_fail, kept)):  # else conditions may guard those after them
        shared = set.intersection(*(set(conditions_of(one)) for one in kept))
        common = tuple(text for text in conditions_of(kept[0]) if text in shared)
    rests = (
        " AND ".join(text for text in conditions_of(one) if text not in common) for one in kept
    )
    either = " OR ".join(f"({rest})" if " AND " in rest else rest for rest in rests)
    return canonical(" AND ".join((*common, f"({either})" if common else either)))


@lru_cache(maxsize=4096)
def cannot_fail(text: str) -> bool:
    """Tell whether an expression only compares columns and values, which is never an error.

    >>> cannot_fail("a = 1 AND name LIKE 'x%'"), cannot_fail("1 / a > 2")
    (True, False)
    """
    from sqlglot import exp

    plain = (
        *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Paren),
        *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is),
        *(exp.In, exp.Between, exp.Like, exp.NullSafeEQ),
    )
    return all(isinstance(node, plain) for node in tree(text).walk())


def _follows(wanted: str, stronger: str, known: tuple[str, ...]) -> bool:
    if wanted in known:
        return True
    sides = alternatives_of(wanted)
    if len(sides) > 1:
        # One side of it is known, or fewer sides than it has.
        return any(implies(stronger, side) for side in sides) or any(
            set(alternatives_of(text)) <= set(sides) for text in known
        )
    limit = _comparison(wanted)
    return limit is not None and any(
        _within(found, limit) for text in known if (found := _comparison(text))
    )


@lru_cache(maxsize=4096)
def _comparison(text: str) -> tuple[str, int, int] | None:
    """Read `x > 5` as (x, from, to), in whole numbers; None where it is something else.

    Halves stand for the open ends: x > 5 begins above 5, whatever numbers x holds.

    >>> _comparison("x > 5") == ("x", 11, 2**80), _comparison("x = y")
    (True, None)
    """
    from sqlglot import exp

    node = stripped(tree(text))
    if not isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ):
        return None
    side, negative = stripped(node.expression), False
    if isinstance(side, exp.Neg):
        side, negative = stripped(side.this), True
    if not (isinstance(side, exp.Literal) and side.is_int):
        return None
    at = 2 * int(side.this) * (-1 if negative else 1)
    least, most = -(2**80), 2**80
    match node:
        case exp.GT():
            bounds = (at + 1, most)
        case exp.GTE():
            bounds = (at, most)
        case exp.LT():
            bounds = (least, at - 1)
        case exp.LTE():
            bounds = (least, at)
        case _:
            bounds = (at, at)
    return spelled(node.this), *bounds


def _within(inner: tuple[str, int, int], outer: tuple[str, int, int]) -> bool:
    return inner[0] == outer[0] and outer[1] <= inner[1] and inner[2] <= outer[2]
