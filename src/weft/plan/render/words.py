"""The words in which every form of EXPLAIN speaks of nodes, costs and gains."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from typing import TYPE_CHECKING, assert_never

from weft.plan.body import COLUMNAR, STOCK
from weft.plan.nodes import (
    PICK,
    STAIR,
    Emit,
    Join,
    JoinSide,
    Node,
    Roll,
    Scan,
    Slice,
    regroups,
)
from weft.techniques import FAN_OUT
from weft.time import format_us
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from weft.aggregates import Partial
    from weft.plan.body import PlanBody
    from weft.query import Keys
    from weft.statistics import Statistics
    from weft.window import Edges

# Lists in one-line forms stop here; the verbose form has all.
SHORT_LIST = 4


def amount(value: float) -> str:
    """Print a cost without float noise; a dash when there is none.

    >>> amount(359.99999999), amount(0.1 + 0.2), amount(-0.0), amount(float("inf"))
    ('360', '0.3', '0', '-')
    """
    return f"{value + 0.0:g}" if isfinite(value) else "-"


def grouped(value: float) -> str:
    """Print a cost for a page: the same six digits, but large numbers without an exponent.

    >>> grouped(84_460_412.3), grouped(0.1 + 0.2), grouped(1e20), grouped(float("inf"))
    ('84,460,400', '0.3', '1e+20', '-')
    """
    if 1e4 <= abs(value) < 1e15:
        return f"{float(f'{value:.6g}'):,.0f}"
    return amount(value)


def milliseconds(value: float) -> str:
    """Print a cost that is a time.

    >>> milliseconds(0.0077328), milliseconds(84_460.3), milliseconds(float("inf"))
    ('0.00773 ms', '84,460 ms', '-')
    """
    if not isfinite(value):
        return "-"
    return f"{value:,.0f} ms" if abs(value) >= 100 else f"{value:.3g} ms"


def printable(text: str) -> str:
    r"""Return the text on one line: control characters appear as escapes.

    >>> printable("a = 'x\ny'")
    "a = 'x\\ny'"
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def listing(items: Iterable[str], limit: int | None = SHORT_LIST) -> str:
    """Join the items with commas; past the limit, count the rest.

    >>> listing("abcdef"), listing("abcdef", None)
    ('a, b, c, d, +2 more', 'a, b, c, d, e, f')
    """
    every = [printable(item) for item in items]
    if limit is None or len(every) <= limit + 1:
        return ", ".join(every)
    return ", ".join((*every[:limit], f"+{len(every) - limit:,} more"))


STRATEGY_HEADS = ("queries", "strategy", "native cost", "columnar cost", "reason")


def strategy_rows(
    plan: PlanBody, cost: Callable[[float], str] = amount
) -> list[tuple[str, str, str, str, str]]:
    """Say how Spark runs every scope, and what either way costs: a row under `STRATEGY_HEADS`."""
    rows = []
    for choice in plan.strategies:
        ships = f", ships {choice.ships}" if choice.strategy == COLUMNAR else ""
        if ships and choice.salt_us is not None:
            ships += f" salted by {format_us(choice.salt_us)}"
        native, columnar = (inf if c is None else c for c in (choice.native, choice.columnar))
        rows.append(
            (
                listing(choice.queries),
                f"{choice.strategy}{ships}",
                cost(native),
                cost(columnar),
                printable(choice.reason),
            )
        )
    return rows


def counted(count: int, noun: str) -> str:
    """Say how many there are.

    >>> counted(1, "slice"), counted(12_000, "window")
    ('1 slice', '12,000 windows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def node_ids(nodes: tuple[Node, ...]) -> dict[Node, str]:
    """Name the nodes that others read by a letter of their kind and their position."""
    letters = {Scan: "s", Slice: "p", Roll: "w", Join: "j"}
    read = (node for node in nodes if not isinstance(node, Emit))
    return {node: f"{letters[type(node)]}{at}" for at, node in enumerate(read)}


def factor_windows(nodes: tuple[Node, ...]) -> frozenset[Node]:
    """Return the windows that feed others and reach no user."""
    emitted = {feeder for node in nodes if isinstance(node, Emit) for feeder in node.inputs}
    return frozenset(node for node in nodes if isinstance(node, Roll) and node not in emitted)


def title(node: Node) -> str:
    """Say what a node is, without its inputs."""
    match node:
        case Scan():
            time = "" if node.time is None else f" by {printable(node.time)}"
            where = "" if node.where is None else f" where {printable(node.where)}"
            return f"SCAN {printable(node.source)}{time}{where}"
        case Slice():
            return f"SLICE {edges_text(node.edges)}"
        case Roll():
            return printable(str(node.window))
        case Join():
            on = " and ".join(f"{a} = {b}" for a, b in node.on)
            return "JOIN" + (f" on {printable(on)}" if on else "")
        case Emit():
            where = "" if node.where is None else f" where {printable(node.where)}"
            return f"query {node.query!r} window {node.label!r}{where}"
        case _:
            assert_never(node)


def edges_text(edges: Edges, limit: int | None = SHORT_LIST) -> str:
    """Say where slices are cut, and by which slicing.

    >>> from weft.window import Edges, hopping
    >>> edges_text(Edges.of([hopping("5 minutes", "3 minutes")]))
    'every 3m, 3m @2m (pairs)'
    """
    return f"{cuts_text(edges, limit)} ({edges.slicing})"


def cuts_text(edges: Edges, limit: int | None = SHORT_LIST) -> str:
    """Say where slices are cut."""
    cuts = []
    if edges.classes:
        periods = (
            format_us(modulus) + (f" @{format_us(residue)}" if residue else "")
            for residue, modulus in edges.classes
        )
        cuts.append(f"every {listing(periods, limit)}")
    if edges.windows:
        cuts.append(f"at {listing((str(w) for w in edges.windows), limit)}")
    return " and ".join(cuts)


def marks(node: Node, factors: frozenset[Node]) -> tuple[str, ...]:
    """Name what is special about a node: its technique, and that nobody asked for it."""
    found = []
    if isinstance(node, Roll):
        if regroups(node):
            found.append(regrouped_text(node).strip())
        if node.read in (PICK, STAIR):
            found.append("stairs" if node.read == STAIR else node.read)
        if node.technique is not None:
            found.append(node.technique)
        if node in factors:
            found.append("factor window")
    return tuple(found)


def technique_text(node: Roll) -> str:
    """Name the technique of a Roll, and the partials that are gathered whatever it is."""
    grown = [p for p in node.partials if p.monoid.grows]
    if node.technique in (None, FAN_OUT) or not grown:
        return node.technique or ""
    return f"{node.technique}; {partials_text(tuple(grown), None)} gathered"


def multiplier(node: Roll, feeder: Node) -> str:
    """Say how many of the feeder's instances, or slices, make one of the node's.

    Empty where it is one, or where it differs between instances.
    """
    if not isinstance(node.window, PeriodicWindow) or node.read == STAIR:
        return ""
    count = 1
    if isinstance(feeder, Roll) and isinstance(feeder.window, PeriodicWindow):
        count, _ = node.window.reads(feeder.window)
    elif isinstance(feeder, Slice) and len(feeder.edges.classes) == 1 and not feeder.edges.windows:
        ((_, modulus),) = feeder.edges.classes
        count = node.window.range_us // modulus if node.window.range_us % modulus == 0 else 1
    return f"x{count}" if count > 1 else ""


def partials_text(partials: tuple[Partial, ...], limit: int | None = SHORT_LIST) -> str:
    """List partials as users would write them."""
    return listing((str(p) for p in partials), limit)


def keys_text(keys: Keys) -> str:
    """List the grouping keys; a computed one with its expression."""
    named = (name if name == expression else f"{expression} as {name}" for name, expression in keys)
    return listing(named, None)


def outputs_text(node: Emit, limit: int | None = SHORT_LIST) -> str:
    """List the results of an emit as `alias = call`; the condition on all of them is its own."""
    plain = ((alias, replace(call, where=None)) for alias, call in node.outputs)
    return listing((f"{alias} = {call}" for alias, call in plain), limit)


def lifted_text(node: Slice | Roll | Join) -> str:
    """Say what is computed per key, such as `min(temp) by device`."""
    by = f" by {keys_text(node.keys)}" if node.keys else ""
    return f"{partials_text(node.partials)}{by}"


def regrouped_text(node: Slice | Roll) -> str:
    """Say by which of its feeder's keys a node groups; nothing where it has all of them."""
    if not regroups(node):
        return ""
    return f" regrouped by {keys_text(node.keys)}" if node.keys else " regrouped without keys"


def sentence(node: Node, ids: Mapping[Node, str], factors: frozenset[Node]) -> str:
    """Say on one line what a node is, what it reads, and what is special about it."""
    match node:
        case Scan():
            return title(node)
        case Slice():
            lifted = f": {lifted_text(node)}" if isinstance(node.input, Scan) else ""
            return f"{title(node)} from {ids[node.input]}{regrouped_text(node)}{lifted}"
        case Roll():
            read = " + ".join(
                " ".join(filter(None, (ids[feeder], multiplier(node, feeder))))
                for feeder in node.inputs
            )
            special = marks(node, factors)
            marked = f" ({', '.join(special)})" if special else ""
            # Keys and partials enter where events are lifted; further on they are inherited.
            lifted = f": {lifted_text(node)}" if isinstance(node.feeder, Scan) else ""
            return f"{title(node)} from {read}{marked}{lifted}"
        case Join():
            sides = " with ".join(f"{ids[s.input]} {_side_text(s)}" for s in node.sides)
            return f"{title(node)} of {sides}: {lifted_text(node)}"
        case Emit():
            return f"{title(node)}: {outputs_text(node)}"
        case _:
            assert_never(node)


def _side_text(side: JoinSide) -> str:
    over = "" if side.window is None else f" over {side.window}"
    early = " (early)" if side.early else ""
    return f"as {printable(side.alias)}{over}{early}"


def unshared_cost(plan: PlanBody) -> float | None:
    """Return what the same results cost without weft, or when every window reads the events alone.

    On Spark that is what stock Spark takes, where it has such windows.
    """
    for candidate in sorted(plan.candidates, key=lambda c: c.planner != STOCK):
        if candidate.planner in (STOCK, "independent"):
            joins = zip(plan.nodes, plan.node_costs, strict=True)
            cost = candidate.cost + sum(cost for node, cost in joins if isinstance(node, Join))
            return cost if isfinite(cost) else None
    return None


def gain(plan: PlanBody) -> str:
    """Say how the plan compares with unshared windows; empty when that is unknown."""
    unshared = unshared_cost(plan)
    if unshared is None or not (unshared > 0 and plan.cost > 0 and isfinite(plan.cost)):
        return ""
    if amount(unshared) == amount(plan.cost):
        return "the same as unshared"
    less = unshared > plan.cost
    ratio = unshared / plan.cost if less else plan.cost / unshared
    return f"{amount(unshared)} unshared, {ratio:.3g}x {'less' if less else 'more'}"


def statistics_text(statistics: Statistics) -> str:
    """Say what the costs rest on, and what of it was assumed."""
    found = [str(statistics) + (f" ({statistics.told_by})" if statistics.told_by else "")]
    if statistics.key_skew:
        found.append(f"key skew {statistics.key_skew:g}")
    if any(statistics.lateness_us):
        median, most, greatest = (format_us(us) for us in statistics.lateness_us)
        found.append(f"lateness {median} median, {most} at 99 %, {greatest} at most")
    return ", ".join(found)


def census(plan: PlanBody, factors: frozenset[Node]) -> str:
    """Count the nodes by kind."""
    kinds = {"scan": Scan, "slicing": Slice, "window": Roll, "join": Join, "result": Emit}
    found = []
    for noun, kind in kinds.items():
        count = sum(isinstance(node, kind) for node in plan.nodes)
        if count:
            found.append(counted(count, noun))
        if kind is Roll and factors:
            found[-1] += f" ({counted(len(factors), 'factor window')} among them)"
    return ", ".join(found)
