"""A session as bytes: a version, a checksum, a manifest in JSON, the chunks of all operators."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa

from weft.engines.failpoints import may_stop
from weft.errors import DataError
from weft.plan import Plan
from weft.query import Query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.query import AnyQuery, Workload

MAGIC = b"weft session"
VERSION = 5
_SIZE = 8
_DIGEST = 32
_CODEC: Literal["zstd"] = "zstd"


class StreamState(NamedTuple):
    """All there is to know of one source of a session."""

    source: str
    plan: Plan
    delay_us: int
    schema: pa.Schema | None
    watermark_us: int | None
    timeless: int
    chunks: list[dict[str, bytes]]  # one mapping per operator
    latest_us: dict[str, int]


class JoinState(NamedTuple):
    """All there is to know of one join of a session."""

    plan: Plan
    chunks: dict[str, bytes]


class SessionState(NamedTuple):
    """All there is to know of a session."""

    streams: dict[str, StreamState]
    suspended: tuple[Plan, ...]  # of each query that is suspended, by itself
    delay_us: int
    one: bool  # whether results come as a table, not by query
    finished: bool
    joins: tuple[JoinState, ...] = ()
    technique: str | None = None  # of all queries, also of those that come later


def dump_session(session: SessionState) -> bytes:
    """Write a session."""
    blobs: list[bytes] = []

    def kept(chunks: Mapping[str, bytes]) -> list[tuple[str, int]]:
        places = [(name, len(blobs) + at) for at, name in enumerate(chunks)]
        blobs.extend(chunks.values())
        return places

    told = []
    for state in session.streams.values():
        places = [kept(chunks) for chunks in state.chunks]
        told.append(
            {
                "source": state.source,
                **_plan_text(state.plan),
                "delay_us": state.delay_us,
                "schema": _schema_text(state.schema),
                "watermark_us": state.watermark_us,
                "timeless": state.timeless,
                "operators": places,
                "latest_us": state.latest_us,
            }
        )
        may_stop("snapshot.begun")
    joins = [{**_plan_text(join.plan), "chunks": kept(join.chunks)} for join in session.joins]
    manifest = {
        "streams": told,
        "joins": joins,
        "suspended": [json.dumps(plan.to_json()) for plan in session.suspended],
        "delay_us": session.delay_us,
        "technique": session.technique,
        "one": session.one,
        "finished": session.finished,
        "sizes": [*map(len, blobs)],
    }
    head = json.dumps(manifest).encode()
    body = b"".join([len(head).to_bytes(_SIZE, "little"), head, *blobs])
    # The many small chunks of slices have much in common.
    packed: bytes = pa.compress(body, codec=_CODEC, asbytes=True)
    numbers = VERSION.to_bytes(_SIZE, "little") + len(body).to_bytes(_SIZE, "little")
    return b"".join([MAGIC, numbers, hashlib.sha256(packed).digest(), packed])


def load_session(snapshot: bytes) -> SessionState:
    """Read a session back, or say why these bytes are none."""
    body = _body(snapshot)
    at = _SIZE + int.from_bytes(body[:_SIZE], "little")
    manifest: dict[str, Any] = json.loads(body[_SIZE:at])
    blobs = []
    for length in manifest["sizes"]:
        blobs.append(body[at : at + length])
        at += length
    streams = {told["source"]: _state(told, blobs) for told in manifest["streams"]}
    suspended = tuple(Plan.from_json(text) for text in manifest["suspended"])
    joins = tuple(
        JoinState(_plan(told), {name: blobs[at] for name, at in told["chunks"]})
        for told in manifest["joins"]
    )
    return SessionState(
        streams,
        suspended,
        manifest["delay_us"],
        manifest["one"],
        manifest["finished"],
        joins,
        manifest.get("technique"),
    )


def _body(snapshot: bytes) -> bytes:
    """Return what a snapshot holds, if it is one and whole."""
    head = len(MAGIC) + 2 * _SIZE + _DIGEST
    if snapshot[: len(MAGIC)] != MAGIC or len(snapshot) < head:
        raise DataError(
            "these bytes are no snapshot of a session", hint="pass what session.snapshot() gave"
        )
    version, size = (
        int.from_bytes(snapshot[at : at + _SIZE], "little")
        for at in (len(MAGIC), len(MAGIC) + _SIZE)
    )
    if version != VERSION:
        raise DataError(
            f"the snapshot is of version {version}, and this weft reads version {VERSION}",
            hint="restore it with the version of weft that wrote it",
        )
    packed = snapshot[head:]
    damaged = DataError(
        "the snapshot is damaged or cut short", hint="copy the whole of it, as it was written"
    )
    if hashlib.sha256(packed).digest() != snapshot[head - _DIGEST : head]:
        raise damaged
    try:
        body: bytes = pa.decompress(packed, decompressed_size=size, codec=_CODEC, asbytes=True)
    except (OSError, MemoryError, OverflowError):  # the size is not in the checksum
        raise damaged from None
    return body


def check_plans(
    session: SessionState, expected: Mapping[str, Plan], joins: Sequence[Plan] = ()
) -> None:
    """Refuse a session that does not run these plans, one per source and one per join."""
    own, others = ([plan.fingerprint for plan in plans] for plans in (_joins(session), joins))
    if own != others:
        raise _differs("the snapshot is of other joins")
    for source in {**session.streams, **expected}:
        state, plan = session.streams.get(source), expected.get(source)
        if state is None or plan is None:
            has = "has no" if state is None else "has a"
            raise _differs(f"the snapshot {has} source {source!r}")
        time = next((scan.time for scan in state.plan.scans if scan.time), None)
        known = state.plan.fingerprint
        wanted = (plan if time is None else plan.with_times({source: time})).fingerprint
        if known != wanted:
            raise _differs(f"the snapshot is of plan {known}, not of plan {wanted}")


def check_queries(session: SessionState, expected: Workload) -> None:
    """Refuse a session that does not answer these queries, however they are planned."""
    plans = (*(state.plan for state in session.streams.values()), *session.suspended)
    known: dict[str, AnyQuery] = {query.name: query for plan in plans for query in plan.queries}
    known |= {query.name: query for plan in _joins(session) for query in plan.joins}
    wanted = {query.name: query for query in expected.queries}
    differing = sorted(
        name
        for name in known.keys() | wanted.keys()
        if name not in known or name not in wanted or not _alike(known[name], wanted[name])
    )
    if differing:
        raise _differs(
            f"the snapshot is of another workload, which differs in {', '.join(differing)}"
        )


def _differs(how: str) -> DataError:
    return DataError(how, hint="restore it without a check, or start a new session of this one")


def _joins(session: SessionState) -> list[Plan]:
    return [join.plan for join in session.joins]


def _alike(known: AnyQuery, wanted: AnyQuery) -> bool:
    """Compare what queries ask; a time column that was looked up since is no difference."""
    if not isinstance(wanted, Query) or not isinstance(known, Query):
        return known == wanted
    asked = [
        (q.source, q.keys, q.where, q.windows, q.aggs, q.window_columns) for q in (known, wanted)
    ]
    return asked[0] == asked[1] and wanted.time in (None, known.time)


def _plan_text(plan: Plan) -> dict[str, str]:
    return {"plan": json.dumps(plan.to_json()), "fingerprint": plan.fingerprint}


def _plan(told: dict[str, Any]) -> Plan:
    """Read a plan back, if it means here what it meant when it was written."""
    plan = Plan.from_json(told["plan"])
    if plan.fingerprint != told["fingerprint"]:
        raise DataError(
            f"the snapshot is of plan {told['fingerprint']}, which here reads as "
            f"{plan.fingerprint}: its windows or aggregates are defined otherwise",
            hint="define custom aggregates and windows as they were when it was written",
        )
    return plan


def _state(told: dict[str, Any], blobs: list[bytes]) -> StreamState:
    chunks = [{name: blobs[at] for name, at in places} for places in told["operators"]]
    return StreamState(
        told["source"],
        _plan(told),
        told["delay_us"],
        _read_schema(told["schema"]),
        told["watermark_us"],
        told["timeless"],
        chunks,
        told["latest_us"],
    )


def _schema_text(schema: pa.Schema | None) -> str | None:
    if schema is None:
        return None
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _read_schema(text: str | None) -> pa.Schema | None:
    return None if text is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
