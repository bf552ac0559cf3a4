"""The example project of dbt, built in the environment that `make compat` gives it."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
def test_dbt_builds_the_example_and_its_test_passes() -> None:
    spec = spec_from_file_location("compat", ROOT / "scripts" / "compat.py")
    assert spec is not None
    assert spec.loader is not None
    compat: Any = module_from_spec(spec)
    sys.modules["compat"] = compat
    spec.loader.exec_module(compat)
    assert set(compat.dbt_example()) == {"dbt-core", "dbt-duckdb", "duckdb"}
