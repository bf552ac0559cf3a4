"""How Spark runs a scope: what each strategy is able to run, and what it costs there.

`native` folds partials in Catalyst, whatever technique a Roll names. `columnar` sends rows through
Arrow to the kernels: slices where Catalyst can make them, else the events themselves. It answers
all instances of a window in one linear pass, so overlap costs it nothing but rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from weft.aggregates.base import is_built_in
from weft.aggregates.kinds import GROWING_KINDS
from weft.aggregates.spark_sketches import MERGED_BY
from weft.cost.batch.model import SparkModel
from weft.cost.batch.unknowns import safest
from weft.cost.streams import (
    StreamModel,
    columnar_stream_costs,
    folded,
    native_stream_costs,
    stream_obstacles,
)
from weft.errors import QueryError
from weft.plan.body import COLUMNAR, NATIVE, STRATEGIES, StrategyChoice
from weft.plan.nodes import Emit, Node, Roll, Scan, Slice
from weft.techniques import FAN_OUT
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
    UserWindow,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.cost.model import CostModel
    from weft.plan.body import Ships

_BY_ORDER = CountingWindow | PunctuatedWindow | MeasuredWindow | UserWindow
_TIMED = PeriodicWindow | CumulatingWindow | CalendarWindow
# Partials that Catalyst makes of events in one column each, as the kernels hold them.
SHIPPED_PARTIALS = frozenset(
    {
        "count_rows", "count", "sum", "min", "max", "first", "last", "min_by", "max_by", "bool_and",
        "bool_or", "product", "bit_and", "bit_or", "bit_xor", "moments", "comoments",
        "shape_moments",
    }
)  # fmt: skip
# Partials that Catalyst keeps as rows, one for each value, or sorts: they are aggregated apart.
KEPT_AS_ROWS = GROWING_KINDS | {"tally"}
_NEVER = math.inf
# Stretches of time that events are cut into for each core, if they are salted: hashes then bring
# about as many to one task as to another.
_STRETCHES = 8


def check_strategy(name: str | None, engine: str = "spark") -> None:
    """Refuse the name of a strategy that there is not, or not on this engine."""
    if name is None:
        return
    if name not in STRATEGIES:
        raise QueryError(f"unknown strategy {name!r}", hint=f"use one of {', '.join(STRATEGIES)}")
    if engine != "spark":
        raise QueryError(
            f"the {engine} engine has no strategy {name!r}: it runs every plan in one way",
            hint="run on spark, or leave the strategy out",
        )


def native_obstacles(node: Node) -> list[str]:
    """Say why Catalyst alone cannot compute a node; nothing where it can.

    >>> scan = Scan("t", "ts", None, ())
    >>> native_obstacles(Roll((scan,), CountingWindow(3, 3), "fold", (), ()))
    ['COUNT 3 depends on the order of events']
    """
    found = []
    if isinstance(node, Roll) and isinstance(node.window, _BY_ORDER):
        found.append(f"{node.window} depends on the order of events")
    if isinstance(node, Slice):
        # Sessions are sliced apart, so where they begin need not cut what other windows read.
        known = CalendarWindow | SessionWindow
        cut = [str(w) for w in node.edges.windows if not isinstance(w, known)]
        if cut:
            found.append(f"slices cannot be cut by arithmetic where {', '.join(cut)} begins")
    if isinstance(node, Roll) and node.technique not in (None, FAN_OUT):
        found.append(f"{node.technique} over {node.window} runs in kernels, not in Catalyst")
    if isinstance(node, Roll | Slice):
        own = [p.kind for p in node.partials if not is_built_in(p.kind)]
        if own:
            found.append(f"aggregate {own[0]!r} is written in Python")
    return found


def in_one_chain(nodes: tuple[Node, ...]) -> bool:
    """Tell whether Catalyst computes a scope from one read with others, in one chain of levels.

    Not sessions, which follow the events, nor partials that are kept as rows or sorted, nor windows
    that are computed in two ways, whose halves would have to meet.

    >>> from weft.aggregates import Partial
    >>> scan, rows = Scan("t", "ts", None, ()), (Partial("count_rows", ()),)
    >>> in_one_chain((scan, Roll((scan,), PeriodicWindow(2, 2), "fold", (), rows)))
    True
    >>> in_one_chain((scan, Roll((scan,), SessionWindow(5), "fold", (), rows)))
    False
    """
    emits = (node for node in nodes if isinstance(node, Emit))
    rolls = dict.fromkeys(roll for emit in emits for roll in emit.inputs if isinstance(roll, Roll))
    computed = [node for node in nodes if isinstance(node, Slice | Roll)]
    return (
        not any(isinstance(n, Roll) and isinstance(n.window, SessionWindow) for n in computed)
        and not any(p.kind in KEPT_AS_ROWS for node in computed for p in node.partials)
        and len({roll.window for roll in rolls}) == len(rolls)
    )


def columnar_obstacles(node: Node) -> list[str]:
    """Say why kernels cannot compute a node; nothing where they can.

    >>> scan = Scan("t", "ts", None, ())
    >>> from weft.aggregates import Partial
    >>> from weft.window import Edges, PeriodicWindow
    >>> columnar_obstacles(Slice(scan, (), Edges.of([PeriodicWindow(2, 2)]),
    ...                          (Partial("hll_sketch_agg", ("x",)),)))
    ['hll_sketch_agg(x) is a sketch that Spark alone makes']
    """
    if not isinstance(node, Roll | Slice):
        return []
    return [f"{p} is a sketch that Spark alone makes" for p in node.partials if p.kind in MERGED_BY]


def slices_to_ship(nodes: tuple[Node, ...]) -> Slice | Roll | None:
    """Return the one node through which Catalyst can hand on all events of a scope as slices.

    None where several nodes read events, or one needs them whole.
    """
    if any(isinstance(node, Roll) and not isinstance(node.window, _TIMED) for node in nodes):
        return None
    readers = [n for n in nodes if any(isinstance(below, Scan) for below in n.inputs)]
    if len(readers) != 1:
        return None
    (base,) = readers
    if not isinstance(base, Slice | Roll) or native_obstacles(folded(base)):
        return None
    return base if all(p.kind in SHIPPED_PARTIALS for p in base.partials) else None


def may_salt(nodes: tuple[Node, ...]) -> bool:
    """Tell whether events of one key may be sliced by many tasks, and the slices combined.

    >>> from weft.aggregates import Partial
    >>> scan, hourly = Scan("t", "ts", None, ()), PeriodicWindow(3_600_000_000, 3_600_000_000)
    >>> keys, mean = (("k", "k"),), (Partial("sum", ("x",)), Partial("count", ("x",)))
    >>> may_salt((scan, Roll((scan,), hourly, "fold", keys, mean)))
    True
    >>> may_salt((scan, Roll((scan,), SessionWindow(5), "fold", keys, mean)))
    False
    """
    if any(isinstance(node, Roll) and not isinstance(node.window, _TIMED) for node in nodes):
        return False
    readers = [n for n in nodes if any(isinstance(below, Scan) for below in n.inputs)]
    return all(
        isinstance(n, Slice | Roll) and n.keys and all(p.laws().commutative for p in n.partials)
        for n in readers
    )


class Priced(NamedTuple):
    """A scope in the way it is to run."""

    costs: tuple[float, ...]  # of its nodes, in order
    choice: StrategyChoice | None
    cases: tuple[float, ...] = ()  # what it costs in all, so run, as the unknown may have it


class _Way(NamedTuple):
    """One way to run a scope, and what its nodes cost so."""

    strategy: str
    ships: Ships
    salt_us: int | None
    costs: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.costs)


def price(nodes: tuple[Node, ...], models: Sequence[CostModel], forced: str | None) -> Priced:
    """Choose how one scope runs on Spark: as forced, or the cheapest way that can run it.

    Models are what is expected, and what the unknown may be as well. A way is priced as itself in
    each, what it ships included, and the safest is chosen. Under a model that counts as papers do
    there is nothing to compare, and the engine takes what can.
    """
    model = models[0]
    if not isinstance(model, StreamModel | SparkModel):
        queries = _queries(nodes)
        return Priced(model.node_costs(nodes), _unpriced(nodes, queries, forced))
    obstacles = [why for node in nodes for why in native_obstacles(folded(node))]
    if isinstance(model, StreamModel):
        obstacles += [why for _, why in stream_obstacles(nodes, SHIPPED_PARTIALS)]
    unable = [why for node in nodes for why in columnar_obstacles(node)]
    able = {NATIVE: not obstacles, COLUMNAR: not unable}
    every = [_ways(nodes, one, able) for one in models]
    ways = [way for way in every[0] if forced in (None, way.strategy)]
    costs = [[_total(way, case) for case in every] for way in ways]
    at = safest(costs)
    choice = _choice(nodes, ways[at], every[0], obstacles, unable, forced)
    if choice.salt_us is not None and isinstance(model, SparkModel):
        words = f"; salted, as one key has {model.spark.top_share:.0%} of the events"
        choice = choice._replace(reason=choice.reason + words)
    return Priced(ways[at].costs, choice, tuple(costs[at][1:]))


def _queries(nodes: tuple[Node, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.query for node in nodes if isinstance(node, Emit)))


def _ways(nodes: tuple[Node, ...], model: CostModel, able: Mapping[str, bool]) -> list[_Way]:
    """Price every way to run a scope; one that cannot run it costs all there is."""
    if isinstance(model, StreamModel):
        native = native_stream_costs(nodes, model)
        columnar = [_Way(COLUMNAR, "events", None, columnar_stream_costs(nodes, model))]
    else:
        assert isinstance(model, SparkModel)
        native = model.node_costs(nodes)
        columnar = _columnar(nodes, model)
    never = (_NEVER,) * len(nodes)
    found = [_Way(NATIVE, columnar[0].ships, None, native), *columnar]
    return [way if able[way.strategy] else way._replace(costs=never) for way in found]


def _total(way: _Way, case: Sequence[_Way]) -> float:
    """Return what a way costs in another case; how long salted stretches are may differ there."""
    alike = [w for w in case if (w.strategy, w.ships) == (way.strategy, way.ships)]
    salted = [w for w in alike if (w.salt_us is None) == (way.salt_us is None)]
    return (salted or alike)[0].total


def _choice(
    nodes: tuple[Node, ...],
    way: _Way,
    ways: Sequence[_Way],
    obstacles: list[str],
    unable: list[str],
    forced: str | None,
) -> StrategyChoice:
    """Say which way it is, what the other strategy costs, and why."""
    cheapest = {
        name: min((w for w in ways if w.strategy == name), key=lambda w: w.total)
        for name in STRATEGIES
    }
    totals = {name: one.total for name, one in cheapest.items()} | {way.strategy: way.total}
    why = _reason(forced, obstacles, totals)
    if unable and way.strategy == COLUMNAR:
        why = f"columnar cannot run it: {unable[0]}"
    elif not obstacles and not forced:
        best = min(cheapest.values(), key=lambda w: w.total)
        other = "the other" if best.strategy != way.strategy else f"shipping {best.ships}"
        if way.total > best.total:
            why = f"{other} may cost far more, where what is assumed is otherwise"
    known = None if obstacles else totals[NATIVE]
    ships = cheapest[COLUMNAR].ships if way.strategy == NATIVE else way.ships
    return StrategyChoice(
        _queries(nodes), way.strategy, ships, known, totals[COLUMNAR], why, way.salt_us
    )


def _unpriced(
    nodes: tuple[Node, ...], queries: tuple[str, ...], forced: str | None
) -> StrategyChoice | None:
    if forced is None:
        return None
    ships: Ships = "slices" if slices_to_ship(nodes) else "events"
    return StrategyChoice(queries, forced, ships, None, None, "forced")


def _columnar(nodes: tuple[Node, ...], model: SparkModel) -> list[_Way]:
    """List what may be shipped: slices, where Catalyst can make them, or events, salted or not."""
    shipped: list[tuple[Ships, int | None]] = [("events", None)]
    if slices_to_ship(nodes) is not None:
        shipped.insert(0, ("slices", None))
    if model.spark.held_up > 1 and may_salt(nodes):
        shipped.append(("events", _stretch_us(nodes, model)))
    return [_Way(COLUMNAR, *one, columnar_costs(nodes, model, *one)) for one in shipped]


def _stretch_us(nodes: tuple[Node, ...], model: SparkModel) -> int:
    """Choose how long events of one key go to one task: whole slices, where these are shorter."""
    wanted = max(int(model.volumes.lasts_us / (_STRETCHES * model.spark.cores)), 1)
    cut = [m for n in nodes if isinstance(n, Slice) for _, m in n.edges.classes]
    windows = (n.window for n in nodes if isinstance(n, Roll))
    cut += [w.slide_us for w in windows if isinstance(w, PeriodicWindow)]
    longest = max((us for us in cut if us <= wanted), default=1)
    return wanted // longest * longest


def columnar_costs(
    nodes: tuple[Node, ...], model: SparkModel, ships: Ships, salt_us: int | None = None
) -> tuple[float, ...]:
    """Price nodes that the local operator runs in Spark executors."""
    base = slices_to_ship(nodes) if ships == "slices" else None
    return tuple(model.ms(done) for done in model.spark.columnar(nodes, base, salt_us))


def _reason(forced: str | None, obstacles: list[str], totals: dict[str, float]) -> str:
    if obstacles:
        return f"native cannot run it: {obstacles[0]}"
    if forced:
        return "forced"
    cheap, dear = sorted(totals.values())
    return f"the other costs {dear / cheap:.3g}x" if cheap else "nothing to do"
