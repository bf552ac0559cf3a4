"""Work that is spread over threads: all of it is done once, whoever asks and whatever fails."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from weft.kernels import parallel
from weft.kernels.parallel import ROWS_PER_THREAD, over_chunks, over_parts


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [0, 1, 2, 100])
def test_chunks_hold_every_row_once_and_in_order(rows: int, threads: int) -> None:
    found = over_chunks(lambda a, b: list(range(a, b)), rows, threads)
    assert [row for chunk in found for row in chunk] == list(range(rows))


def test_work_that_spreads_its_own_work_comes_to_an_end() -> None:
    def sums(size: int) -> int:
        return sum(over_chunks(lambda a, b: sum(range(a, b)), size, 4))

    sizes = list(range(100, 140))
    assert over_parts(sums, sizes, ROWS_PER_THREAD) == [sum(range(size)) for size in sizes]
    with ThreadPoolExecutor(8) as askers:  # more than there are helpers
        asked = [askers.submit(over_parts, sums, sizes, ROWS_PER_THREAD) for _ in range(16)]
        found = [one.result(timeout=60) for one in asked]
    assert found == [[sum(range(size)) for size in sizes]] * 16


@pytest.mark.parametrize("failing", [0, 1, 5])
def test_what_fails_is_told_when_nobody_works_any_more(failing: int) -> None:
    at_work = threading.Semaphore(0)

    def work(part: int) -> int:
        at_work.release()
        try:
            if part == failing:
                raise ValueError(f"part {part}")
            return part
        finally:
            at_work.acquire()

    with pytest.raises(ValueError, match=f"part {failing}"):
        over_parts(work, range(6), ROWS_PER_THREAD)
    assert not at_work.acquire(blocking=False)
    assert over_parts(lambda part: part, range(6), ROWS_PER_THREAD) == [*range(6)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    over_parts(str, range(6), ROWS_PER_THREAD)
    before = parallel._helpers()
    child = os.fork()
    if not child:
        found = over_parts(lambda part: part + 1, range(6), ROWS_PER_THREAD)
        os._exit(0 if found == [*range(1, 7)] and parallel._helpers() is not before else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
