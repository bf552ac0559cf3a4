"""Cases of other systems (Spark, Flink, Scotty, Arroyo) on every engine of weft."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import weft

_SPEC = importlib.util.spec_from_file_location("weft_cases", Path(__file__).with_name("cases.py"))
cases = importlib.util.module_from_spec(_SPEC)
sys.modules["weft_cases"] = cases
_SPEC.loader.exec_module(cases)

CASES = cases.load() or [{"id": "absent"}]
ENGINES = [
    "reference",
    "local",
    pytest.param("spark native", marks=pytest.mark.spark),
    pytest.param("spark columnar", marks=pytest.mark.spark),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any], engine: str) -> None:
    if case["id"] == "absent":
        pytest.skip(f"no cases in {cases.FOLDER.name}/: the folder is not part of the project")
    if case["query"].get("post"):
        pytest.skip("out of scope: keeps only the greatest group of each window")
    try:
        query = cases.query(case)
    except cases.OutOfScope as reason:
        pytest.skip(f"out of scope: {reason}")
    table = cases.table(cases.events(case))
    name, _, strategy = engine.partition(" ")
    try:
        result = weft.run(
            weft.Workload([query]), {"events": table}, engine=name, strategy=strategy or None
        )
    except weft.UnsupportedError as refused:
        if strategy != "native":
            raise
        pytest.skip(f"native leaves it to columnar: {refused.message}")
    found = cases.problems(case, cases.result_rows(case, query, result))
    assert not found, "\n".join(found[:5])
