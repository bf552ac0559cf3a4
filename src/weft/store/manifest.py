"""The manifest: what a store is and which files are in it, one version after the other.

A version is a file of its own, made under a name that must not be there yet. Of two writers one
is first; the other looks at what the first one wrote and makes its change again on top of it. So
neither work is lost, and a reader has one version or the next, whole.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from weft.errors import DataError, InputError
from weft.store.disk import make_folder, read_json, remove, replace_json, write_new_json
from weft.store.kept import SliceSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

FORMAT = 1
_FOLDER = "manifests"
_NEWEST = "newest.json"
_KEPT_VERSIONS = 20  # manifests of the past that stay, to look at


@dataclass(frozen=True, slots=True)
class SliceFile:
    """One parquet file: slices of one set that begin on one day, of one batch."""

    path: str
    set: int
    level: int
    day: str
    rows: int
    bytes: int
    from_us: int  # where its first slice begins
    to_us: int  # where its last slice ends


@dataclass(frozen=True, slots=True)
class Batch:
    """What was appended under one id."""

    events: int
    version: int  # of the manifest that it came with
    files: tuple[SliceFile, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Which times of a day of a set were last changed by which version."""

    version: int
    from_us: int
    to_us: int


@dataclass(frozen=True)
class Manifest:
    """One version of a store."""

    id: str
    version: int
    weft: str
    plan: dict[str, Any]  # of the workload that the slices were chosen for, as JSON
    sets: tuple[SliceSet, ...]
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)  # of events, by source
    batches: Mapping[str, Batch] = field(default_factory=dict)
    changes: Mapping[tuple[int, str], Change] = field(default_factory=dict)  # by set and day
    keys: Mapping[int, int] = field(default_factory=dict)  # distinct ones of the largest batch
    keep: Mapping[str, str] = field(default_factory=dict)  # the rule of compaction
    table: str | None = None  # its name in a catalog, if it was made by one

    def files(self) -> Iterator[SliceFile]:
        """Yield all files, oldest batch first."""
        for batch in self.batches.values():
            yield from batch.files

    @property
    def events(self) -> int:
        """How many events are in the store."""
        return sum(batch.events for batch in self.batches.values())

    def with_batch(self, id: str, batch: Batch | None) -> Manifest:
        """Return the next version, with a batch in the place of what its id had."""
        batches = {name: own for name, own in self.batches.items() if name != id}
        before = self.batches.get(id)
        changes = dict(self.changes)
        touched = (*(before.files if before else ()), *(batch.files if batch else ()))
        for file in touched:
            place = (file.set, file.day)
            known = changes.get(place, Change(0, file.from_us, file.to_us))
            low, high = min(known.from_us, file.from_us), max(known.to_us, file.to_us)
            changes[place] = Change(self.version + 1, low, high)
        if batch is not None:
            batches[id] = batch
        return replace(self, version=self.version + 1, batches=batches, changes=changes)

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON values."""
        return {
            "weft_store": FORMAT,
            "weft": self.weft,
            "id": self.id,
            "table": self.table,
            "version": self.version,
            "fingerprint": self.plan["fingerprint"],
            "coverage_us": list(coverage_us(self.files()) or ()),
            "events": self.events,
            "plan": self.plan,
            "schemas": {name: _schema_text(schema) for name, schema in self.schemas.items()},
            "columns": {
                name: {f.name: str(f.type) for f in schema} for name, schema in self.schemas.items()
            },
            "sets": [one.to_json() for one in self.sets],
            "keys": {str(number): count for number, count in self.keys.items()},
            "keep": dict(self.keep),
            "batches": {
                id: {
                    "events": batch.events,
                    "version": batch.version,
                    "files": [
                        {name: getattr(file, name) for name in SliceFile.__slots__}
                        for file in batch.files
                    ],
                }
                for id, batch in self.batches.items()
            },
            "changes": [
                [number, day, one.version, one.from_us, one.to_us]
                for (number, day), one in self.changes.items()
            ],
        }

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Manifest:
        """Read a manifest back."""
        return cls(
            told["id"],
            told["version"],
            told["weft"],
            told["plan"],
            tuple(map(SliceSet.from_json, told["sets"])),
            {name: _read_schema(text) for name, text in told["schemas"].items()},
            {
                id: Batch(
                    batch["events"],
                    batch["version"],
                    tuple(SliceFile(**file) for file in batch["files"]),
                )
                for id, batch in told["batches"].items()
            },
            {(n, day): Change(v, low, high) for n, day, v, low, high in told["changes"]},
            {int(number): count for number, count in told["keys"].items()},
            told["keep"],
            told.get("table"),  # stores that are older have none
        )


def coverage_us(files: Iterator[SliceFile]) -> tuple[int, int] | None:
    """Return from when to when files have slices; None where there are none."""
    bounds = [(file.from_us, file.to_us) for file in files]
    if not bounds:
        return None
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _read_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


class Manifests:
    """The manifests of one store, and the only door to change them."""

    def __init__(self, store: Path) -> None:
        self._folder = store / _FOLDER

    def exist(self) -> bool:
        """Tell whether there is a store."""
        return bool(self._versions())

    def latest(self) -> Manifest:
        """Read the newest version."""
        while True:
            known = self._known_version()  # before looking: one that comes meanwhile is no loss
            versions = self._versions()
            if versions and versions[-1] < known:
                raise DataError(
                    f"version {known} of the store at {self._folder.parent} was there, and is gone",
                    hint="restore its manifest from a copy; nothing is read or written until then",
                )
            if not versions:
                raise InputError(
                    f"there is no store at {self._folder.parent}",
                    hint="make one with weft.Store(path, workload)",
                )
            path = self._path(versions[-1])
            try:
                told = read_json(path)
            except FileNotFoundError:  # others went on, and tidied up
                continue
            return self._read(told, path)

    def at(self, version: int) -> Manifest:
        """Read a version of the past, if it is still kept."""
        path = self._path(version)
        try:
            return self._read(read_json(path), path)
        except FileNotFoundError:
            raise InputError(
                f"version {version} of the store at {self._folder.parent} is no longer kept",
                hint="begin anew with the version that there is",
            ) from None

    def _read(self, told: dict[str, Any], path: Path) -> Manifest:
        if told.get("weft_store") != FORMAT:
            raise DataError(
                f"{path} is of format {told.get('weft_store')}, this weft reads format {FORMAT}",
                hint="read it with the version of weft that wrote it",
            )
        try:
            return Manifest.from_json(told)
        except (LookupError, TypeError, ValueError, pa.ArrowException) as reason:
            raise DataError(
                f"{path} is no manifest of a store: {reason}", hint="restore it from a copy"
            ) from None

    def begin(self, make: Callable[[str], Manifest]) -> Manifest:
        """Write the first version; of several that try, the first stays."""
        make_folder(self._folder)
        first = make(uuid4().hex)
        if write_new_json(self._path(first.version), first.to_json()):
            self._know(first.version)
        return self.latest()

    def change(self, made: Callable[[Manifest], Manifest | None]) -> Manifest:
        """Make a change on top of the newest version, as often as another writer comes between.

        `made` returns the next version, or None where there is nothing to change.
        """
        while True:
            now = self.latest()
            changed = made(now)
            if changed is None:
                return now
            if write_new_json(self._path(changed.version), changed.to_json()):
                self._know(changed.version)
                self._forget(changed.version - _KEPT_VERSIONS)
                return changed

    def _know(self, version: int) -> None:
        """Keep that a version was there, so that its loss is noticed."""
        with suppress(InputError):  # the change is made, whether or not there is room for this
            replace_json(self._folder / _NEWEST, {"version": version})

    def _known_version(self) -> int:
        try:
            return int(read_json(self._folder / _NEWEST)["version"])
        except FileNotFoundError:
            return 0

    def _forget(self, version: int) -> None:
        for old in self._versions():
            if old <= version:
                remove(self._path(old))

    def _path(self, version: int) -> Path:
        return self._folder / f"{version:012d}.json"

    def _versions(self) -> list[int]:
        names = (path.stem for path in self._folder.glob("[0-9]*.json"))
        return sorted(int(name) for name in names if name.isdigit())
