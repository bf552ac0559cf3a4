"""A store by the name of a table: its folder is where the catalog keeps tables of that database.

The name is a view of the files that one version of the store has, made anew after every change. So
whoever reads by the name has one version, whole: never half of a batch, nor what a writer that
crashed has left. A crash between a change and its view leaves the version before, which the next
that opens the store by its name puts right.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from weft.errors import InputError, require
from weft.store.cut import FOLDER
from weft.store.kept import START

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from weft.store.kept import SliceSet
    from weft.store.manifest import Manifest

CATALOG = "catalog://"
_DAY = "day"
_OWN_CATALOG = "spark_catalog"
_STORE, _ID, _VERSION = "weft.store", "weft.id", "weft.version"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """The name of a store in the catalog of the Spark session in use."""

    database: str
    table: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> CatalogTable | None:
        """Read a name, such as `catalog://metrics.readings_slices`; None if it is a folder.

        >>> CatalogTable.of("catalog://metrics.slices"), CatalogTable.of("slices")
        (CatalogTable(database='metrics', table='slices'), None)
        """
        if not isinstance(path, str) or not path.startswith(CATALOG):
            return None
        parts = path.removeprefix(CATALOG).split(".")
        if parts[0] == _OWN_CATALOG and len(parts) == 3:
            parts = parts[1:]
        if len(parts) > 2 or not all(re.fullmatch(r"\w+", part) for part in parts):
            raise InputError(
                f"{path} names no table of the session's own catalog",
                hint="write catalog://DATABASE.TABLE, of letters, digits and _; tables of other "
                "catalogs can be refreshed into: weft.refresh(..., into='iceberg://...')",
            )
        return cls(*parts) if len(parts) == 2 else cls("default", parts[0])

    def __str__(self) -> str:
        return f"{CATALOG}{self.database}.{self.table}"

    def folder(self) -> Path:
        """Return where the store is: as its view says, or else in the folder of the database."""
        require("pyspark", "spark", "a store in a catalog")
        known = self._properties(0)
        if known is not None:
            return Path(known[_STORE])
        with self._asked("is not there") as session:
            told = session.sql(f"DESCRIBE NAMESPACE `{self.database}`").collect()
        place = next(row[1] for row in told if row[0] == "Location")
        parts = urlsplit(place)
        if parts.scheme not in ("", "file"):
            raise InputError(
                f"the database {self.database} is kept at {place}, which is no folder",
                hint="name a database whose location driver and executors share as a folder",
            )
        return Path(unquote(parts.path)) / f"{self.table}.weft"

    def show(self, store: Path, manifest: Manifest) -> None:
        """Let the name be the slices of a version; those of a further set are `NAME_1` and so on.

        Where there are no slices, there is no name yet.
        """
        for number, kept in enumerate(manifest.sets):
            files = [f.path for f in manifest.files() if f.set == number]
            known = self._properties(number)
            if known is not None and known[_ID] != manifest.id:
                raise InputError(
                    f"{self._name(number)} is the name of another store",
                    hint="choose another name, or drop that view",
                )
            if known is not None and known[_VERSION] == str(manifest.version):
                continue
            with self._asked("cannot be made") as session:
                if files:
                    session.sql(self._view(number, kept, store, files, manifest))
                elif known is not None:
                    session.sql(f"DROP VIEW {self._name(number)}")

    def _name(self, number: int) -> str:
        return f"`{self.database}`.`{self.table}{f'_{number}' if number else ''}`"

    def _view(
        self, number: int, kept: SliceSet, store: Path, files: list[str], manifest: Manifest
    ) -> str:
        meanings = {START: "where the slice begins"}
        meanings |= {name: f"key: {text}" for name, text in kept.keys}
        meanings |= {name: f"partial: {partial}" for name, partial in kept.partials}
        meanings[_DAY] = "on which the slice begins, in UTC"
        columns = ", ".join(f"{_quoted(n)} COMMENT {_text(told)}" for n, told in meanings.items())
        properties = {_STORE: str(store), _ID: manifest.id, _VERSION: str(manifest.version)}
        told = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in properties.items())
        names = ", ".join(_text(path.rpartition("/")[2]) for path in files)
        return (
            f"CREATE OR REPLACE VIEW {self._name(number)} ({columns}) "
            f"COMMENT 'slices of a weft store: combine the rows of one key and slice' "
            f"TBLPROPERTIES ({told}) AS SELECT {', '.join(map(_quoted, meanings))} "
            f"FROM parquet.{_quoted(str(store / FOLDER / f'set-{number}'))} "
            f"WHERE _metadata.file_name IN ({names})"
        )

    def _properties(self, number: int) -> dict[str, str] | None:
        """Return what the view of a set says of its store; None where the name is free."""
        name = self._name(number)
        with self._asked("cannot be looked up") as session:
            if not session.catalog.tableExists(name):
                return None
            told = {row[0]: row[1] for row in session.sql(f"SHOW TBLPROPERTIES {name}").collect()}
        if not {_STORE, _ID, _VERSION} <= told.keys():
            raise InputError(
                f"{name} is in the catalog, and no store of slices",
                hint="choose a name that is free, or one that weft.Store has made",
            )
        return told

    @contextmanager
    def _asked(self, what: str) -> Iterator[SparkSession]:
        """Ask the session's catalog, and say what it answered where it refuses."""
        from pyspark.errors import PySparkException

        from weft.engines.spark.session import current_session

        try:
            yield current_session()
        except PySparkException as error:
            told = str(error).splitlines()[0]
            raise InputError(
                f"{self} {what}: {told}", hint="see that the database is there and can be changed"
            ) from error


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
