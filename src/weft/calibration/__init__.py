"""Coefficients of the cost model, measured: run probe plans on an engine and fit what they cost.

A plan's expected time is linear in the coefficients, so the work of a probe is a row of counts, its
running time the right-hand side, and the coefficients the least-squares solution, with bounds.
Spark's two strategies are fitted together: both pay for what Catalyst does.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING

from weft.calibration.batch import EVENTS as BATCH_EVENTS
from weft.calibration.batch import batch_probes
from weft.calibration.fit import Calibration, Probe, fit
from weft.calibration.past_runs import remembered
from weft.calibration.random_plans import workload_probes
from weft.calibration.stream import EVENTS as STREAM_EVENTS
from weft.calibration.stream import stream_probes, stream_workload_probes
from weft.cost.prices import COLUMNAR_PRICES, NATIVE_PRICES, user_coefficients
from weft.cost.streams import STREAM, STREAM_COLUMNAR
from weft.errors import DataError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weft.calibration.clocks import Clock

EVENTS = {**BATCH_EVENTS, STREAM: STREAM_EVENTS}
_FILES = {
    "spark": (NATIVE_PRICES, COLUMNAR_PRICES),
    STREAM: (STREAM, STREAM_COLUMNAR),
}
_WITH_WORKLOADS = ("spark", STREAM, "local")

__all__ = ["EVENTS", "Calibration", "Probe", "calibrate", "engines_of", "fit", "learned", "save"]


def calibrate(
    engine: str,
    events: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
    clock: Clock = "wall",
    workloads: int = 0,
) -> Calibration:
    """Run the probes of an engine, and plans of random workloads, and fit its coefficients."""
    if engine not in EVENTS:
        raise UnsupportedError(
            f"there is nothing to calibrate on {engine!r}", hint=f"use one of {', '.join(EVENTS)}"
        )
    if workloads and engine not in _WITH_WORKLOADS:
        raise UnsupportedError(
            f"random workloads are not run to calibrate {engine!r}",
            hint=f"leave them out, or calibrate {', '.join(_WITH_WORKLOADS)}",
        )
    number = events or EVENTS[engine]
    words = f"weft calibrate --engine {engine}"
    made = (
        stream_probes(number, progress)
        if engine == STREAM
        else batch_probes(engine, number, progress, clock)
    )
    if workloads:
        words += f" --workloads {workloads}"
        random = (
            stream_workload_probes(workloads, number, progress)
            if engine == STREAM
            else workload_probes(engine, workloads, number, progress, clock)
        )
        made = chain(made, random)
    return fit(engines_of(engine), tuple(made), words)


def learned(engine: str) -> Calibration:
    """Fit the prices of an engine to runs that were measured; those in use decide between them."""
    return fit(
        engines_of(engine), remembered(engine), f"weft calibrate --engine {engine} --from-runs"
    )


def engines_of(engine: str) -> tuple[str, ...]:
    """List the coefficient files that are fitted under the name of an engine.

    >>> engines_of("local"), engines_of("spark")
    (('local',), ('spark', 'spark-columnar'))
    """
    return _FILES.get(engine, (engine,))


def save(calibration: Calibration) -> tuple[Path, ...]:
    """Keep the coefficients for this user; planning uses them from now on.

    What was measured while other work ran is refused: it would price that work.
    """
    if calibration.is_busy:
        raise DataError(
            f"repeated probes differ by {calibration.spread:.0%} in the median: "
            "something else keeps this host busy",
            hint="calibrate again when it is calm",
        )
    places = []
    for coefficients in calibration.coefficients:
        place = user_coefficients(coefficients.engine)
        place.parent.mkdir(parents=True, exist_ok=True)
        own = {name: value for name, value in asdict(coefficients).items() if value}
        place.write_text(json.dumps(own, indent=2) + "\n")
        places.append(place)
    return tuple(places)
