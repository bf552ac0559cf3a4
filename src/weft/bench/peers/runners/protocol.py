"""What a runner is told and what it tells: files of jobs in, a line of JSON for each out.

A job names parquet files, says in plain words what is asked of them, and where the rows are to go.
What is timed is all of it, from the files to the rows in files, by the run: the first, then warm
ones. A peer that cannot do a job raises `CannotDo` with the reason.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Job = dict[str, Any]
Query = dict[str, Any]
Window = dict[str, Any]
Agg = dict[str, str]
# What is asked of every trailing range of payments: a column, a function, its argument.
TRAILING = (("lo", "min"), ("total", "sum"), ("mean", "avg"), ("n", "count"))
HOUR_US = 3_600_000_000
MINUTE_US = 60_000_000
SECOND_US = 1_000_000


# Begins a line that is for the driver; libraries print others.
ANSWER = "answer: "


class CannotDo(Exception):
    """The peer has no way to say what is asked, or none that ends."""


def copies(window: Window) -> int:
    """Return how many instances of a window hold an event.

    >>> copies({"kind": "hop", "range_us": 600, "slide_us": 10})
    60
    """
    return 1 if window["kind"] == "session" else int(window["range_us"] // window["slide_us"])


def instance_columns(query: Query) -> list[str]:
    """Name the columns that tell instances apart; sessions also by their end.

    >>> instance_columns({"windows": {"s": {"kind": "session"}}})
    ['window', 'window_start', 'window_end']
    """
    names = ["window", "window_start"]
    sessions = any(window["kind"] == "session" for window in query["windows"].values())
    return [*names, "window_end"] if sessions else names


def serve(
    start: Callable[[Job], Callable[[], float | None]],
    versions: Callable[[], str],
    held: Callable[[Job], dict[str, int]] | None = None,
) -> None:
    """Run the jobs whose files are named line by line: each once, then warm until its time is over.

    What is timed is the call, unless it tells its own seconds. Then tell what is held between
    batches of a stream, where it is asked and can be told.
    """
    for line in sys.stdin:
        job: Job = json.loads(Path(line.strip()).read_text(encoding="utf-8"))
        told: dict[str, Any]
        try:
            told = _timed(job, start(job))
            if held is not None and job["state"]:
                told["state"] = held(job)
        except CannotDo as reason:
            told = {"cannot": str(reason)}
        told["version"] = versions()
        sys.stdout.write(f"\n{ANSWER}{json.dumps(told)}\n")
        sys.stdout.flush()


def _timed(job: Job, run: Callable[[], float | None]) -> dict[str, Any]:
    output = Path(job["output"])
    seconds: list[float] = []
    _forget_peaks()
    before, own_before = _machine_ticks(), _own_ticks()
    while len(seconds) < 2 or (len(seconds) <= job["rounds"] and sum(seconds[1:]) < job["seconds"]):
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        gc.collect()
        begin = perf_counter()
        own = run()
        seconds.append(perf_counter() - begin if own is None else own)
    busy, all_ = (b - a for a, b in zip(before, _machine_ticks(), strict=True))
    others = max(0, busy - (_own_ticks() - own_before)) / max(1, all_)
    return {"seconds": seconds, "peak_bytes": _peak_bytes(), "others": others}


def _machine_ticks() -> tuple[int, int]:
    """Return what the processors have done, and what they could have."""
    line = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0]
    ticks = [int(word) for word in line.split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def _family() -> list[Path]:
    """Return this process and those below it, by their folders: Java runs in one of them."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(_fields(folder)[1])
        except OSError:
            continue  # it has ended meanwhile
    own = os.getpid()
    return [Path("/proc", str(pid)) for pid in parents if own in _line(pid, parents)]


def _fields(folder: Path) -> list[str]:
    """Return what is known of a process: its state, its parent and much more."""
    return (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _line(pid: int, parents: dict[int, int]) -> list[int]:
    found = [pid]
    while found[-1] in parents:
        found.append(parents[found[-1]])
    return found


def _own_ticks() -> int:
    """Add up the processor time of this process and those below it, ended ones included."""
    return sum(sum(map(int, _fields(folder)[11:15])) for folder in _family())


def _forget_peaks() -> None:
    """Let peaks begin anew: a process that has done other jobs before has the memory it kept."""
    for folder in _family():
        (folder / "clear_refs").write_text("5", encoding="utf-8")


def _peak_bytes() -> int:
    """Add up the peaks of this process and those below it."""
    total = 0
    for folder in _family():
        for line in (folder / "status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM"):
                total += int(line.split()[1]) * 1024
    return total
