"""Aggregates of your own: checked against the laws they declare before they are used."""

from __future__ import annotations

import inspect
import math
import sys
from itertools import product
from typing import TYPE_CHECKING, Any

from weft.aggregates.base import AggregateCall, AggregateFunction, Monoid, add_custom
from weft.aggregates.kinds import CustomKind
from weft.aggregates.laws import Laws
from weft.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def same_partial(a: Any, b: Any) -> bool:
    """Compare two partials; doubles may differ in the last bits, NaN equals itself.

    >>> same_partial((1, 0.1 + 0.2), (1, 0.3)), same_partial(1, 2)
    (True, False)
    """
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(same_partial, a, b))
    return bool(a == b)


def custom(
    name: str,
    *,
    lift: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    lower: Callable[[Any], Any],
    identity: Any,
    inverse: Callable[[Any, Any], Any] | None = None,
    commutative: bool,
    idempotent: bool,
    examples: Sequence[Any] = (),
    version: str | None = None,
) -> Callable[..., AggregateCall]:
    """Define an aggregate of your own; call the result with its columns.

    The declared laws are tried on `examples`, some input values (tuples of them for several
    columns), each with each, and a law that fails is refused here, before it makes a wrong answer
    later; without examples they are taken on trust.

    Plans, snapshots and checkpoints name it by the module that defines it and `name`, and hold
    none of its code: where they are read, the module is imported if the name is not known yet. A
    `version` goes along, and another one there is refused: change it when old partials mean
    something else.

    >>> geometric_mean = custom(
    ...     "geometric_mean", lift=lambda x: (x, 1), identity=(1.0, 0),
    ...     combine=lambda a, b: (a[0] * b[0], a[1] + b[1]), lower=lambda p: p[0] ** (1 / p[1]),
    ...     commutative=True, idempotent=False, examples=[1.0, 2.5, 4.0])
    >>> str(geometric_mean("price"))
    'geometric_mean(price)'
    """
    laws = Laws(commutative=commutative, idempotent=idempotent, invertible=inverse is not None)
    arity = _arguments_of(lift)
    monoid = _custom_monoid(name, laws, identity, lift, combine, inverse)
    function = AggregateFunction(
        name,
        (CustomKind(name),),
        lambda partials, parameters: lower(partials[0]),
        "anything",
        "any",
        arity=(arity,),
        module=sys._getframe(1).f_globals.get("__name__"),
        version=version,
    )
    _check_laws(name, monoid, [e if isinstance(e, tuple) else (e,) for e in examples])
    add_custom(monoid, function)
    return lambda *columns: AggregateCall(name, tuple(columns))


def _arguments_of(lift: Callable[..., Any]) -> int:
    """Count the columns a lift takes; one where its signature cannot be read."""
    try:
        parameters = inspect.signature(lift).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(p.default is p.empty for p in parameters) or 1


def _custom_monoid(
    name: str,
    declared: Laws,
    neutral: Any,
    lift: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    inverse: Callable[[Any, Any], Any] | None,
) -> Monoid:
    class Custom(Monoid):
        identity = neutral
        laws = declared

        def lift(self, args: tuple[Any, ...], time_us: int) -> Any:
            return neutral if args[0] is None else lift(*args)

        def combine(self, a: Any, b: Any) -> Any:
            return combine(a, b)

        def invert(self, a: Any, b: Any) -> Any:
            return inverse(a, b) if inverse is not None else super().invert(a, b)

    Custom.name = name
    return Custom()


def _check_laws(name: str, m: Monoid, examples: Sequence[tuple[Any, ...]]) -> None:
    lifted = [m.lift(e, 0) for e in examples]

    def refuse(law: str, where: str) -> None:
        raise QueryError(
            f"custom aggregate {name!r} is not {law}: {where}",
            hint="correct its functions"
            + (f", or do not declare it {law}" if hasattr(m.laws, law) else ""),
        )

    for e, a in zip(examples, lifted, strict=True):
        if not (
            same_partial(m.combine(m.identity, a), a) and same_partial(m.combine(a, m.identity), a)
        ):
            refuse("a monoid", f"combining the identity with lift{e} changes it")
        if m.laws.idempotent and not same_partial(m.combine(a, a), a):
            refuse("idempotent", f"combining lift{e} with itself changes it")
    for (ex, x), (ey, y) in product(zip(examples, lifted, strict=True), repeat=2):
        if m.laws.commutative and not same_partial(m.combine(x, y), m.combine(y, x)):
            refuse("commutative", f"lift{ex} and lift{ey} combine to another value when swapped")
        if m.laws.invertible and not same_partial(m.invert(m.combine(x, y), x), y):
            refuse(
                "invertible", f"taking lift{ex} out of its combination with lift{ey} leaves a rest"
            )
        for ez, z in zip(examples, lifted, strict=True):
            if not same_partial(m.combine(m.combine(x, y), z), m.combine(x, m.combine(y, z))):
                refuse("associative", f"the grouping of lift{ex}, lift{ey} and lift{ez} matters")
