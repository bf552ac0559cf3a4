"""How results and sessions show themselves in notebooks.

`%load_ext weft` in a notebook lets Arrow tables, and mappings of queries to them, show themselves
as tables. Plans and sessions do so without it.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

MOST_ROWS = 12


def register(shell: Any) -> None:
    """Teach a shell of IPython's to show results."""
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type_by_name("pyarrow.lib", "Table", table_html)
    formatter.for_type(dict, results_html)


def table_html(table: pa.Table) -> str:
    """Show the first rows of a table, and how many there are.

    >>> import pyarrow as pa
    >>> table_html(pa.table({"a<b": [1, None]}))[:75]
    '<table><thead><tr><th>a&lt;b</th></tr></thead><tbody><tr><td>1</td></tr><tr'
    """
    rows = [list(row.values()) for row in table.slice(0, MOST_ROWS).to_pylist()]
    shown = grid_html(table.column_names, [[_text(value) for value in row] for row in rows])
    return f"{shown}<p>{table.num_rows:,} rows</p>"


def results_html(results: Mapping[object, object]) -> str | None:
    """Show the results of several queries under their names; of other mappings, nothing."""
    import pyarrow as pa

    if not results or not all(isinstance(table, pa.Table) for table in results.values()):
        return None
    parts = (
        f"<h4>{escape(str(name))}</h4>{table_html(table)}"
        for name, table in results.items()
        if isinstance(table, pa.Table)
    )
    return "".join(parts)


def grid_html(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write texts as a table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    return "NULL" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
