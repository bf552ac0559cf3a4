"""Tables of Delta Lake, without Spark: one merge, and its mark, is one commit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import InputError, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from weft.targets.base import Mark, RowIdentity, Stretch

_EXTRA = "delta"


@dataclass(frozen=True, slots=True)
class DeltaTarget:
    """A Delta table at a path or a URI, made when there are first rows; marks are transactions."""

    uri: str
    key: tuple[str, ...] = ()

    def named(self, query: str) -> DeltaTarget:
        """Return the table of one query of several: a folder below."""
        return replace(self, uri=f"{self.uri.rstrip('/')}/{query}")

    def __str__(self) -> str:
        return f"delta table {self.uri}"

    def check(self) -> None:
        """See that the package is there; the table itself may come later."""
        require("deltalake", _EXTRA, "a Delta table")
        self._opened()

    def is_empty(self) -> bool:
        """Tell whether there is no row, or no table yet."""
        table = self._opened()
        return table is None or table.count() == 0

    def last(self, writer: str) -> int | None:
        """Return the number that a writer wrote last."""
        table = self._opened()
        return None if table is None else table.transaction_version(writer)

    def write(
        self, rows: pa.Table, identity: RowIdentity, mark: Mark, cleared: Sequence[Stretch] = ()
    ) -> bool:
        """Put rows in place of those with the same identity, in one commit with the mark."""
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.exceptions import DeltaError

        done = self.last(mark.writer)
        if done is not None and done >= mark.number:
            return False
        try:
            table = self._opened() or DeltaTable.create(self.uri, rows.schema)
            merge = (
                table.merge(
                    rows,
                    " AND ".join(
                        [_same(n, rows) for n in identity.columns] + _near(rows, identity)
                    ),
                    source_alias="s",
                    target_alias="t",
                    commit_properties=CommitProperties(
                        app_transactions=[Transaction(mark.writer, mark.number)]
                    ),
                )
                .when_matched_update_all()
                .when_not_matched_insert_all()
            )
            if cleared:
                merge = merge.when_not_matched_by_source_delete(
                    " OR ".join(_within(stretch, identity, rows) for stretch in cleared)
                )
            merge.execute()
        except DeltaError as error:
            raise InputError(
                f"{self} cannot be written: {error}",
                hint="compare its columns with those of the query, or name another table",
            ) from error
        return True

    def _opened(self) -> DeltaTable | None:
        require("deltalake", _EXTRA, "a Delta table")
        from deltalake import DeltaTable

        return DeltaTable(self.uri) if DeltaTable.is_deltatable(self.uri) else None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _same(name: str, rows: pa.Table) -> str:
    """Compare a column; keys that are NULL are equal, but only then is it not left to a join."""
    own, its = f"s.{_quoted(name)}", f"t.{_quoted(name)}"
    alike = f"{its} = {own}"
    return f"({alike} OR {its} IS NULL AND {own} IS NULL)" if rows[name].null_count else alike


def _near(rows: pa.Table, identity: RowIdentity) -> list[str]:
    """Bound the starts of rows that can be the same: files of other times are not opened."""
    if identity.start is None or not rows.num_rows:
        return []
    column: Any = rows[identity.start]
    bounds: Any = pc.min_max(
        column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    ).as_py()
    start = f"t.{_quoted(identity.start)}"
    low, high = (_instant(bounds[name], rows, identity.start) for name in ("min", "max"))
    return [f"{start} >= {low}", f"{start} <= {high}"]


def _instant(us: int, rows: pa.Table, column: str) -> str:
    zoned = rows.schema.field(column).type.tz is not None
    zone = 'Some("UTC")' if zoned else "None"
    return f"arrow_cast({us}, 'Timestamp(Microsecond, {zone})')"


def _within(stretch: Stretch, identity: RowIdentity, rows: pa.Table) -> str:
    label, start, _ = (f"t.{_quoted(name)}" for name in identity.window)
    text = stretch.label.replace("'", "''")
    ends = (stretch.from_us, stretch.to_us)
    low, high = (_instant(us, rows, identity.window[1]) for us in ends)
    return f"({label} = '{text}' AND {start} >= {low} AND {start} < {high})"
