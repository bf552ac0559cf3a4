"""How Spark runs a scope: what each strategy is able to run, and what it costs there.

`native` folds partials in Catalyst, whatever technique a Roll names. `columnar` sends rows through
Arrow to the kernels: slices where Catalyst can make them, else the events themselves. It answers
all instances of a window in one linear pass, so overlap costs it nothing but rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, assert_never

from weft.aggregates.base import is_built_in
from weft.aggregates.spark_sketches import MERGED_BY
from weft.cost.model import Coefficients, RateModel, coefficients_of
from weft.cost.streams import StreamModel, rows_kept, stream_obstacles
from weft.errors import QueryError
from weft.plan.body import COLUMNAR, NATIVE, STRATEGIES, StrategyChoice
from weft.plan.nodes import Emit, Join, Node, Roll, Scan, Slice
from weft.techniques import FAN_OUT
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    Edges,
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
_NEVER = math.inf


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


def columnar_obstacles(node: Node) -> list[str]:
    """Say why kernels cannot compute a node; nothing where they can.

    >>> scan = Scan("t", "ts", None, ())
    >>> from weft.aggregates import Partial
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
    if not isinstance(base, Slice | Roll) or native_obstacles(_folded(base)):
        return None
    return base if all(p.kind in SHIPPED_PARTIALS for p in base.partials) else None


class Priced(NamedTuple):
    """A scope under the strategy it is to run with."""

    costs: tuple[float, ...]  # of its nodes, in order
    choice: StrategyChoice | None


@dataclass(frozen=True, slots=True)
class ColumnarModel:
    """Prices nodes that the local operator runs in Spark executors.

    Its coefficients read: `shuffle_row_ns` brings one row to the Python worker that owns its key,
    in order; `emit_row_ns` lowers a result row and brings it back; `operator_ns` is for all nodes
    of a scope together, which run in the same workers.
    """

    coefficients: Coefficients
    rates: RateModel  # of native: it makes the slices, and knows how many rows there are

    def node_costs(self, nodes: tuple[Node, ...], ships: Ships) -> tuple[float, ...]:
        """Price each node; the rows shipped are on the bill of the first node that reads events."""
        base = slices_to_ship(nodes) if ships == "slices" else None
        readers = [n for n in nodes if any(isinstance(below, Scan) for below in n.inputs)]
        costs = [self._cost(node, base) for node in nodes]
        shipped = readers[0].inputs[0] if base is None else _as_slice(base)
        rows = self.rates.rows_per_second(shipped)
        at = nodes.index(readers[0])
        costs[at] += rows * self.coefficients.shuffle_row_ns + self.coefficients.operator_ns
        return tuple(costs)

    def _cost(self, node: Node, base: Slice | Roll | None) -> float:
        c, rows = self.coefficients, self.rates.rows_per_second
        match node:
            case Scan():
                return self.rates.node_costs((node,))[0]
            case Emit():
                return rows(node) * c.emit_row_ns
            case Slice() | Roll() if node == base:
                sliced = _as_slice(node)
                (made,) = self.rates.node_costs((sliced,))
                return made + (self._rolled(node, rows(sliced)) if isinstance(node, Roll) else 0.0)
            case Slice() | Roll():
                return self._rolled(node, sum(rows(below) for below in node.inputs))
            case Join():
                return _NEVER
            case _:
                assert_never(node)

    def _rolled(self, node: Slice | Roll, arriving: float) -> float:
        """Price reading rows once and putting out those of the node, whatever they overlap."""
        c, width = self.coefficients, len(node.partials)
        if isinstance(node.inputs[0], Scan):
            reading = c.scan_event_ns + c.fold_event_ns + c.lift_ns * width
        else:
            reading = c.read_partial_ns + c.combine_ns * width
        writing = c.write_partial_ns + c.combine_ns * width
        return arriving * reading + self.rates.rows_per_second(node) * writing


def _as_slice(node: Slice | Roll) -> Slice:
    if isinstance(node, Slice):
        return node
    scan = node.feeder
    assert isinstance(scan, Scan)
    return Slice(scan, node.keys, Edges.of([node.window]), node.partials)


def native_costs(nodes: tuple[Node, ...], model: RateModel) -> tuple[float, ...]:
    """Price nodes in Catalyst, where a Roll copies each slice to all instances that hold it.

    All nodes of one height are one aggregation there, so only the first of them is billed for it.
    """
    costs = list(model.node_costs(tuple(_folded(node) for node in nodes)))
    heights: dict[Node, int] = {}
    aggregations: set[int] = set()
    for at, node in enumerate(nodes):
        heights[node] = height = max((heights[below] + 1 for below in node.inputs), default=0)
        if not isinstance(node, Slice | Roll):
            continue
        if height in aggregations:
            costs[at] -= model.coefficients.operator_ns
        aggregations.add(height)
    return tuple(costs)


def _folded(node: Node) -> Node:
    if isinstance(node, Roll) and node.technique is not None:
        return replace(node, technique=None)
    return node


def price(
    nodes: tuple[Node, ...], model: CostModel, forced: str | None, *, stock: bool = False
) -> Priced:
    """Choose the strategy of one scope on Spark: the forced one, or the cheaper that can run it.

    `stock` asks for what Spark would do by itself: columnar only where nothing else runs. Under
    a model that counts as papers do there is nothing to compare, and the engine takes what can.
    """
    obstacles = [why for node in nodes for why in native_obstacles(_folded(node))]
    if isinstance(model, StreamModel):
        obstacles += [why for _, why in stream_obstacles(nodes, SHIPPED_PARTIALS)]
    queries = tuple(dict.fromkeys(node.query for node in nodes if isinstance(node, Emit)))
    if not isinstance(model, RateModel):
        return Priced(model.node_costs(nodes), _unpriced(nodes, queries, forced))
    native = (_NEVER,) * len(nodes) if obstacles else native_costs(nodes, model)
    columnar, ships = _columnar(nodes, model)
    if any(map(columnar_obstacles, nodes)):
        columnar = (_NEVER,) * len(nodes)
    totals = {NATIVE: sum(native), COLUMNAR: sum(columnar)}
    prefers = NATIVE if stock and not obstacles else min(totals, key=lambda name: totals[name])
    name = forced or prefers
    why = _reason(forced, obstacles, totals, stock=stock)
    costs = native if name == NATIVE else columnar
    known = None if obstacles else totals[NATIVE]
    return Priced(costs, StrategyChoice(queries, name, ships, known, totals[COLUMNAR], why))


def _unpriced(
    nodes: tuple[Node, ...], queries: tuple[str, ...], forced: str | None
) -> StrategyChoice | None:
    if forced is None:
        return None
    ships: Ships = "slices" if slices_to_ship(nodes) else "events"
    return StrategyChoice(queries, forced, ships, None, None, "forced")


def stream_columnar_costs(nodes: tuple[Node, ...], model: StreamModel) -> tuple[float, ...]:
    """Price nodes in the stateful operator, which reads its state anew in each micro-batch."""
    assert model.columnar is not None
    costs = list(ColumnarModel(model.columnar, model).node_costs(nodes, "events"))
    first = next(at for at, node in enumerate(nodes) if isinstance(node, Slice | Roll))
    costs[first] += rows_kept(nodes, model) * model.columnar.state_row_ns
    return tuple(costs)


def _columnar(nodes: tuple[Node, ...], model: RateModel) -> tuple[tuple[float, ...], Ships]:
    if isinstance(model, StreamModel):
        return stream_columnar_costs(nodes, model), "events"
    columnar = ColumnarModel(coefficients_of("spark-columnar"), model)
    events = columnar.node_costs(nodes, "events")
    if slices_to_ship(nodes) is None:
        return events, "events"
    slices = columnar.node_costs(nodes, "slices")
    return (slices, "slices") if sum(slices) <= sum(events) else (events, "events")


def _reason(
    forced: str | None, obstacles: list[str], totals: dict[str, float], *, stock: bool
) -> str:
    if obstacles:
        return f"native cannot run it: {obstacles[0]}"
    if forced:
        return "forced"
    cheap, dear = sorted(totals.values())
    if stock and totals[NATIVE] > totals[COLUMNAR]:
        return "an independent plan runs as stock Spark would"
    return f"the other costs {dear / cheap:.3g}x" if cheap else "nothing to do"
