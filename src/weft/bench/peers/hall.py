"""The processes of contenders: who waits for jobs, and who is asked one and leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from weft.bench.peers.environments import interpreter
from weft.bench.peers.runners.protocol import ANSWER

if TYPE_CHECKING:
    from types import TracebackType

    from weft.bench.peers.environments import Peer

_HERE = Path(__file__).resolve().parent
_SOURCE = _HERE.parents[2]
_PATIENCE_S = 400
_THREADS = dict.fromkeys(("POLARS_MAX_THREADS", "PATHWAY_THREADS", "NUMBA_NUM_THREADS"), "2")


@dataclass
class Hall:
    """Asks contenders for answers. Those of a cluster stay for the next job: Java starts slowly."""

    folder: Path
    _waiting: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def __enter__(self) -> Hall:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in list(self._waiting):
            self._dismiss(name)

    def ask(self, peer: Peer, job: Path) -> dict[str, Any]:
        """Hand a job to a contender, and return what it tells: figures, or how it ended."""
        process = self._waiting.get(peer.name) or self._start(peer)
        late = Timer(_PATIENCE_S, _end, [process])
        late.start()
        try:
            found = _answer(process, job)
        finally:
            over = not late.is_alive()
            late.cancel()
        if found is None or not peer.cluster:
            self._dismiss(peer.name)
        if found is not None:
            return found
        if over:
            return {"cannot": f"not done after {_PATIENCE_S} s"}
        said = self._log(peer.name).read_text(encoding="utf-8", errors="replace").splitlines()
        ends = " ".join([line for line in said if line.strip()][-3:])[-600:]
        return {"wrong": f"ended with {process.returncode}: {ends}"}

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _start(self, peer: Peer) -> subprocess.Popen[str]:
        path = [str(_HERE), *([] if peer.packages else [str(_SOURCE)])]
        variables = {**os.environ, **_THREADS, "PYTHONPATH": os.pathsep.join(path)}
        variables["WEFT_RUNS"] = os.devnull
        with self._log(peer.name).open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [str(interpreter(peer)), "-m", f"runners.{peer.runner}"],
                env=variables,
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._waiting[peer.name] = process
        return process

    def _dismiss(self, name: str) -> None:
        process = self._waiting.pop(name)
        with suppress(BrokenPipeError):
            process.communicate(timeout=30)
        _end(process)


def _answer(process: subprocess.Popen[str], job: Path) -> dict[str, Any] | None:
    """Return what a contender tells of a job; nothing when it ends before."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{job}\n")
        process.stdin.flush()
    except BrokenPipeError:
        return None
    for line in process.stdout:
        if line.startswith(ANSWER):
            found: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
            return found
    process.wait()
    return None


def _end(process: subprocess.Popen[str]) -> None:
    """End a contender and what it started, which has its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
