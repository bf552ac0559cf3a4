"""A plan has the same fingerprint, and the same EXPLAIN, in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import hashlib, sys
from weft.aggregates import AggregateCall
from weft.plan import Plan, FORMATS, scopes_of
from weft.plan.nodes import topological
from weft.query import Query, Workload
from weft.window import hopping, session, tumbling

calls = {n: AggregateCall(n, ("x",)) for n in ("min", "max", "avg", "var", "median")}
windows = {"a": tumbling("20 minutes"), "b": hopping("1 hour", "7 minutes"), "c": session("5s")}
workload = Workload(
    [Query(f"q{i}", source="t", time="ts", keys=keys, windows=windows, aggs=calls)
     for i, keys in enumerate((["device"], ["device", "city"], []))]
)
nodes = topological(tuple(e for s in scopes_of(workload) for e in s.emits({})))
plan = Plan(nodes, "independent", "spark", "paper", "per 7h", tuple(map(float, range(len(nodes)))))
sys.stdout.write(plan.fingerprint)
for form in FORMATS:
    sys.stdout.write(" " + hashlib.sha256(plan.explain(form).encode()).hexdigest())
"""


def run(seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def first() -> str:
    return run("0")


@pytest.mark.parametrize("seed", ["1", "4242"])
def test_processes_with_different_hash_seeds_agree(first: str, seed: str) -> None:
    assert len(first.split()) == 7
    assert run(seed) == first
