"""Tables of Iceberg, without Spark: the stretch of time that rows touch is written anew.

A snapshot replaces the rows of a stretch of starts, label by label: those that are not written anew
are read and written along. The mark is a property of the table, in the same commit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import InputError, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.targets.base import Mark, RowIdentity, Stretch

_EXTRA = "iceberg"
_MARK = "weft.mark."


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    """A table of a catalog that pyiceberg knows by name, made when there are first rows."""

    catalog: str
    table: tuple[str, ...]  # its namespace, and its name
    key: tuple[str, ...] = ()

    @staticmethod
    def of(place: str, key: tuple[str, ...]) -> IcebergTarget:
        """Read `catalog.namespace.table`.

        >>> IcebergTarget.of("lake.metrics.lows", ()).table
        ('metrics', 'lows')
        """
        catalog, *table = place.split(".")
        if len(table) < 2 or not all((catalog, *table)):
            raise InputError(
                f"iceberg://{place} is no table of a catalog",
                hint="write iceberg://CATALOG.NAMESPACE.TABLE",
            )
        return IcebergTarget(catalog, tuple(table), key)

    def named(self, query: str) -> IcebergTarget:
        """Return the table of one query of several."""
        *space, name = self.table
        return replace(self, table=(*space, f"{name}_{query}"))

    def __str__(self) -> str:
        return f"iceberg table {'.'.join((self.catalog, *self.table))}"

    def check(self) -> None:
        """See that the catalog is there; the table itself may come later."""
        self._opened()

    def is_empty(self) -> bool:
        """Tell whether there is no row, or no table yet."""
        table = self._opened()[1]
        return table is None or table.scan(limit=1).to_arrow().num_rows == 0

    def last(self, writer: str) -> int | None:
        """Return the number that a writer wrote last."""
        table = self._opened()[1]
        found = None if table is None else table.properties.get(_MARK + writer)
        return None if found is None else int(found)

    def write(
        self, rows: pa.Table, identity: RowIdentity, mark: Mark, cleared: Sequence[Stretch] = ()
    ) -> bool:
        """Put rows in place of those with the same identity, in one commit with the mark."""
        done = self.last(mark.writer)
        if done is not None and done >= mark.number:
            return False
        catalog, table = self._opened()
        if table is None:
            catalog.create_namespace_if_not_exists(self.table[:-1])
            table = catalog.create_table(self.table, schema=rows.schema)
        touched = _touched(rows, identity, cleared)
        with table.transaction() as change:
            if touched is not None:
                before = table.scan(row_filter=touched).to_arrow()
                kept = _without(before, rows, identity, cleared)
                new = rows.select(kept.schema.names).cast(kept.schema)
                if before.num_rows:
                    change.overwrite(pa.concat_tables([kept, new]), overwrite_filter=touched)
                elif new.num_rows:
                    change.append(new)
            change.set_properties({_MARK + mark.writer: str(mark.number)})
        return True

    def _opened(self) -> tuple[Any, Any]:
        """Return the catalog and the table, if there is one."""
        require("pyiceberg", _EXTRA, "an Iceberg table")
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError

        try:
            catalog = load_catalog(self.catalog)
        except ValueError as error:
            raise InputError(
                f"there is no Iceberg catalog {self.catalog}: {error}",
                hint="describe it in ~/.pyiceberg.yaml, or in PYICEBERG_CATALOG__"
                f"{self.catalog.upper()}__URI",
            ) from error
        try:
            return catalog, catalog.load_table(self.table)
        except NoSuchTableError:
            return catalog, None


def _touched(rows: pa.Table, identity: RowIdentity, cleared: Sequence[Stretch]) -> Any:
    """Return which rows of the table are read and written anew; None if none are."""
    from pyiceberg.expressions import AlwaysTrue, And, EqualTo, GreaterThanOrEqual, LessThan, Or

    if not identity.window:  # nothing is known of the columns but that they tell rows apart
        return AlwaysTrue() if rows.num_rows else None
    label, start, _ = identity.window
    stretches = [(s.label, s.from_us, s.to_us) for s in cleared]
    if rows.num_rows:
        us = rows.select([label]).append_column("us", _micros(rows[start]))
        bounds = us.group_by(label).aggregate([("us", "min"), ("us", "max")]).to_pylist()
        stretches += [(one[label], one["us_min"], one["us_max"] + 1) for one in bounds]
    zoned = rows.schema.field(start).type.tz is not None
    parts = [
        And(
            EqualTo(label, text),
            And(
                GreaterThanOrEqual(start, _instant(from_us, zoned=zoned)),
                LessThan(start, _instant(to_us, zoned=zoned)),
            ),
        )
        for text, from_us, to_us in stretches
    ]
    return reduce(Or, parts) if parts else None


def _instant(us: int, *, zoned: bool) -> str:
    text = pc.strftime(pa.scalar(us, pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S").as_py()
    return f"{text}+00:00" if zoned else str(text)


def _without(
    before: pa.Table, rows: pa.Table, identity: RowIdentity, cleared: Sequence[Stretch]
) -> pa.Table:
    """Return the rows that stay: with no identity of the new ones, and in no stretch that goes."""
    if cleared and before.num_rows:
        label, start, _ = identity.window
        us, labels = _micros(before[start]).to_numpy(), before[label].to_numpy()
        gone = np.zeros(before.num_rows, np.bool_)
        for s in cleared:
            gone |= (labels == s.label) & (s.from_us <= us) & (us < s.to_us)
        before = before.filter(pa.array(~gone))
    if not before.num_rows or not rows.num_rows:
        return before
    coded = [_codes(before[name], rows[name]) for name in identity.columns]
    names = [f"c{at}" for at in range(len(coded))]
    own = pa.table(dict(zip(names, (a for a, _ in coded), strict=True)))
    new = pa.table(dict(zip(names, (b for _, b in coded), strict=True)))
    own = own.append_column("at", pa.array(np.arange(before.num_rows)))
    left = own.join(new, names, join_type="left anti")
    return before.take(left["at"].sort())


def _codes(own: pa.ChunkedArray[Any], new: pa.ChunkedArray[Any]) -> tuple[Any, Any]:
    """Number the values of two columns alike, NULL among them: a join holds no two NULLs equal."""
    both = pa.chunked_array([*own.cast(new.type).chunks, *new.chunks], new.type)
    codes = both.combine_chunks().dictionary_encode("encode").indices
    return codes.slice(0, len(own)), codes.slice(len(own))


def _micros(column: Any) -> Any:
    zone = column.type.tz
    return column.cast(pa.timestamp("us", zone)).cast(pa.int64())
