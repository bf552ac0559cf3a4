"""Random workloads on several engines until they differ; the difference is made small, and shown.

A failure is a `Case` that engines answer differently, or that one of them answers with an error
that is none of weft's. It is cut down, part by part, as long as it still fails, and written as a
script that fails in the same way.
"""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import InternalError, UnsupportedError, WeftError
from weft.query import Query, Workload
from weft.running import STREAM
from weft.testing.magnitudes import SOURCE, Case, random_case
from weft.verification import verify
from weft.window import CountingWindow, PunctuatedWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Check = Callable[[Case], str | None]

MOST_SHRINK_S = 120.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A case, as small as it got, on which engines differ, and how."""

    case: Case
    told: str
    engines: tuple[str, ...]


@dataclass(slots=True)
class Soak:
    """How far a run has come."""

    cases: int = 0
    events: int = 0
    refused: int = 0  # by an engine that says that it cannot run them
    failure: Failure | None = None


class Refused(Exception):  # no error: an answer of its own
    """An engine says in so many words that it cannot run a case, or all say that it is wrong."""


def difference(case: Case, engines: Sequence[str]) -> str | None:
    """Say how engines differ on a case; None if they agree."""
    try:
        report = verify(case.workload, {SOURCE: case.events}, engines)
    except UnsupportedError as error:
        raise Refused from error
    except WeftError as error:
        if not isinstance(error, InternalError) and _refuses(case, engines[0]):
            raise Refused from error
        return str(error)
    except Exception as error:  # noqa: BLE001  # whatever comes through is what is looked for
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return None if report.ok else str(report.differences[0])


def _refuses(case: Case, engine: str) -> bool:
    try:
        verify(case.workload, {SOURCE: case.events}, (engine,))
    except WeftError:
        return True
    return False


def case_for(engines: Sequence[str], seed: int) -> Case:
    """Return the case of a number, without what an engine is known to leave out.

    A stream of Spark's drops events before 1970: its watermark begins there. Events of one instant
    have no order in a DataFrame, so there is one of each where windows count or look at them.
    """
    case = random_case(seed)
    if STREAM in engines:
        since = pc.greater_equal(case.events["ts"].cast(pa.int64()), pa.scalar(0, pa.int64()))
        case = replace(case, events=case.events.filter(since))
    if not {"spark", STREAM} & {*engines} or not _goes_by_order(case.workload):
        return case
    instants = case.events["ts"].combine_chunks().dictionary_encode().indices.fill_null(-1)
    _, first = np.unique(instants.to_numpy(), return_index=True)
    return replace(case, events=case.events.take(np.sort(first)))


def _goes_by_order(workload: Workload) -> bool:
    windows = [w for query in workload if isinstance(query, Query) for _, w in query.windows]
    return any(isinstance(window, CountingWindow | PunctuatedWindow) for window in windows)


def soak(
    engines: Sequence[str],
    seconds: float,
    seed: int,
    check: Check | None = None,
) -> Soak:
    """Try case after case, from `seed` on, until time is up or one fails."""
    asked = check or (lambda case: difference(case, engines))
    state, until = Soak(), time.monotonic() + seconds
    while time.monotonic() < until or not state.cases:
        case = case_for(engines, seed + state.cases)
        state.cases += 1
        state.events += case.events.num_rows
        try:
            told = asked(case)
        except Refused:
            state.refused += 1
            continue
        if told is not None:
            small = shrunk(case, asked)
            state.failure = Failure(small, asked(small) or told, tuple(engines))
            break
    return state


def shrunk(case: Case, check: Check, seconds: float = MOST_SHRINK_S) -> Case:
    """Cut a case that fails down to one that still fails, and of which no part can go."""
    until = time.monotonic() + seconds
    smaller = True
    while smaller and time.monotonic() < until:
        smaller = False
        for candidate in _smaller(case):
            if time.monotonic() >= until:
                break
            if _fails(candidate, check):
                case, smaller = candidate, True
                break
    return case


def _fails(case: Case, check: Check) -> bool:
    try:
        return check(case) is not None
    except Refused:
        return False


def _smaller(case: Case) -> Iterator[Case]:
    """Yield cases with a part less, the largest parts first."""
    for queries in _without_one(case.workload.queries):
        yield replace(case, workload=Workload(queries))
    rows = case.events.num_rows
    size = rows // 2
    while size:
        for at in range(0, rows, size):
            kept = [case.events.slice(0, at), case.events.slice(at + size)]
            yield replace(case, events=pa.concat_tables(kept))
        size //= 2
    for at, query in enumerate(case.workload.queries):
        if isinstance(query, Query):
            for less in _simpler(query):
                own = [*case.workload.queries]
                own[at] = less
                yield replace(case, workload=Workload(own))


def _simpler(query: Query) -> Iterator[Query]:
    for windows in _without_one(query.windows):
        yield _asked(query, windows=dict(windows))
    for aggs in _without_one(query.aggs):
        yield _asked(query, aggs=dict(aggs))
    for at in range(len(query.keys)):
        yield _asked(query, keys=dict([*query.keys[:at], *query.keys[at + 1 :]]))
    if query.where is not None:
        yield _asked(query, where=None)


def _without_one(parts: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Yield all but one, of two and more."""
    if len(parts) > 1:
        for at in range(len(parts)):
            yield [*parts[:at], *parts[at + 1 :]]


def _settings(query: Query) -> dict[str, Any]:
    return {
        "source": query.source,
        "time": query.time,
        "keys": dict(query.keys),
        "where": query.where,
        "windows": dict(query.windows),
        "aggs": dict(query.aggs),
    }


def _asked(query: Query, **changed: Any) -> Query:
    return Query(query.name, **{**_settings(query), **changed})


def script_of(failure: Failure) -> str:
    """Write a script that runs the case, prints the difference, and ends with status 1 if it does.

    The events are in it as Arrow IPC, so that every bit of them is; the columns that the queries
    do not read are left out.
    """
    queries = [q for q in failure.case.workload.queries if isinstance(q, Query)]
    texts = [f"    weft.Query({q.name!r}, **{_settings(q)!r})," for q in queries]
    events = failure.case.events
    lines = [
        f"# {failure.told.splitlines()[0]!a}",
        f"# Found by: weft soak --seed {failure.case.seed} --engines {','.join(failure.engines)}",
        f"# {events.num_rows} events; print(events.to_pandas()) shows them.",
        "import base64",
        "import sys",
        "",
        "import pyarrow as pa",
        "",
        "import weft",
        "from weft.aggregates import AggregateCall  # noqa: F401",
        "from weft.window import *  # noqa: F403",
        "",
        "workload = weft.Workload([",
        *texts,
        "])",
        f"arrow = base64.b64decode({base64.b64encode(_ipc(events)).decode()!r})",
        "events = pa.ipc.open_stream(arrow).read_all()",
        'if __name__ == "__main__":',
        f"    report = weft.verify(workload, {{{SOURCE!r}: events}}, {failure.engines!r})",
        "    for one in report.differences:",
        "        print(one)",
        "    sys.exit(not report.ok)",
        "",
    ]
    return "\n".join(lines)


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()
