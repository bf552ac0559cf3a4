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
    """A scope under the strategy it is to run with."""

    costs: tuple[float, ...]  # of its nodes, in order
    choice: StrategyChoice | None


def price(nodes: tuple[Node, ...], model: CostModel, forced: str | None) -> Priced:
    """Choose the strategy of one scope on Spark: the forced one, or the cheaper that can run it.

    Under a model that counts as papers do there is nothing to compare, and the engine takes what
    can.
    """
    obstacles = [why for node in nodes for why in native_obstacles(folded(node))]
    queries = tuple(dict.fromkeys(node.query for node in nodes if isinstance(node, Emit)))
    ships: Ships
    salt_us = None
    match model:
        case StreamModel():
            obstacles += [why for _, why in stream_obstacles(nodes, SHIPPED_PARTIALS)]
            native = native_stream_costs(nodes, model)
            columnar, ships = columnar_stream_costs(nodes, model), "events"
        case SparkModel():
            native = model.node_costs(nodes)
            columnar, ships, salt_us = _columnar(nodes, model)
        case _:
            return Priced(model.node_costs(nodes), _unpriced(nodes, queries, forced))
    if obstacles:
        native = (_NEVER,) * len(nodes)
    unable = [why for node in nodes for why in columnar_obstacles(node)]
    if unable:
        columnar = (_NEVER,) * len(nodes)
    totals = {NATIVE: sum(native), COLUMNAR: sum(columnar)}
    name = forced or min(totals, key=lambda name: totals[name])
    why = _reason(forced, obstacles, totals)
    if unable and name == COLUMNAR:
        why = f"columnar cannot run it: {unable[0]}"
    costs = native if name == NATIVE else columnar
    known = None if obstacles else totals[NATIVE]
    if name == NATIVE:
        salt_us = None
    if salt_us is not None and isinstance(model, SparkModel):
        why += f"; salted, as one key has {model.spark.top_share:.0%} of the events"
    choice = StrategyChoice(queries, name, ships, known, totals[COLUMNAR], why, salt_us)
    return Priced(costs, choice)


def _unpriced(
    nodes: tuple[Node, ...], queries: tuple[str, ...], forced: str | None
) -> StrategyChoice | None:
    if forced is None:
        return None
    ships: Ships = "slices" if slices_to_ship(nodes) else "events"
    return StrategyChoice(queries, forced, ships, None, None, "forced")


def _columnar(
    nodes: tuple[Node, ...], model: SparkModel
) -> tuple[tuple[float, ...], Ships, int | None]:
    """Ship what costs less: slices, where Catalyst can make them, or events, salted or not."""
    found: list[tuple[tuple[float, ...], Ships, int | None]] = []
    if slices_to_ship(nodes) is not None:
        found.append((columnar_costs(nodes, model, "slices"), "slices", None))
    found.append((columnar_costs(nodes, model, "events"), "events", None))
    if model.spark.held_up > 1 and may_salt(nodes):
        salt_us = _stretch_us(nodes, model)
        found.append((columnar_costs(nodes, model, "events", salt_us), "events", salt_us))
    return min(found, key=lambda one: sum(one[0]))


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
