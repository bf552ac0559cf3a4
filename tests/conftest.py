"""What all tests share: golden files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# Test modules are imported by path, so packages beside them are found only from here.
sys.path.insert(0, str(Path(__file__).parent))

from golden.loader import Case, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what came out into the golden files instead of comparing",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Case, str], None]:
    """Compare a text with what its golden case wants, or rewrite the case."""

    def compare(case: Case, got: str) -> None:
        if request.config.getoption("--update-golden") and got != case.want:
            rewrite(case, got)
        else:
            assert got == case.want

    return compare
