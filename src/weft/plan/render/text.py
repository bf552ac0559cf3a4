"""EXPLAIN as text: one line per node, then what was considered and what each window costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from weft.plan.nodes import Emit, Join, Node, Roll, Scan, Slice
from weft.plan.render.words import (
    STRATEGY_HEADS,
    amount,
    census,
    edges_text,
    factor_windows,
    gain,
    keys_text,
    listing,
    node_ids,
    outputs_text,
    partials_text,
    printable,
    sentence,
    statistics_text,
    strategy_rows,
    technique_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.plan.body import PlanBody

MANY_RESULTS = 60  # above this many, `text` prints a summary
FIRST_RESULTS = 20
_MOST_LINES = 80  # of a summary, however long the chains that its first results hang on
_SHARE_HEADS = (
    *("query", "label", "window", "fed by"),
    *("marginal cost", "cost alone", "not shared because"),
)
_WIDEST = 96  # costs line up in one column unless a line is longer than this


def text(plan: PlanBody) -> str:
    """Print the plan for reading; of a plan with very many results, a summary."""
    factors = factor_windows(plan.nodes)
    results = len(plan.emits)
    if results <= MANY_RESULTS:
        graph = _node_lines(plan, plan.nodes, factors)
        shares = len(plan.shares)
    else:
        shown = _first(plan)
        rest = results - sum(isinstance(node, Emit) for node in shown)
        graph = [census(plan, factors), "", *_node_lines(plan, shown, factors), _more(rest)]
        shares = FIRST_RESULTS
    costs = (_candidates(plan), _strategies(plan), _shares(plan, shares))
    return _join(_heading(plan), graph, *costs, _notes(plan))


def verbose(plan: PlanBody) -> str:
    """Print everything there is to say about the plan."""
    factors = factor_windows(plan.nodes)
    heading = [*_heading(plan), f"fingerprint {plan.fingerprint}", census(plan, factors)]
    graph = _node_lines(plan, plan.nodes, factors, details=True)
    shares = _shares(plan, len(plan.shares))
    return _join(heading, graph, _candidates(plan), _strategies(plan), shares, _notes(plan))


def _join(*blocks: list[str]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _more(count: int) -> str:
    return f'... {count:,} more (format "verbose" or "json" has all)'


def _heading(plan: PlanBody) -> list[str]:
    saved = gain(plan)
    lines = (
        f"PLAN by {plan.planner} for {plan.engine}, model {plan.model}",
        f"cost {amount(plan.cost)} {plan.unit}" + (f": {saved}" if saved else ""),
        f"statistics: {statistics_text(plan.statistics)}",
    )
    return [printable(line) for line in lines]


def _first(plan: PlanBody) -> tuple[Node, ...]:
    """The first results and all that they read, in the order of the plan."""
    pending: list[Node] = list(plan.emits[:FIRST_RESULTS])
    wanted = set(pending)
    while pending:
        for feeder in pending.pop().inputs:
            if feeder not in wanted:
                wanted.add(feeder)
                pending.append(feeder)
    return tuple(node for node in plan.nodes if node in wanted)[:_MOST_LINES]


def _node_lines(
    plan: PlanBody, shown: tuple[Node, ...], factors: frozenset[Node], *, details: bool = False
) -> list[str]:
    ids = node_ids(plan.nodes)
    costs = dict(zip(plan.nodes, plan.node_costs, strict=True))
    starts = [
        ", ".join(ids[feeder] for feeder in node.inputs) if isinstance(node, Emit) else ids[node]
        for node in shown
    ]
    indent = max(map(len, starts), default=0)
    lines = [
        f"{start:<{indent}} {'->' if isinstance(node, Emit) else ':='} "
        f"{sentence(node, ids, factors)}"
        for start, node in zip(starts, shown, strict=True)
    ]
    width = max((len(line) for line in lines if len(line) <= _WIDEST), default=0)
    out = []
    for line, node in zip(lines, shown, strict=True):
        out.append(f"{line:<{width}}   cost {amount(costs[node])}")
        if details:
            space = " " * (indent + 4)
            out.extend(f"{space}{name:<10} {value}" for name, value in _details(node) if value)
    return out


def _details(node: Node) -> list[tuple[str, str]]:
    """What the verbose form adds to a node's line, name by name."""
    match node:
        case Scan():
            read = "all" if node.whole_events else listing(node.columns, None)
            return [("columns", read)]
        case Slice():
            edges = edges_text(node.edges, None)
            return [("edges", edges), *_computed(node)]
        case Roll():
            return [("reads", node.read), ("technique", technique_text(node)), *_computed(node)]
        case Join():
            sides = [
                (
                    printable(s.alias),
                    f"keys {keys_text(s.keys) or '-'}, {_side_partials(s.partials)}",
                )
                for s in node.sides
            ]
            return [*sides, *_computed(node)]
        case Emit():
            return [("outputs", outputs_text(node, None)), ("columns", listing(node.columns, None))]
        case _:
            assert_never(node)


def _side_partials(partials: Sequence[object]) -> str:
    return f"partials {listing((str(p) for p in partials), None) or '-'}"


def _computed(node: Slice | Roll | Join) -> list[tuple[str, str]]:
    return [("keys", keys_text(node.keys)), ("partials", partials_text(node.partials, None))]


def _candidates(plan: PlanBody) -> list[str]:
    rows = [(printable(c.planner), amount(c.cost), printable(c.reason)) for c in plan.candidates]
    return table(("candidate", "cost", "reason"), rows, right=(1,))


def _strategies(plan: PlanBody) -> list[str]:
    return table(STRATEGY_HEADS, strategy_rows(plan), right=(2, 3))


def _shares(plan: PlanBody, limit: int) -> list[str]:
    rows = [
        (*map(printable, s[:4]), amount(s.marginal), amount(s.alone), printable(s.reason))
        for s in plan.shares[:limit]
    ]
    lines = table(_SHARE_HEADS, rows, right=(4, 5))
    rest = len(plan.shares) - limit
    return [*lines, _more(rest)] if rest > 0 else lines


def _notes(plan: PlanBody) -> list[str]:
    return [f"note: {printable(note)}" for note in plan.notes]


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> list[str]:
    """Line the rows up under their heads; nothing when there are none, no empty last column.

    >>> table(("planner", "cost"), [("factor", "150"), ("slice", "1200")], right=(1,))
    ['planner   cost', 'factor     150', 'slice     1200']
    """
    if not rows:
        return []
    kept = len(heads) if any(row[-1] for row in rows) else len(heads) - 1
    every = [heads[:kept], *(row[:kept] for row in rows)]
    widths = [max(len(row[i]) for row in every) for i in range(kept)]
    return [
        "   ".join(
            f"{cell:>{width}}" if i in right else f"{cell:<{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in every
    ]
