"""The folder that a refresh writes into: plain parquet files, changed all together or not at all.

New files are first laid down where no reader looks, then a journal says where they go, and then
they go there one by one. Whoever comes after a crash finds the journal and finishes the work; what
was laid down without a journal is thrown away.
"""

from __future__ import annotations

import fcntl
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from weft.errors import InputError
from weft.store.disk import flush, make_folder, move, read_json, remove, replace_json, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

_OWN = "_weft"  # readers of parquet folders leave out what begins with an underscore


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a folder was last refreshed from."""

    store: str
    version: int
    fingerprint: str
    files: frozenset[str]  # those that a refresh has written and not removed since


@dataclass(slots=True)
class ParquetFolder:
    """Results of one query as parquet files, one for each window and day."""

    path: Path
    _staged: dict[str, str] = field(default_factory=dict)
    _removed: list[str] = field(default_factory=list)

    @property
    def _state(self) -> Path:
        return self.path / _OWN / "refreshed.json"

    @property
    def _journal(self) -> Path:
        return self.path / _OWN / "journal.json"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other refreshes of the folder waiting; a crash lets them go on."""
        if not self._state.exists() and not self._journal.exists():
            self._refuse_what_is_not_ours()
        make_folder(self.path / _OWN / "staged")
        with (self.path / _OWN / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def begin(self) -> Refreshed | None:
        """Finish what a crash has interrupted, and say what the folder was refreshed from."""
        if self._journal.exists():
            self._apply(read_json(self._journal))
        for left in (self.path / _OWN / "staged").iterdir():
            remove(left)
        if not self._state.exists():
            return None
        told = read_json(self._state)
        return Refreshed(
            told["store"], told["version"], told["fingerprint"], frozenset(told["files"])
        )

    def _refuse_what_is_not_ours(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is no folder", hint="name a folder, or none yet")
        others = [p for p in self.path.glob("*") if p.name != _OWN]
        if others:
            raise InputError(
                f"{self.path} holds {others[0].name}, which no refresh has written",
                hint="name an empty folder, or one that is not there yet",
            )

    def put(self, name: str, table: pa.Table) -> None:
        """Lay a file down that takes the place of the one under this name, once committed."""
        staged = f"{uuid4().hex}.parquet"
        write_table(self.path / _OWN / "staged" / staged, table)
        self._staged[name] = staged

    def drop(self, name: str) -> None:
        """Remove a file, once committed."""
        self._removed.append(name)

    def commit(self, refreshed: Refreshed) -> None:
        """Change everything that was put and dropped."""
        state: dict[str, Any] = {
            "store": refreshed.store,
            "version": refreshed.version,
            "fingerprint": refreshed.fingerprint,
            "files": sorted((refreshed.files | self._staged.keys()) - {*self._removed}),
        }
        flush(self.path / _OWN / "staged")
        told = {"staged": self._staged, "removed": self._removed, "state": state}
        replace_json(self._journal, told)
        self._apply(told)

    def _apply(self, told: dict[str, Any]) -> None:
        """Do what a journal says; what was done before a crash is done no second time."""
        for name, staged in told["staged"].items():
            laid = self.path / _OWN / "staged" / staged
            if laid.exists():
                move(laid, self.path / name)
        for name in told["removed"]:
            remove(self.path / name)
        flush(self.path)
        replace_json(self._state, told["state"])
        remove(self._journal)


def file_name(number: int, label: str, day: str) -> str:
    """Name the file of one window and day.

    >>> file_name(0, "last 5 min", "2024-01-31")
    '0-last-5-min-2024-01-31.parquet'
    """
    words = "-".join(re.findall(r"\w+", label))[:40]
    return f"{number}-{words}-{day}.parquet"
