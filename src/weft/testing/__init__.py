"""For tests of your own: random windows, queries and events, and row-by-row comparison.

`weft.testing.strategies` needs hypothesis; `assert_same_rows` needs nothing more than weft.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.compare import first_difference

if TYPE_CHECKING:
    import pyarrow as pa

    from weft.query import AnyQuery


def assert_same_rows(query: AnyQuery, got: pa.Table, wanted: pa.Table, engine: str = "got") -> None:
    """Fail with the first differing row unless both tables hold the same results of the query."""
    difference = first_difference(query, got, wanted, engine)
    if difference is not None:
        raise AssertionError(str(difference))


__all__ = ["assert_same_rows"]
