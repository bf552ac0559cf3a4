"""Statements as plain SQL: blocks that share become steps of one WITH, and the rest stays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from weft.errors import QueryError, UnsupportedError, WeftError
from weft.plain_sql.statements import Dialect, PlainScope, in_dialect
from weft.plain_sql.statements import rewrite as rewrite_workload
from weft.statement.blocks import Surroundings, block_of, window_selects
from weft.statement.projection import Projection, call_column, own_name
from weft.statement.relations import Obstacle
from weft.statement.sharing import (
    EVENTS,
    PRESENT,
    WINDOW_COLUMNS,
    Group,
    Member,
    together,
    worthwhile,
)
from weft.statement.syntax import is_call, query_of, statements_of, written_of
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.statistics import Statistics

    Planning = Statistics | Mapping[str, Statistics] | None


def rewrite(
    sql: str,
    dialect: Dialect = "spark",
    *,
    planner: str = "auto",
    statistics: Planning = None,
) -> str:
    """Return SQL that computes the same rows as the statement, windows from shared slices.

    Tumbling and hopping windows with aggregates that SQL can combine. The event time is a
    timestamp with a zone (TIMESTAMP in Spark, TIMESTAMPTZ in DuckDB), and so are the bounds of
    windows. What weft reads by itself has weft's columns; in any other query blocks that group by
    windows over the same events are replaced, and the rest stays as it is.

    >>> print(rewrite("SELECT k, MAX(x) - MIN(x) AS span FROM t "
    ...               "GROUP BY k, window(ts, '1 hour', '5 minutes')").splitlines()[-2])
    SELECT weft_k0 AS `k`, weft_a0 - weft_a1 AS `span` FROM weft_result_0
    """
    from weft.parsing import parse

    try:
        parse(sql)
    except QueryError as error:
        found = statements_of(sql)
        trees = {name: query_of(text) for name, text in (found or {}).items()}
        known = {name: tree for name, tree in trees.items() if tree is not None}
        if not known or len(known) < len(trees) or not any(map(window_selects, known.values())):
            raise error from None
        texts = {
            name: _Rewriting(planner, statistics).text(tree, dialect)
            for name, tree in known.items()
        }
        if len(texts) == 1:
            return next(iter(texts.values()))
        return "\n\n".join(f"-- name: {name}\n{text};" for name, text in texts.items())
    return rewrite_workload(sql, dialect, planner=planner, statistics=statistics)


def _unknown(select: exp.Select) -> NoReturn:
    raise Obstacle("whether a name in GROUP BY is a column or an alias takes the table to know")


@dataclass
class _Rewriting:
    planner: str
    statistics: Planning
    steps: list[tuple[str, str]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    shared: int = 0

    def text(self, tree: exp.Query, dialect: Dialect) -> str:
        """Return a statement whose blocks read steps of shared plans."""
        root = exp.Paren(this=tree)
        read: list[Member] = []
        inner: list[exp.Select] = []
        for number, select in enumerate(window_selects(tree)):
            try:
                if any(node in inner for node in select.find_all(exp.Select) if node is not select):
                    raise Obstacle("it reads another block")
                read.append(_member(number, select))
            except Obstacle as obstacle:
                self.reasons.append(f"block {number + 1}: {obstacle}")
            inner.append(select)
        if any(is_call(node, "window_time") for node in tree.walk()):
            read = []
            self.reasons.append("window_time reads what only a window of Spark's has")
        for number, members in enumerate(together(read)):
            able = worthwhile(members)
            self.reasons += [f"block {m.number + 1} is alone" for m in members if m not in able]
            if able:
                self._share(Group(able, source=f"{EVENTS}_{number}"), f"weft_{number}_")
        if not self.shared:
            raise UnsupportedError(
                f"nothing in the statement is shared: {'; '.join(self.reasons)}",
                hint="run it as it is, or with weft.sql, which asks Spark what it needs to know",
            )
        listed = ",\n".join(f"{name} AS (\n{sql}\n)" for name, sql in self.steps)
        whole = f"WITH {listed}\n(\n{written_of(root.this)}\n)"
        return whole if dialect == "spark" else in_dialect(whole, dialect)

    def _share(self, group: Group, prefix: str) -> None:
        """Add the steps of a group, and read its blocks from them; or leave all as they are."""
        from weft.plan.planned_scope import planned_scopes
        from weft.planners.portfolio import optimize

        steps = [(group.source, written_of(group.events()))]
        selects: list[tuple[Member, exp.Select]] = []
        try:
            known = self.statistics
            plan = optimize(group.workload(), self.planner, "spark", known, key_sets="apart")
            for number, scope in enumerate(planned_scopes(plan)):
                plain = PlainScope(scope, f"{prefix}{number}_")
                steps += plain.steps()
                rows = steps[-1][0]
                for member in (m for m in group.members if m.query in scope.queries):
                    place = f"weft_result_{self.shared + len(selects)}"
                    own = plain.result(rows, scope.emits_of(member.query))
                    steps.append((place, _table(group, member, own)))
                    names = [own_name(item) or "" for item in member.block.select.expressions]
                    selects.append((member, member.projection.over(place, names)))
        except (Obstacle, WeftError) as error:
            told = error.message if isinstance(error, WeftError) else str(error)
            self.reasons += [f"block {m.number + 1}: {told}" for m in group.members]
            return
        self.steps += steps
        self.shared += len(selects)
        for member, select in selects:
            member.block.select.replace(select)


def _member(number: int, select: exp.Select) -> Member:
    block = block_of(select, Surroundings(_unknown, ""))
    # A column of this name beside the window would be no group, and Spark take no such statement.
    projection = Projection(block, lambda _: frozenset())
    projection.check_calls()
    projection.check()
    if not isinstance(block.window.kind, PeriodicWindow) or block.window.name != "window":
        raise Obstacle(f"{block.window.call} has no plain SQL")
    if block.sets:
        raise Obstacle("ROLLUP, CUBE and GROUPING SETS are not written out")
    if any(call.reading != "{0}" for call in projection.calls.values()):
        raise Obstacle("an aggregate of it has no plain SQL")
    if any(own_name(item) is None for item in select.expressions):
        raise Obstacle("a column has no name; give it one with AS")
    return Member(number, block, projection)


def _table(group: Group, member: Member, rows: str) -> str:
    """Return the results of a block as Spark has them: keys, the window, aggregates."""
    _, start, end = WINDOW_COLUMNS
    columns: Sequence[str] = [
        *(f"weft_k{number}" for number in range(len(member.block.keys))),
        f"named_struct('start', {start}, 'end', {end}) AS window",
        *(call_column(number) for number in range(len(member.projection.calls))),
    ]
    kept = f" WHERE {PRESENT} > 0" if group.own_conditions(member) else ""
    return f"SELECT {', '.join(columns)} FROM (\n{rows}\n) AS rows_of_all{kept}"
