"""Runs that were measured, remembered: what they did and took, to learn prices from."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.calibration.fit import Probe
from weft.errors import DataError

if TYPE_CHECKING:
    from weft.engines.measures import Measures

_MOST_RUNS = 2_000  # the last ones are kept
LEAST_RUNS = 10


def runs_file() -> Path:
    """Return where `weft run --stats` writes down what runs took.

    The environment variable WEFT_RUNS names another file.
    """
    given = os.environ.get("WEFT_RUNS")
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return Path(given) if given else home / "weft" / "runs.jsonl"


def remember(measures: Measures) -> None:
    """Write down what a run did and took; runs whose work nobody can count are left out."""
    if not measures.work:
        return
    place = runs_file()
    place.parent.mkdir(parents=True, exist_ok=True)
    work = [[engine, name, count] for (engine, name), count in measures.work.items()]
    told = {
        "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "engine": measures.engine,
        "ms": measures.seconds * 1e3,
        "work": work,
        "nodes": [asdict(node) for node in measures.nodes],
        "steps": [asdict(step) for step in measures.steps],
    }
    line = json.dumps(told)
    before = place.read_text().splitlines() if place.is_file() else []
    place.write_text("\n".join([*before[1 - _MOST_RUNS :], line]) + "\n")


def past_runs() -> list[dict[str, Any]]:
    """Return all runs that were written down, the oldest first, as JSON values."""
    place = runs_file()
    lines = place.read_text().splitlines() if place.is_file() else []
    return [json.loads(line) for line in lines]


def remembered(engine: str) -> tuple[Probe, ...]:
    """Read the runs of an engine as probes; too few are refused."""
    runs = [run for run in past_runs() if run["engine"] == engine]
    if len(runs) < LEAST_RUNS:
        raise DataError(
            f"{len(runs)} runs on {engine} were measured, and prices need {LEAST_RUNS} at least",
            hint=f"run more with `weft run --engine {engine} --stats`",
        )
    return tuple(
        Probe(f"run {at}", run["ms"], {(e, name): count for e, name, count in run["work"]})
        for at, run in enumerate(runs)
    )
