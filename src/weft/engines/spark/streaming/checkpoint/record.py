"""What a checkpoint is of: the plan and the strategy, written beside Spark's own files.

Spark restarts from a checkpoint whatever the query has become, and some changes give wrong rows
without a word. So the plan goes along; a restart takes it as it was, or says what differs.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.engines.failpoints import may_stop
from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.streaming.checkpoint.versions import (
    HOSTED,
    announced,
    hosted_to_json,
    read_version,
    write_version,
)
from weft.engines.spark.streaming.columnar.bucket_numbers import Buckets
from weft.engines.spark.streaming.columnar.parcels import Parcel
from weft.errors import DataError, QueryError
from weft.plan import Plan
from weft.plan.nodes import topological
from weft.time import format_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weft.engines.spark.streaming.checkpoint.places import Place
    from weft.plan import Node
    from weft.query import AnyQuery, Query

FORMAT = 3
_READ = (2, FORMAT)  # in 2 buckets have plain numbers


@dataclass(frozen=True, slots=True)
class Record:
    """How a stream runs: all that a restart must do alike."""

    plan: Plan
    strategy: str
    buckets: Buckets = field(default_factory=lambda: Buckets(0))  # of the columnar strategy
    parcels: Mapping[str, tuple[Parcel, ...]] = field(default_factory=dict)  # by stream
    version: int = 0
    live_sinks: Mapping[str, str] = field(default_factory=dict)  # of queries added while it ran
    suspended: Mapping[str, Plan] = field(default_factory=dict)  # of each query by itself
    mode: str = "append"
    request: str | None = None  # the one that this version came of
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # types, by source

    def query(self, name: str) -> AnyQuery:
        """Return a query that runs, or that is suspended."""
        every: tuple[AnyQuery, ...] = (
            *self.plan.queries,
            *self.plan.joins,
            *self.suspended_queries,
        )
        return next(query for query in every if query.name == name)

    @property
    def suspended_queries(self) -> tuple[Query, ...]:
        """The queries that are suspended."""
        return tuple(plan.queries[0] for plan in self.suspended.values())

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {
            "weft_checkpoint": FORMAT,
            "fingerprint": self.plan.fingerprint,
            "strategy": self.strategy,
            "mode": self.mode,
            "request": self.request,
            "columns": {source: dict(own) for source, own in self.columns.items()},
            "buckets": self.buckets.each,
            "partitions": self.buckets.partitions,
            "parcels": {s: [p.to_json() for p in own] for s, own in self.parcels.items()},
            "live_sinks": dict(self.live_sinks),
            "suspended": [plan.to_json() for plan in self.suspended.values()],
            "plan": self.plan.to_json(),
        }

    @staticmethod
    def from_json(value: dict[str, Any], version: int, where: object) -> Record:
        """Read a record back, or say why it cannot be."""
        if value.get("weft_checkpoint") not in _READ:
            raise DataError(
                f"the checkpoint {where} is of version {value.get('weft_checkpoint')}, and this "
                f"weft reads versions {_READ[0]} to {FORMAT}",
                hint="resume it with the version of weft that wrote it",
            )
        plan = Plan.from_json(json.dumps(value["plan"]))
        if plan.fingerprint != value["fingerprint"]:
            raise DataError(
                f"the checkpoint {where} is of plan {value['fingerprint']}, which here reads as "
                f"{plan.fingerprint}: its windows or aggregates are defined otherwise",
                hint="define custom aggregates and windows as they were when it was written",
            )
        parcels = {s: tuple(map(Parcel.from_json, own)) for s, own in value["parcels"].items()}
        idle = [Plan.from_json(json.dumps(p)) for p in value["suspended"]]
        return Record(
            plan,
            value["strategy"],
            Buckets(value["buckets"], value.get("partitions", 0)),
            parcels,
            version,
            value["live_sinks"],
            {own.queries[0].name: own for own in idle},
            value["mode"],
            value.get("request"),
            value.get("columns", {}),
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint directory: Spark's files, and ours in `weft`."""

    place: Place

    @property
    def own(self) -> Place:
        """The directory of what is not Spark's."""
        return self.place / "weft"

    @property
    def versions(self) -> str:
        """The directory of the versions of the workload."""
        return (self.own / "versions").uri

    @property
    def stream(self) -> str:
        """The name that Spark gave the stream when it first started, and keeps."""
        place = self.place / "metadata"
        told = place.read()
        if told is None:
            raise DataError(
                f"the checkpoint {self.place} has lost the name of its stream",
                hint="put its file `metadata` back, or start anew with another directory",
            )
        try:
            return str(uuid.UUID(json.loads(told.splitlines()[-1])["id"]))
        except (ValueError, LookupError, TypeError, AttributeError):
            raise place.damaged("it names no stream") from None

    @property
    def is_committed(self) -> bool:
        """Whether a first micro-batch is done, with its state."""
        return any(name.isdecimal() for name in (self.place / "commits").names())

    @property
    def next_batch(self) -> int:
        """The number of the first micro-batch that has not begun."""
        begun = [int(name) for name in (self.place / "offsets").names() if name.isdecimal()]
        return max(begun, default=-1) + 1

    def read(self) -> Record | None:
        """Return how the stream ran last; None if it never read anything."""
        if self.next_batch == 0:
            return None
        known = announced(self.versions)
        if not known:
            raise QueryError(
                f"the checkpoint {self.place} is of a stream that weft did not start",
                hint="give another directory",
            )
        number, _ = known[-1]
        return self.record_of(number)

    def hosted_nodes(self) -> Iterator[Node]:
        """Return the nodes of all versions, but of those that name what is no longer defined.

        State that was written by such a version is refused where it is read.
        """
        for number, _ in announced(self.versions):
            for scopes in read_version(self.versions, number)[HOSTED].values():
                for told in scopes.values():
                    with suppress(QueryError):
                        yield from topological(HostedScope.from_json(told).emits)

    def record_of(self, number: int) -> Record:
        """Return the record of a version."""
        return Record.from_json(read_version(self.versions, number), number, self.place)

    def is_new(self, record: Record) -> bool:
        """Tell whether the version of a record was never written."""
        begun = self.next_batch > 0
        return not begun or record.version not in dict(announced(self.versions))

    def write(
        self, record: Record, from_batch: int, hosted: Mapping[str, Mapping[int, HostedScope]]
    ) -> None:
        """Keep the record of a version, in one step."""
        told = {**record.to_json(), HOSTED: hosted_to_json(hosted)}
        may_stop("version.planned")
        write_version(self.versions, record.version, from_batch, told)
        may_stop("version.written")


def changed_columns(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Name the columns whose types differ from those that the state was made of.

    >>> changed_columns({"r": {"v": "double", "k": "int"}}, {"r": {"v": "int", "k": "int"}})
    ["column 'v' of 'r' was double and now is int"]
    >>> changed_columns({"r": {"v": "double"}}, {"r": {}})
    ["column 'v' of 'r' is gone"]
    """
    found = [(s, name, was) for s, own in before.items() for name, was in own.items() if s in now]
    return [
        f"column {name!r} of {source!r} "
        + (f"was {was} and now is {now[source][name]}" if name in now[source] else "is gone")
        for source, name, was in found
        if now[source].get(name) != was
    ]


def changed_settings(before: Record, wanted: Mapping[str, str]) -> list[str]:
    """Name the settings of a stream that differ from those it was started with."""
    return [
        f"the {name} was {getattr(before, name)} and now is {now}"
        for name, now in wanted.items()
        if getattr(before, name) != now
    ]


def refuse(where: object, changes: Sequence[str]) -> None:
    """Refuse a restart that differs from how the stream was started, and say in what."""
    if changes:
        raise QueryError(
            f"the checkpoint {where} is of another workload: {'; '.join(changes)}",
            hint="go back to what it was started with, or start anew with another directory",
        )


def differences(before: Sequence[Query], now: Sequence[Query]) -> list[str]:
    """Name what differs between two workloads, query by query.

    >>> from weft import Query, agg, tumbling
    >>> a, b = (Query("lows", source="r", time="ts", aggs={"lo": agg.min("t")},
    ...               windows={"20m": tumbling(size)}) for size in ("20 minutes", "30 minutes"))
    >>> differences([a], [b])
    ["window '20m' of query 'lows' was TUMBLE 20m and now is TUMBLE 30m"]
    >>> differences([a], [])
    ["query 'lows' is gone"]
    """
    had, have = {q.name: q for q in before}, {q.name: q for q in now}
    found = [f"query {name!r} is gone" for name in had if name not in have]
    found += [f"query {name!r} is new" for name in have if name not in had]
    for name, query in have.items():
        if name in had:
            found += _changes(had[name], query)
    return found


def _changes(before: Query, now: Query) -> Iterator[str]:
    of = f"of query {now.name!r}"
    yield from _changed_entries("window", of, dict(before.windows), dict(now.windows))
    yield from _changed_entries("aggregate", of, dict(before.aggs), dict(now.aggs))
    yield from _changed_entries("key", of, dict(before.keys), dict(now.keys))
    for word, attribute in (("source", "source"), ("event time", "time"), ("filter", "where")):
        was, is_ = getattr(before, attribute), getattr(now, attribute)
        if was != is_:
            yield f"the {word} {of} was {was or 'none'} and now is {is_ or 'none'}"
    # A plan has one delay for all queries that read the same events: the longest.
    if (now.watermark_us or 0) > (before.watermark_us or 0):
        was, is_ = format_us(before.watermark_us or 0), format_us(now.watermark_us or 0)
        yield f"the watermark {of} was {was} and now is {is_}"
    if before.window_columns != now.window_columns:
        yield f"the result columns {of} have other names"


def _changed_entries(
    word: str, of: str, before: Mapping[str, object], now: Mapping[str, object]
) -> Iterator[str]:
    yield from (f"{word} {name!r} {of} is gone" for name in before if name not in now)
    for name, value in now.items():
        if name not in before:
            yield f"{word} {name!r} {of} is new"
        elif before[name] != value:
            yield f"{word} {name!r} {of} was {before[name]} and now is {value}"
