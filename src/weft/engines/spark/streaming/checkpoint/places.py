"""Directories on any file system: this machine's, or one that a URI names."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from pyarrow import fs


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

    def write(self, text: str) -> None:
        """Write a file in one step: nobody reads half of it, even if the writer is killed."""
        system, path = self._system
        folder, _, name = path.rpartition("/")
        system.create_dir(folder, recursive=True)
        passing = f"{folder}/.{name}.{uuid.uuid4().hex}"
        with system.open_output_stream(passing) as file:
            file.write(text.encode())
        system.move(passing, path)

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
