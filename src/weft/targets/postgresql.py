"""Tables of PostgreSQL: rows are copied in as Arrow and merged, in one transaction with a mark."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from weft.errors import DataError, InputError, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from weft.targets.base import Mark, RowIdentity, Stretch

MARKS = "weft_marks"
_PASSING = "weft_rows"
_EXTRA = "postgresql"
_NULLS_ALIKE_FROM = 150_000  # the version of PostgreSQL whose indexes can hold NULLs to be equal


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """A table of PostgreSQL, made when there are first rows; `weft_marks` beside it has marks."""

    uri: str = field(repr=False)  # may have a password in it
    schema: str | None
    table: str
    key: tuple[str, ...] = ()

    @staticmethod
    def of(place: str, options: dict[str, str], key: tuple[str, ...]) -> PostgresTarget:
        """Read a place and its options, of which the table is ours and the others libpq's."""
        given = options.pop("table", "")
        if not given:
            raise InputError(
                f"{place} names a database and no table", hint="add ?table=NAME, or &table=NAME"
            )
        schema, _, table = given.rpartition(".")
        uri = f"{place}?{urlencode(options)}" if options else place
        return PostgresTarget(uri, schema or None, table, key)

    def named(self, query: str) -> PostgresTarget:
        """Return the table of one query of several."""
        return replace(self, table=f"{self.table}_{query}")

    def __str__(self) -> str:
        parts = urlsplit(self.uri)
        where = f"{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}"
        return f"table {self._name} of postgresql://{where}{parts.path}"

    @property
    def _name(self) -> str:
        return ".".join(_quoted(part) for part in (self.schema, self.table) if part)

    @property
    def _marks(self) -> str:
        return ".".join(_quoted(part) for part in (self.schema, MARKS) if part)

    def check(self) -> None:
        """Connect, and make sure that marks can be left."""
        with self._cursor() as cursor:
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {self._marks} (target text, writer text, "
                "number bigint NOT NULL, PRIMARY KEY (target, writer))"
            )

    def is_empty(self) -> bool:
        """Tell whether there is no row, or no table yet."""
        with self._cursor() as cursor:
            if not _is_there(cursor, self._name):
                return True
            cursor.execute(f"SELECT NOT EXISTS (SELECT 1 FROM {self._name})")
            return bool(cursor.fetchone()[0])

    def last(self, writer: str) -> int | None:
        """Return the number that a writer wrote last."""
        with self._cursor() as cursor:
            if not _is_there(cursor, self._marks):
                return None
            cursor.execute(
                f"SELECT number FROM {self._marks} WHERE target = $1 AND writer = $2",
                (self.table, writer),
            )
            found = cursor.fetchone()
        return None if found is None else int(found[0])

    def write(
        self, rows: pa.Table, identity: RowIdentity, mark: Mark, cleared: Sequence[Stretch] = ()
    ) -> bool:
        """Put rows in place of those with the same identity, in one transaction with the mark."""
        self.check()
        with self._cursor() as cursor:
            # The row of the mark is locked from here on: of two that write, one waits.
            cursor.execute(
                f"INSERT INTO {self._marks} AS m VALUES ($1, $2, $3) ON CONFLICT (target, writer) "
                "DO UPDATE SET number = excluded.number WHERE m.number < excluded.number "
                "RETURNING number",
                (self.table, mark.writer, mark.number),
            )
            if cursor.fetchone() is None:
                return False
            self._make(cursor, rows, identity)
            for stretch in cleared:
                self._clear(cursor, rows.schema, identity, stretch)
            self._merge(cursor, rows, identity)
        return True

    def _make(self, cursor: Any, rows: pa.Table, identity: RowIdentity) -> None:
        nulls_alike = _version(cursor) >= _NULLS_ALIKE_FROM
        if not nulls_alike and any(rows[name].null_count for name in identity.columns):
            raise DataError(
                f"a key is NULL, and {self} could not tell it from another NULL",
                hint="use PostgreSQL 15 or newer, or leave NULL keys out: WHERE key IS NOT NULL",
            )
        if _is_there(cursor, self._name):
            return
        cursor.adbc_ingest(self.table, rows.slice(0, 0), mode="create", db_schema_name=self.schema)
        alike = " NULLS NOT DISTINCT" if nulls_alike else ""
        columns = ", ".join(map(_quoted, identity.columns))
        cursor.execute(f"CREATE UNIQUE INDEX ON {self._name} ({columns}){alike}")

    def _clear(
        self, cursor: Any, schema: pa.Schema, identity: RowIdentity, stretch: Stretch
    ) -> None:
        label, start, _ = map(_quoted, identity.window)
        zoned = schema.field(identity.window[1]).type.tz is not None
        epoch = f"{'TIMESTAMPTZ' if zoned else 'TIMESTAMP'} 'epoch'"
        cursor.execute(
            f"DELETE FROM {self._name} WHERE {label} = $1 "
            f"AND {start} >= {epoch} + $2 * INTERVAL '1 microsecond' "
            f"AND {start} < {epoch} + $3 * INTERVAL '1 microsecond'",
            (stretch.label, float(stretch.from_us), float(stretch.to_us)),
        )

    def _merge(self, cursor: Any, rows: pa.Table, identity: RowIdentity) -> None:
        cursor.adbc_ingest(_PASSING, rows, mode="create", temporary=True)
        every = ", ".join(map(_quoted, rows.schema.names))
        keys = ", ".join(map(_quoted, identity.columns))
        others = [_quoted(n) for n in rows.schema.names if n not in identity.columns]
        changes = ", ".join(f"{name} = excluded.{name}" for name in others)
        action = f"UPDATE SET {changes}" if others else "NOTHING"
        cursor.execute(
            f"INSERT INTO {self._name} ({every}) SELECT {every} FROM pg_temp.{_PASSING} "
            f"ON CONFLICT ({keys}) DO {action}"
        )
        cursor.execute(f"DROP TABLE pg_temp.{_PASSING}")

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """Open a connection for one transaction, which holds if nothing fails."""
        require("adbc_driver_postgresql", _EXTRA, f"a {type(self).__name__}")
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi

        try:
            with dbapi.connect(self.uri) as connection, connection.cursor() as cursor:
                yield cursor
                connection.commit()
        except Error as error:
            said = " ".join(str(error).partition("Query was:")[0].split())
            raise InputError(
                f"{self} cannot be written: {said}", hint=_hint(said, self._name)
            ) from error


def _hint(said: str, table: str) -> str:
    if "no unique or exclusion constraint" in said:
        return f"add a unique index to {table} on the keys and the window's label, start and end"
    if "connect" in said:
        return "is the server there, and are user and password right? PGPASSWORD and ~/.pgpass work"
    return "compare the columns of the table with those of the query, or name another table"


def _is_there(cursor: Any, table: str) -> bool:
    cursor.execute("SELECT to_regclass($1) IS NOT NULL", (table,))
    return bool(cursor.fetchone()[0])


def _version(cursor: Any) -> int:
    cursor.execute("SELECT current_setting('server_version_num')::bigint")
    return int(cursor.fetchone()[0])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
