"""Versions of a running workload: which plan a micro-batch runs by, the same on every executor.

A version is one file, written in one step before its first micro-batch begins, in a directory that
the driver writes and executors read. A micro-batch that is run again finds the same version.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from weft.engines.spark.streaming.checkpoint.places import Place
from weft.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.engines.spark.columnar.hosted_operator import HostedScope
    from weft.engines.spark.columnar.user_code import Code

    Scopes = dict[int, HostedScope]  # by number

HOSTED = "hosted"
_DIGEST = "sha256"
_NAME = re.compile(r"(\d+)-(\d+)\.json")


@dataclass(frozen=True)
class Versions:
    """The versions of one stream: those in a directory, or without one a single that stays."""

    directory: str | None
    stream: str = ""
    only: Mapping[int, bytes] = field(default_factory=dict)  # descriptions with their code
    code: Code = ()  # of what a directory only names

    def at(self, batch: int) -> tuple[int, Scopes]:
        """Return the number and the scopes of the version that a micro-batch runs by."""
        if self.directory is None:
            return 0, self.of(0)
        number = version_at(self.directory, batch)
        return number, self.of(number)

    def of(self, number: int) -> Scopes:
        """Return the scopes of a version."""
        if self.directory is None:
            return {at: _loaded(described) for at, described in self.only.items()}
        return _scopes(self.directory, number, self.stream, self.code)


def announced(directory: str) -> list[tuple[int, int]]:
    """List the versions of a directory: their numbers, and the micro-batches they begin with."""
    found = [match for name in Place(directory).names() if (match := _NAME.fullmatch(name))]
    return sorted((int(match[1]), int(match[2])) for match in found)


def version_at(directory: str, batch: int) -> int:
    """Return the number of the version that a micro-batch runs by."""
    known = [number for number, first in announced(directory) if first <= batch]
    if not known:
        raise _lost(directory, 0)
    return max(known)


def read_version(directory: str, number: int) -> dict[str, Any]:
    """Return all that is told of a version, if it is what was written."""
    known = dict(announced(directory))
    if number not in known:
        raise _lost(directory, number)
    place = Place(directory) / f"{number}-{known[number]}.json"
    told: dict[str, Any] = place.read_json()
    try:
        # Without a digest it is of a weft that wrote none.
        written = told.pop(_DIGEST, None)
    except AttributeError:
        raise place.damaged("it tells of no version") from None
    if written is not None and written != _digest(told):
        raise place.damaged("its digest is another")
    return told


def write_version(directory: str, number: int, from_batch: int, told: Mapping[str, Any]) -> None:
    """Let micro-batches from `from_batch` on run by another version."""
    text = json.dumps({**told, _DIGEST: _digest(told)}, indent=1)
    (Place(directory) / f"{number}-{from_batch}.json").write(text)


def _digest(told: Mapping[str, Any]) -> str:
    # As it is read back, where the keys of objects are text.
    same = json.dumps(json.loads(json.dumps(told)), sort_keys=True)
    return hashlib.sha256(same.encode()).hexdigest()


def _lost(directory: str, number: int) -> DataError:
    return DataError(
        f"version {number} of the workload is not in {directory}",
        hint="put back a copy of its file, or start anew with another checkpoint",
    )


def hosted_to_json(streams: Mapping[str, Mapping[int, HostedScope]]) -> dict[str, Any]:
    """Write descriptions of hosted scopes, stream by stream, as JSON values."""
    return {
        stream: {str(n): scope.to_json() for n, scope in scopes.items()}
        for stream, scopes in streams.items()
    }


@lru_cache(maxsize=16)
def _scopes(directory: str, number: int, stream: str, code: Code) -> Scopes:
    # Workers stay alive between micro-batches, and a description takes longer to read than a batch.
    told = read_version(directory, number)[HOSTED].get(stream, {})
    return {int(n): _hosted_scope().from_json(scope, code) for n, scope in told.items()}


@lru_cache(maxsize=64)
def _loaded(described: bytes) -> HostedScope:
    return _hosted_scope().load(described)


def _hosted_scope() -> type[HostedScope]:
    """Import the operator with all that it runs on, which telling of versions does without."""
    from weft.engines.spark.columnar.hosted_operator import HostedScope

    return HostedScope
