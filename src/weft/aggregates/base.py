"""What an aggregate is: monoids over events, and the functions users call on top of them.

A *monoid* turns events into partials (`lift`), joins partials (`combine`) and, where its laws
allow, takes one away (`invert`). A *partial* is a monoid bound to its input expressions; equal
partials exist once in a plan. An *aggregate function* names the partials it needs and turns them
into the result (`lower`): AVG asks for sum and count, which SUM and COUNT share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from weft.aggregates.kinds import partial_kind
from weft.errors import InternalError, QueryError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weft.aggregates.kinds import CustomKind, PartialKind
    from weft.aggregates.laws import Laws

# How the type of a result follows from the type of the first argument.
ResultType = Literal["same", "sum", "average", "long", "double", "boolean", "list", "any"]
# What a function can be applied to.
InputType = Literal["anything", "plain values", "numbers", "integers", "booleans"]


class Monoid:
    """Lift, combine and invert over one kind of partial, in plain Python values.

    Partials are immutable, and an identity is a two-sided one. `laws` holds for every input type;
    `exact_laws` for integers, decimals and booleans, where sums do not round.
    """

    name: ClassVar[str]
    laws: ClassVar[Laws]
    exact_laws: ClassVar[Laws | None] = None
    identity: Any = None
    asks_time: ClassVar[bool] = False  # the result depends on which event came first
    grows: ClassVar[bool] = False  # a partial holds values it has seen, and more as it sees more

    def lift(self, args: tuple[Any, ...], time_us: int) -> Any:
        """Turn one event into a partial; the identity if the event does not count."""
        raise InternalError(f"monoid {self.name} has no lift")

    def combine(self, a: Any, b: Any) -> Any:
        """Join two partials, `a` of older events than `b`."""
        raise InternalError(f"monoid {self.name} has no combine")

    def invert(self, a: Any, b: Any) -> Any:
        """Take partial `b` out of `a`: `invert(combine(b, c), b)` is `c`."""
        raise InternalError(f"monoid {self.name} is not invertible")


@dataclass(frozen=True, slots=True)
class Partial:
    """A monoid bound to its input expressions; the unit of sharing between queries.

    With a condition, `where`, it is of the events for which that is true, and no others: queries
    that keep different events can then share slices. All built-in partials skip NULL, so such a
    partial is lifted from values that are NULL elsewhere.

    >>> str(Partial("sum", ("price * quantity",))), str(Partial("count_rows", ()))
    ('sum(price * quantity)', 'count(*)')
    >>> bought = Partial("sum", ("price",), "action = 'buy'")
    >>> str(bought), bought.reads
    ("sum(price) where action = 'buy'", ("CASE WHEN action = 'buy' THEN price END",))
    """

    kind: PartialKind | CustomKind
    args: tuple[str, ...]
    where: str | None = None

    def __post_init__(self) -> None:
        if self.where is not None and (not self.args or not is_built_in(self.kind)):
            raise InternalError(f"a partial of kind {self.kind} takes no condition")

    def __str__(self) -> str:
        if self.kind == "count_rows" or (self.where is not None and self == rows_where(self.where)):
            text = "count(*)"
        else:
            text = f"{self.kind}({', '.join(self.args)})"
        return text if self.where is None else f"{text} where {self.where}"

    @property
    def reads(self) -> tuple[str, ...]:
        """The expressions that an event is lifted from: NULL where the condition is not true."""
        if self.where is None:
            return self.args
        return tuple(f"CASE WHEN {self.where} THEN {arg} END" for arg in self.args)

    def under(self, where: str | None) -> Partial:
        """Return the same partial of the events for which a condition is true.

        >>> str(Partial("count_rows", ()).under("x > 1"))
        'count(*) where x > 1'
        """
        if where is None:
            return self
        if self.kind == "count_rows":
            return rows_where(where)
        return Partial(self.kind, self.args, where)

    @property
    def monoid(self) -> Monoid:
        """The monoid of this kind."""
        return monoid(self.kind)

    def laws(self, *, exact: bool = False) -> Laws:
        """Return the laws that hold; `exact` says that the input does not round."""
        m = self.monoid
        return m.exact_laws if exact and m.exact_laws is not None else m.laws


def rows_where(where: str) -> Partial:
    """Return the partial that counts the events for which a condition is true.

    Where it is zero, a query that keeps these events has no row.
    """
    return Partial("count", ("1",), where)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function applied to expressions, as the user wrote it.

    In a plan it may be of the events alone for which `where` is true.

    >>> str(AggregateCall("percentile", ("temp",), (0.9,)))
    'percentile(temp, 0.9)'
    """

    function: str
    args: tuple[str, ...] = ()
    parameters: tuple[float, ...] = ()
    where: str | None = None

    def __post_init__(self) -> None:
        aggregate_function(self.function).check(self)

    def __str__(self) -> str:
        listed = ", ".join((*self.args, *(f"{p:g}" for p in self.parameters)))
        text = f"{self.function}({listed or '*' if self.function == 'count' else listed})"
        return text if self.where is None else f"{text} where {self.where}"

    @property
    def aggregate(self) -> AggregateFunction:
        """The function that is called."""
        return aggregate_function(self.function)

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The partials this call is computed from."""
        return tuple(p.under(self.where) for p in self.aggregate.partials(self.args))

    @property
    def reads(self) -> tuple[str, ...]:
        """The expressions that events are lifted from: NULL where the condition is not true."""
        return self.args if self.where is None else self.partials[0].reads

    def lower(self, partials: tuple[Any, ...]) -> Any:
        """Turn the values of `self.partials` into the result."""
        return self.aggregate.lower(partials, self.parameters)

    @property
    def asks_time(self) -> bool:
        """True when the order in which events came decides the result."""
        return any(p.monoid.asks_time or not p.laws().commutative for p in self.partials)

    def laws(self, *, exact: bool = False) -> Laws:
        """Return the laws that all partials of this call obey together."""
        first, *rest = (p.laws(exact=exact) for p in self.partials)
        for laws in rest:
            first = first & laws
        return first


def _only(partials: tuple[Any, ...], parameters: tuple[float, ...]) -> Any:
    return partials[0]


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """A function of the public list: what it takes, the partials it needs, its result.

    It needs partials of `kinds`, by default one of its own name. `lower` turns their values and
    the parameters into the result; by default the one partial is the result.
    """

    name: str
    kinds: tuple[PartialKind | CustomKind, ...] = ()
    lower: Callable[[tuple[Any, ...], tuple[float, ...]], Any] = _only
    accepts: InputType = "plain values"
    result: ResultType = "same"
    arity: tuple[int, ...] = (1,)
    parameters: int = 0  # ranks, given after the columns
    kind_of_rows: PartialKind | None = None  # what a call without columns needs
    relative_error: float = 0.0  # the largest, against the exact result
    absolute_error: float = 0.0  # of results in which sums cancel, down to zero
    # Of a user's own: the module that defines it, and the version it was declared with.
    module: str | None = None
    version: str | None = None

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        """Name the partials that a call on these columns needs."""
        if self.kind_of_rows is not None and not args:
            return (Partial(self.kind_of_rows, ()),)
        return tuple(Partial(kind, args) for kind in self.kinds or (partial_kind(self.name),))

    def check(self, call: AggregateCall) -> None:
        """Refuse a call with the wrong number of arguments or bad parameters."""
        if len(call.args) not in self.arity:
            wanted = " or ".join(str(n) for n in self.arity)
            raise QueryError(
                f"{self.name} takes {wanted} argument{'s' if self.arity != (1,) else ''}, "
                f"not {len(call.args)}",
                hint=f"call it as {self.name}({', '.join(['column'] * max(self.arity))})",
            )
        if len(call.parameters) != self.parameters:
            raise QueryError(
                f"{self.name} takes {self.parameters} parameter(s), not {len(call.parameters)}",
                hint=f"give {self.parameters} number(s) after the column",
            )
        for rank in call.parameters:
            if not 0 <= rank <= 1:
                raise QueryError(
                    f"{self.name} cannot look at rank {rank:g}",
                    hint="give a rank between 0 and 1, such as 0.95",
                )


_MONOIDS: dict[str, Monoid] = {}
_FUNCTIONS: dict[str, AggregateFunction] = {}
_BUILT_IN: set[str] = set()


def register_monoid(cls: type[Monoid]) -> type[Monoid]:
    """Make a monoid known by its name (class decorator)."""
    _MONOIDS[cls.name] = cls()
    _BUILT_IN.add(cls.name)
    return cls


def register_function(function: AggregateFunction) -> None:
    """Make an aggregate function known by its name."""
    _FUNCTIONS[function.name] = function
    _BUILT_IN.add(function.name)


def add_custom(m: Monoid, function: AggregateFunction) -> None:
    """Make a user's aggregate known; the same name may be defined again."""
    if is_built_in(function.name):
        raise QueryError(
            f"the name {function.name!r} belongs to a built-in aggregate",
            hint="give your aggregate a name of its own",
        )
    _MONOIDS[m.name] = m
    _FUNCTIONS[function.name] = function


def custom_names() -> tuple[str, ...]:
    """Return the names of all aggregates that users have defined in this process."""
    return tuple(name for name in _FUNCTIONS if name not in _BUILT_IN)


def is_built_in(name: str) -> bool:
    """Tell whether a monoid or function is part of weft, and not a user's own."""
    return name in _BUILT_IN


def monoid(kind: str) -> Monoid:
    """Return the monoid of this name."""
    try:
        return _MONOIDS[kind]
    except KeyError:
        raise QueryError(
            f"no partial of kind {kind!r} is known in this process",
            hint="define custom aggregates with weft.agg.custom before loading the plan",
        ) from None


def aggregate_function(name: str) -> AggregateFunction:
    """Return the aggregate function of this name, or say which ones exist.

    >>> aggregate_function("mn")
    Traceback (most recent call last):
    weft.errors.QueryError: unknown aggregate function 'mn'
    hint: did you mean 'min'?
    """
    found = _FUNCTIONS.get(name)
    if found is not None:
        return found
    raise QueryError(
        f"unknown aggregate function {name!r}",
        hint=suggest(name, _FUNCTIONS, f"use one of {', '.join(_FUNCTIONS)}"),
    )


def function_names() -> tuple[str, ...]:
    """Return the names of all aggregate functions, in the order of registration."""
    return tuple(_FUNCTIONS)


def monoid_names() -> tuple[str, ...]:
    """Return the names of all monoids, in the order of registration."""
    return tuple(_MONOIDS)


def decompose(calls: Iterable[AggregateCall]) -> tuple[Partial, ...]:
    """Return the distinct partials of these calls, each once, in order of first need.

    >>> [str(p) for p in decompose([AggregateCall("avg", ("x",)), AggregateCall("sum", ("x",)),
    ...                             AggregateCall("count", ("x",))])]
    ['sum(x)', 'count(x)']
    """
    return tuple(dict.fromkeys(partial for call in calls for partial in call.partials))


def repeated(monoid: Monoid, partial: Any, times: int) -> Any:
    """Combine a partial with itself until it is there so many times, by doubling.

    >>> repeated(Partial("count", ("x",)).monoid, 3, 5)
    15
    """
    if monoid.laws.idempotent:
        return partial
    total = monoid.identity
    while times:
        if times & 1:
            total = monoid.combine(total, partial)
        times >>= 1
        partial = monoid.combine(partial, partial) if times else partial
    return total
