"""Versions of a running workload: which plan a micro-batch runs by, the same on every executor.

A version is one file, written in one step before its first micro-batch begins, in a directory that
the driver writes and executors read. A micro-batch that is run again finds the same version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.streaming.checkpoint.places import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.engines.spark.columnar.user_code import Code

Scopes = dict[int, HostedScope]  # by number
HOSTED = "hosted"


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
    names = [name for name in Place(directory).names() if name.endswith(".json")]
    pairs = [name.removesuffix(".json").split("-") for name in names if name[0] != "."]
    return sorted((int(number), int(first)) for number, first in pairs)


def version_at(directory: str, batch: int) -> int:
    """Return the number of the version that a micro-batch runs by."""
    return max(number for number, first in announced(directory) if first <= batch)


def read_version(directory: str, number: int) -> dict[str, Any]:
    """Return all that is told of a version."""
    (first,) = [first for n, first in announced(directory) if n == number]
    text = (Place(directory) / f"{number}-{first}.json").read()
    assert text is not None
    told: dict[str, Any] = json.loads(text)
    return told


def write_version(directory: str, number: int, from_batch: int, told: Mapping[str, Any]) -> None:
    """Let micro-batches from `from_batch` on run by another version."""
    (Place(directory) / f"{number}-{from_batch}.json").write(json.dumps(told, indent=1))


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
    return {int(n): HostedScope.from_json(scope, code) for n, scope in told.items()}


@lru_cache(maxsize=64)
def _loaded(described: bytes) -> HostedScope:
    return HostedScope.load(described)
