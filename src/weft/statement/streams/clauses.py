"""Clauses of a block that a stream cannot have, and where in a statement a stream may go on."""

from __future__ import annotations

from sqlglot import exp

# Clauses that would have to wait for all rows, and what Spark says of each.
_SORTED = (
    "Sorting is not supported on streaming DataFrames/Datasets, unless it is on aggregated "
    "DataFrame/Dataset in Complete output mode"
)
_WHOLE = {
    "order": ("ORDER BY", _SORTED),
    "limit": ("LIMIT", "Limits are not supported on streaming DataFrames in Append output mode"),
    "offset": ("OFFSET", "Offset is not supported on streaming DataFrames"),
    "distinct": ("DISTINCT", "it would need a state of all rows that have been given"),
    "qualify": ("QUALIFY", "Non-time-based windows are not supported on streaming DataFrames"),
}


def waiting_clause(select: exp.Select) -> tuple[str, str] | None:
    """Return a clause of a block that a stream in append mode cannot have, and Spark's reason."""
    for part, told in _WHOLE.items():
        if select.args.get(part):
            return told
    if any(item.find(exp.Window) is not None for item in select.expressions):
        return "OVER", _WHOLE["qualify"][1]
    return None


def stream_obstacle(select: exp.Select) -> str | None:
    """Say why a block of a streaming statement is left to Spark."""
    waiting = waiting_clause(select)
    if waiting is not None:
        return f"{waiting[0]} in a stream is Spark's"
    above = select.parent
    while isinstance(above, exp.Paren) or (
        isinstance(above, exp.Union) and above.args.get("distinct") is False
    ):
        above = above.parent
    return None if above is None else "the statement goes on after it, which in a stream is Spark's"
