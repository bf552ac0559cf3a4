"""Directories on any file system: this machine's, or one that a URI names."""

from __future__ import annotations

import json
import os
import posixpath
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from pyarrow import fs

from weft.errors import DataError


@dataclass(frozen=True)
class Place:
    """A directory, and small files in it that are written whole or not at all."""

    uri: str

    @staticmethod
    def of(path: str | os.PathLike[str]) -> Place:
        """Take a path of this machine, or the URI of another file system's."""
        text = os.fspath(path)
        return Place(text if "://" in text else str(Path(text).expanduser().absolute()))

    @property
    def local(self) -> Path | None:
        """The path, if it is on this machine's file system."""
        return None if "://" in self.uri else Path(self.uri)

    @cached_property
    def _system(self) -> tuple[fs.FileSystem, str]:
        system, path = fs.FileSystem.from_uri(self.uri)
        return system, path

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.uri.rstrip('/')}/{name}")

    @property
    def parent(self) -> Place:
        """The directory that holds this one, but never a whole file system: then this one.

        >>> str(Place("/data/lows").parent), str(Place("s3://bucket/lows").parent)
        ('/data', 's3://bucket/lows')
        """
        head, path = self._parts
        return Place(f"{head}{path if path.parent == path.parent.parent else path.parent}")

    def lies_under(self, root: Place) -> bool:
        """Tell whether this is a directory below another one, whatever links and `..` say.

        >>> data = Place("/data")
        >>> [Place(p).lies_under(data) for p in ("/data/a/../lows", "/data/../a", "/database/a")]
        [True, False, False]
        >>> Place("s3://b/x/../../y").lies_under(Place("s3://b/x"))
        False
        """
        (own_head, own), (head, path) = self._parts, root._parts
        return own_head == head and path in own.parents

    @property
    def _parts(self) -> tuple[str, PurePosixPath]:
        """The file system, as its URI begins, and the path in it, without links and `..`."""
        if self.local is not None:
            return "", PurePosixPath(self.local.resolve())
        scheme, _, rest = self.uri.partition("://")
        host, _, path = rest.partition("/")
        if scheme == "file":
            return "", PurePosixPath(Path(f"/{unquote(path)}").resolve())
        return f"{scheme}://{host}", PurePosixPath(posixpath.normpath(f"/{path}"))

    def names(self) -> list[str]:
        """List what lies in the directory, sorted; nothing if there is none."""
        system, path = self._system
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(one.base_name for one in found)

    def read(self) -> str | None:
        """Return the text of a file; None if there is none."""
        system, path = self._system
        if system.get_file_info(path).type != fs.FileType.File:
            return None
        with system.open_input_stream(path) as file:
            return bytes(file.read()).decode()

    def read_json(self) -> Any:
        """Return what a file of JSON tells; None if there is none."""
        try:
            text = self.read()
            return None if text is None else json.loads(text)
        except ValueError as error:
            raise self.damaged(error) from None

    def damaged(self, reason: object) -> DataError:
        """Say that a file is not what was written."""
        return DataError(
            f"the file {self} is damaged: {reason}", hint="put back a copy of it from before"
        )

    def write(self, text: str) -> None:
        """Write a file in one step: nobody reads half of it, even if the writer is killed."""
        system, path = self._system
        folder, _, name = path.rpartition("/")
        system.create_dir(folder, recursive=True)
        passing = f"{folder}/.{name}.{uuid.uuid4().hex}"
        try:
            with system.open_output_stream(passing) as file:
                file.write(text.encode())
            system.move(passing, path)
        except OSError:
            with suppress(OSError):
                system.delete_file(passing)
            raise

    def delete(self) -> None:
        """Remove a file."""
        system, path = self._system
        system.delete_file(path)

    def __str__(self) -> str:
        return self.uri


def as_directory(name: str) -> str:
    """Write any text as the name of a directory that is no path.

    >>> as_directory("lows"), as_directory("a/b")
    ('lows', 'a%2Fb')
    """
    return quote(name, safe=" ()-_.")
