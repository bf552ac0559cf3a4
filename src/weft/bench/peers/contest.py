"""One workload: its events are written, contenders run one by one, their answers are compared."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from weft.bench.peers.answers import difference
from weft.bench.peers.environments import PEERS, Peer, Unavailable
from weft.bench.peers.jobs import copies_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from weft.bench.peers.hall import Hall
    from weft.bench.peers.workloads import Workload

_REFERENCE = "weft"
_LEAST_EVENTS = 1_000


@dataclass(frozen=True)
class Effort:
    """How long a contender is timed: until its warm rounds or their seconds are over."""

    quick: bool = False
    rounds: int = 5
    seconds: float = 4.0


@dataclass(frozen=True)
class Cell:
    """What one contender did with one workload: its figures, or why it has none."""

    workload: str
    contender: str
    events: int
    version: str = ""
    seconds: tuple[float, ...] = ()  # the first run, then the warm ones
    peak_bytes: int = 0
    others: float = 0.0  # the share of the machine that others had meanwhile
    state: Mapping[str, int] = field(default_factory=dict)  # rows and bytes of a stream's state
    reason: str = ""  # why it could not
    wrong: str = ""  # where its answer differs, or how it ended

    @property
    def warm(self) -> tuple[float, ...]:
        """The seconds of the warm runs."""
        return self.seconds[1:]


@dataclass
class Contest:
    """One workload: its files, the answers of weft, and the contenders that are asked."""

    workload: Workload
    folder: Path
    effort: Effort
    hall: Hall

    def cells(self, asked: Iterable[str]) -> Iterator[Cell]:
        """Run the contenders, weft first; yield what each did."""
        for name in self.workload.contenders:
            if name in asked:
                yield self._cell(PEERS[name])
        shutil.rmtree(self.folder, ignore_errors=True)

    def _given(self, peer: Peer) -> int:
        """Return how many events a peer is given; a slow one is given fewer."""
        here, clusters = self.workload.sizes(quick=self.effort.quick)
        events = clusters if peer.cluster else here
        if peer.most_copies is None:
            return events
        fewer = peer.most_copies // copies_of(self.workload.job)
        return min(events, max(fewer, _LEAST_EVENTS))

    def _cell(self, peer: Peer) -> Cell:
        events = self._given(peer)
        try:
            told = self._run(peer, events, self.effort)
        except Unavailable as reason:
            return Cell(self.workload.name, peer.name, events, reason=f"no environment: {reason}")
        wrong = told.pop("wrong", "")
        if not wrong and "cannot" not in told:
            wrong = difference(self.workload.job, self._answers(events), self._output(peer, events))
        return Cell(
            self.workload.name,
            peer.name,
            events,
            told.get("version", ""),
            tuple(told.get("seconds", ())),
            told.get("peak_bytes", 0),
            told.get("others", 0.0),
            told.get("state", {}),
            told.get("cannot", ""),
            wrong,
        )

    def _answers(self, events: int) -> Path:
        """Return weft's answers to so many events."""
        reference = PEERS[_REFERENCE]
        output = self._output(reference, events)
        if not output.is_dir():
            told = self._run(reference, events, Effort(quick=True, rounds=1, seconds=0))
            if told.get("wrong"):
                raise RuntimeError(f"{self.workload.name}: weft has no answer: {told['wrong']}")
        return output

    def _output(self, peer: Peer, events: int) -> Path:
        return self.folder / f"{peer.name}-{events}"

    def _tables(self, events: int) -> dict[str, str]:
        """Write the tables of so many events, unless they are there."""
        folder = self.folder / f"tables-{events}"
        if not folder.is_dir():
            folder.mkdir(parents=True)
            for name, table in self.workload.tables(events).items():
                kept = table.select(self.workload.job["columns"][name])
                pq.write_table(kept, folder / f"{name}.parquet")
        return {path.stem: str(path) for path in sorted(folder.iterdir())}

    def _run(self, peer: Peer, events: int, effort: Effort) -> dict[str, Any]:
        job = {
            **self.workload.job,
            "tables": self._tables(events),
            "output": str(self._output(peer, events)),
            "rounds": effort.rounds,
            "seconds": effort.seconds,
            "state": self.workload.state and not effort.quick,
        }
        told = self.folder / "job.json"
        told.write_text(json.dumps(job), encoding="utf-8")
        return self.hall.ask(peer, told)
