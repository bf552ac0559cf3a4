"""Random workloads are played back as streams, to learn what streams cost."""

from __future__ import annotations

import pytest

from weft.calibration.stream import MICRO_BATCHES, stream_workload_probes
from weft.cost.streams import STREAM, STREAM_COLUMNAR

pytestmark = pytest.mark.spark


def test_plans_of_random_workloads_are_probes_of_streams() -> None:
    seen: list[str] = []
    probes = stream_workload_probes(1, 2_000, seen.append)
    one = next(probes)
    probes.close()
    assert len(seen) == 1
    assert one.name in seen[0].replace(" of random workload", "")
    assert one.ms > 0
    assert one.spread is None, "the first of its runs met code that was new"
    (engine,) = {engine for engine, _ in one.work}
    assert engine in (STREAM, STREAM_COLUMNAR)
    assert one.work[engine, "turn"] % MICRO_BATCHES == 0
    # Every event of every micro-batch is read, by each of the windows or once for all.
    assert one.work[engine, "scan_event"] >= 200
    assert one.work[engine, "emit_value"] >= one.work[engine, "emit_row"] > 0
