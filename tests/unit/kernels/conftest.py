"""What the tests of the kernels share: the oracle, random partials, letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pytest

from weft.kernels.operations import AFFINE_MODULO, MAX_INT64, SUM_INT64, Operation, counting
from weft.kernels.registry import IMPLEMENTATIONS, Kernel, technique
from weft.techniques import TECHNIQUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

COMPILED = not numba.config.DISABLE_JIT
# One counting build for answers, counters and traces: every build is compiled separately.
COUNTED_AFFINE, AFFINE_CALLS = counting(AFFINE_MODULO)


@dataclass(frozen=True)
class Case:
    """A technique with an operation it may run, and the brute force to compare it with."""

    kernel: Kernel

    @property
    def operation(self) -> Operation:
        return self.kernel.operation

    def random(self, size: int, seed: int = 0) -> Any:
        rng = np.random.default_rng(seed)
        if len(self.operation.dtypes) == 2:
            return rng.integers(2, 2**31 - 1, size), rng.integers(1, 2**31 - 1, size)
        return rng.integers(-9, 10, size)  # few values, so many ties

    def partials(self, columns: Any) -> list[Any]:
        if isinstance(columns, tuple):
            return list(zip(*(column.tolist() for column in columns), strict=True))
        return columns.tolist()

    def fold(self, partials: Iterable[Any]) -> Any:
        answer = self.operation.identity
        for partial in partials:
            answer = self.operation.algebra.combine(answer, partial)
        return answer

    def oracle(self, partials: list[Any], n: int, times: Iterable[int]) -> list[Any]:
        return [self.fold(partials[max(0, t - n + 1) : t + 1]) for t in times]


# A test takes the techniques that have what it tests by the name of its parameter.
_MEMBER_TESTED = {
    "case": "slide",
    "case_with_any_range": "query_range",
    "case_with_suffixes": "query_last",
    "case_with_several_ranges": "slide_ranges",
    "case_with_keys": "slide_keyed",
}


def _cases(member: str) -> list[Any]:
    return [
        pytest.param(Case(technique(name, operation)), id=f"{name}-{operation.name}")
        for name, implementation in IMPLEMENTATIONS.items()
        for operation in (SUM_INT64, MAX_INT64, COUNTED_AFFINE)
        if hasattr(implementation, member) and not operation.laws.missing(TECHNIQUES[name].needs)
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for parameter, member in _MEMBER_TESTED.items():
        if parameter in metafunc.fixturenames:
            metafunc.parametrize(parameter, _cases(member))


@pytest.fixture(scope="session")
def compiled() -> bool:
    return COMPILED


@pytest.fixture
def counted_affine() -> tuple[Operation, Any]:
    AFFINE_CALLS[0] = 0
    return COUNTED_AFFINE, AFFINE_CALLS


_LETTERS = " abcdefghijx"


@pytest.fixture(scope="session")
def word() -> Callable[[Any], str]:
    """Spell an affine partial whose values were letters: 12 ** length, and digits of base 12."""

    def spell(partial: Any) -> str:
        scale, code, letters = int(partial[0]), int(partial[1]), ""
        while scale > 1:
            letters = _LETTERS[code % 12] + letters
            scale, code = scale // 12, code // 12
        return letters

    return spell


@pytest.fixture(scope="session")
def letter() -> Callable[[str], tuple[int, int]]:
    """Write a letter as an affine partial: composing them is concatenation, up to 8 letters."""
    return lambda c: (12, _LETTERS.index(c))
