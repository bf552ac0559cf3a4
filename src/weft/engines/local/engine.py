"""The local engine behind the common interface: Arrow tables in, Arrow tables out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.base import Unsupported
from weft.engines.local.events import read_scan
from weft.engines.local.operator import ScopeOperator
from weft.engines.local.results import Closed, result_table
from weft.engines.schema import call_type, result_schema
from weft.errors import InternalError
from weft.plan import Emit, Join, Node, Plan, Scan
from weft.plan.nodes import topological

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weft.query import Keys


class LocalEngine:
    """Runs plans in this process, on whole columns."""

    name = "local"

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Joins are not run here."""
        return tuple(
            Unsupported(node, "the local engine does not run joins")
            for node in plan.nodes
            if isinstance(node, Join)
        )

    def run(self, plan: Plan, sources: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Process every source once, then close all windows."""
        queries = {query.name: query for query in plan.queries}
        schemas = {n: result_schema(q, sources[q.source].schema) for n, q in queries.items()}
        closed: dict[str, list[Closed]] = {name: [] for name in queries}
        operators: dict[str, ScopeOperator] = {}
        scopes = scopes_of(plan)
        for scan, operators_of_scan in scopes.items():
            table = sources[scan.source]
            timed = read_scan(scan, table, scan.columns)
            for operator in operators_of_scan:
                operator.process(timed)
                types = types_of(operator.emits, table.schema)
                for one in operator.advance(None, types):
                    closed[one.query].append(one)
                operators.update((emit.query, operator) for emit in operator.emits)
        return {
            name: result_table(
                schemas[name], labels_of(plan, name), operators[name].codes, closed[name]
            )
            for name in queries
        }


def scopes_of(plan: Plan) -> dict[Scan, list[ScopeOperator]]:
    """Make one operator per scan and set of keys."""
    found: dict[tuple[Scan, Keys], list[Emit]] = {}
    for emit in plan.emits:
        found.setdefault((scan_below(emit), emit.keys), []).append(emit)
    scopes: dict[Scan, list[ScopeOperator]] = {}
    for (scan, keys), emits in found.items():
        chosen = tuple(emits)
        operator = ScopeOperator.of(scan, keys, topological(chosen), chosen)
        scopes.setdefault(scan, []).append(operator)
    return scopes


def scan_below(node: Node) -> Scan:
    """Return the scan that a node reads in the end."""
    while not isinstance(node, Scan):
        if not node.inputs:
            raise InternalError(f"a {type(node).__name__} reads nothing")
        node = node.inputs[0]
    return node


def labels_of(plan: Plan, query: str) -> list[str]:
    """Return the labels of a query's windows, in its own order."""
    return [emit.label for emit in plan.emits if emit.query == query]


def types_of(emits: tuple[Emit, ...], source: pa.Schema) -> dict[Emit, tuple[pa.DataType, ...]]:
    """Return the types of every emit's aggregates over a source of this schema."""
    return {emit: tuple(call_type(call, source) for _, call in emit.outputs) for emit in emits}
