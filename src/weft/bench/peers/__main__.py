"""`python -m weft.bench.peers`: run weft and its peers, and write the page.

What a run measured is kept in `docs/data/peers.json`, cell by cell, so that a run of some workloads
or some contenders replaces theirs, and the page has the others as they were.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.bench.frame import Spread
from weft.bench.peers.contest import Cell, Contest, Effort
from weft.bench.peers.environments import PEERS
from weft.bench.peers.hall import Hall
from weft.bench.peers.page import page
from weft.bench.peers.workloads import WORKLOADS
from weft.bench.report import machine

if TYPE_CHECKING:
    from collections.abc import Sequence

_DOCS = Path(__file__).resolve().parents[4] / "docs"
# A check of seconds leaves out who needs Java, or an environment of its own.
_QUICK = ("weft", "duckdb", "polars", "pandas")


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("weft.bench.peers", description=__doc__)
    parser.add_argument("workloads", nargs="*", help="names or patterns; all without")
    parser.add_argument("--peers", default="*", help="names or patterns, with commas between")
    parser.add_argument("--quick", action="store_true", help="small inputs, and nothing is written")
    parser.add_argument("--docs", type=Path, default=_DOCS, help="the folder of the page")
    return parser.parse_args(words)


def _chosen(known: Sequence[str], patterns: Sequence[str]) -> list[str]:
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise SystemExit(f"nothing is named {pattern!r}\nhint: there are {', '.join(known)}")
    return [name for name in known if any(fnmatchcase(name, p) for p in patterns)]


def _say(cell: Cell) -> None:
    told = cell.wrong or cell.reason
    if not told:
        told = f"{cell.seconds[0]:.2f} s, then {Spread.of(cell.warm)}; others {cell.others:.0%}"
    sys.stdout.write(f"{cell.workload:16} {cell.contender:13} {cell.events:>9,}  {told}\n")
    sys.stdout.flush()


def _kept(record: Path) -> dict[tuple[str, str], Cell]:
    if not record.is_file():
        return {}
    told = json.loads(record.read_text(encoding="utf-8"))
    cells = [Cell(**{**cell, "seconds": tuple(cell["seconds"])}) for cell in told["cells"]]
    return {(cell.workload, cell.contender): cell for cell in cells}


def _host(cells: Sequence[Cell]) -> dict[str, Any]:
    found = machine()
    versions = dict.fromkeys(cell.version for cell in cells if cell.version)
    memory = found["memory_bytes"]
    return {
        "Measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{found['cores']} cores, {found['processor']}, {int(memory or 0) >> 30} GiB",
        "versions": ", ".join(versions),
    }


def _write(docs: Path, fresh: Sequence[Cell]) -> None:
    """Put cells in the place of those that were kept, and write the page anew."""
    record = docs / "data" / "peers.json"
    cells = _kept(record) | {(cell.workload, cell.contender): cell for cell in fresh}
    places = {name: at for at, name in enumerate(w.name for w in WORKLOADS)}
    orders = {name: at for at, name in enumerate(PEERS)}
    ordered = sorted(cells.values(), key=lambda c: (places[c.workload], orders[c.contender]))
    record.parent.mkdir(parents=True, exist_ok=True)
    told = {"host": _host(ordered), "cells": [asdict(cell) for cell in ordered]}
    record.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    (docs / "peers.md").write_text(page(ordered, _host(ordered)), encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked; return 1 when an answer differs or a contender ends in an error."""
    asked = _arguments(words)
    patterns = asked.peers.split(",")
    peers = _chosen(list(PEERS), patterns)
    if asked.quick and patterns == ["*"]:
        peers = list(_QUICK)
    names = _chosen([w.name for w in WORKLOADS], asked.workloads or ["*"])
    effort = Effort(quick=True, rounds=1, seconds=0) if asked.quick else Effort()
    failed = False
    with tempfile.TemporaryDirectory(prefix="weft-peers-") as folder, Hall(Path(folder)) as hall:
        for workload in (w for w in WORKLOADS if w.name in names):
            for cell in Contest(workload, Path(folder, workload.name), effort, hall).cells(peers):
                _say(cell)
                failed |= bool(cell.wrong)
                if not asked.quick:
                    _write(asked.docs, [cell])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
