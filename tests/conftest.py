"""What all tests share: golden files, and one process for all that starts Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

# Test modules are imported by path, so packages beside them are found only from here.
sys.path.insert(0, str(Path(__file__).parent))

import sampling  # noqa: F401  chooses how hypothesis runs
from golden.loader import Case, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


# Tests are short: what the better of Java's two compilers takes for itself, few of them earn back.
# With one compiler Java keeps 48 MiB of compiled code, which generated code fills: it would throw
# code away, and interpret and compile it again, for as long as tests run.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m")
# What runs of tests took is nothing to learn prices from.
os.environ.setdefault("WEFT_RUNS", os.devnull)
NO_JAVA = "/no Java: tests that start Spark are marked `spark`"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let no other test start Spark: it would run beside the session of the process for it."""
    if item.get_closest_marker("spark"):
        return (yield)
    with mock.patch.dict(os.environ, JAVA_HOME=NO_JAVA):
        return (yield)


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
