"""Key sets in a session: slices of the finest keys that the others regroup, against all apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

import weft
from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.mixed.levels import by_level, known, readings
from weft.bench.suite.mixed.local import same_totals
from weft.window import hopping, tumbling

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.frame import Runner
    from weft.planners.lattice import KeySets
    from weft.query import Workload

EVENTS, QUICK_EVENTS = 3_000_000, 40_000
_PUSHES = 30
_MINUTE_US = 60_000_000
_LASTS_US = _PUSHES * _MINUTE_US
_WINDOWS = {"1m": tumbling("1 minute"), "10m": hopping("10 minutes", "5 minutes")}

Answer = dict[str, pa.Table]


class Inputs(NamedTuple):
    """Readings of a minute for each push, and the same question by four key sets."""

    table: pa.Table
    workload: Workload


def _inputs(events: int) -> Inputs:
    return Inputs(readings(events, _LASTS_US), by_level(_WINDOWS))


def _start(key_sets: KeySets | None) -> Callable[[Inputs], Runner]:
    def start(inputs: Inputs) -> Runner:
        table, workload = inputs
        plan = weft.optimize(
            workload,
            engine="local",
            statistics=known(table.num_rows, _LASTS_US),
            session=True,
            micro_batch="1 minute",
            key_sets=key_sets,
        )

        def runner() -> Answer:
            session = weft.LocalSession(plan, watermark=0)
            size = table.num_rows // _PUSHES
            found = [session.push("readings", table.slice(i * size, size)) for i in range(_PUSHES)]
            found.append(session.finish())
            return {q.name: pa.concat_tables([f[q.name] for f in found]) for q in plan.queries}

        return runner

    return start


ENTRIES: tuple[Entry, ...] = (
    Race(
        name="local/session_key_sets",
        question="What do four key sets cost in a session, when slices of the finest serve all?",
        inputs=_inputs,
        expected=None,
        contenders={"apart": Contender(_start("apart")), "weft": Contender(_start(None))},
        baseline="apart",
        full=(Case(f"{EVENTS:,} events", {"events": EVENTS}, EVENTS),),
        quick=(Case(f"{QUICK_EVENTS:,} events", {"events": QUICK_EVENTS}, QUICK_EVENTS),),
        bars=(Bar("weft", "apart", 1.3),),
        same=same_totals,
        rounds=7,
        item="event",
    ),
)
