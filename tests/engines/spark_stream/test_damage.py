"""Files of a checkpoint that were cut short, changed or lost: refused in words, or done without."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pytest

import weft
from engines.spark_stream.test_pieces import asked, record_of, scope_of
from weft.engines.local.state.table_bytes import table_chunk
from weft.engines.spark.streaming.checkpoint.control import Answer, Control
from weft.engines.spark.streaming.checkpoint.occupancy import held
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint
from weft.engines.spark.streaming.checkpoint.versions import Versions, version_at
from weft.engines.spark.streaming.columnar.buckets import Logged
from weft.engines.spark.streaming.columnar.byte_values import dump_changes
from weft.engines.spark.streaming.journal import Journal
from weft.engines.spark.streaming.progress import Progress
from weft.engines.spark.streaming.sinks import FileSink, Origin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

STREAM = "r by ts"
UUID = "0b1fa9d4-8d0c-4b7e-9a58-1f2d8f3f6a11"


def damaged(whole: bytes, dice: random.Random) -> Iterator[bytes]:
    """Cut some bytes short everywhere, and turn single bits of them."""
    for at in sorted({0, 1, len(whole) - 1, *(dice.randrange(len(whole)) for _ in range(60))}):
        yield whole[:at]
        yield bytes([*whole[:at], whole[at] ^ (1 << dice.randrange(8)), *whole[at + 1 :]])


def version_file(place: Path) -> Path:
    kept = Checkpoint(Place.of(place))
    query = asked("a", 20, 30)
    kept.write(record_of(query), 0, {STREAM: {0: scope_of(query)}})
    (path,) = (place / "weft" / "versions").iterdir()
    return path


def test_a_version_is_what_was_written_or_is_refused(tmp_path: Path) -> None:
    path = version_file(tmp_path)
    whole, kept = path.read_bytes(), Checkpoint(Place.of(tmp_path))
    before = (kept.record_of(0), Versions(kept.versions, STREAM).of(0))
    refused = 0
    for at, bytes_ in enumerate(damaged(whole, random.Random(1))):
        own = tmp_path / f"copy {at}" / "weft" / "versions"
        own.mkdir(parents=True)
        (own / path.name).write_bytes(bytes_)
        other = Checkpoint(Place.of(own.parents[1]))
        with suppress(weft.DataError):
            found = (other.record_of(0), Versions(other.versions, STREAM).of(0))
            assert found == before  # a space in the text, or the name of the digest itself
            continue
        refused += 1
        with pytest.raises(weft.DataError, match=re.escape(str(own / path.name))):
            other.record_of(0)
    assert refused > 100


def test_what_executors_run_is_covered_by_the_digest_too(tmp_path: Path) -> None:
    path = version_file(tmp_path)
    text = path.read_text()
    head, _, tail = text.rpartition("20000000")  # of what executors run, which comes last
    path.write_text(f"{head}25000000{tail}")
    kept = Checkpoint(Place.of(tmp_path))
    for read in (lambda: kept.record_of(0), lambda: Versions(kept.versions, STREAM).of(0)):
        with pytest.raises(weft.DataError, match="is damaged: its digest is another"):
            read()


def test_a_version_that_is_lost_is_named(tmp_path: Path) -> None:
    path = version_file(tmp_path)
    kept = Checkpoint(Place.of(tmp_path))
    (path.parent / "notes.json").write_text("nobody's")
    (path.parent / "x-y.json").write_text("nobody's")
    assert version_at(kept.versions, 3) == 0
    path.unlink()
    with pytest.raises(weft.DataError, match="version 0 of the workload is not in"):
        version_at(kept.versions, 3)
    with pytest.raises(weft.DataError, match="version 0 of the workload is not in"):
        kept.record_of(0)


@pytest.mark.parametrize("text", ["", "v1\n", "v1\n{", 'v1\n{"id": "\'; DROP TABLE x"}', "v1\n[]"])
def test_the_name_of_a_stream_is_one_or_is_refused(tmp_path: Path, text: str) -> None:
    kept = Checkpoint(Place.of(tmp_path))
    with pytest.raises(weft.DataError, match="has lost the name of its stream"):
        _ = kept.stream
    (tmp_path / "metadata").write_text(text)
    with pytest.raises(weft.DataError, match="damaged: it names no stream"):
        _ = kept.stream
    (tmp_path / "metadata").write_text(json.dumps({"id": UUID}))
    assert kept.stream == UUID


def test_what_is_told_of_a_stream_may_be_damaged_and_the_stream_goes_on(tmp_path: Path) -> None:
    own = Place.of(tmp_path)
    journal, control = Journal(own), Control(own)
    journal.add(Progress(0, 10, 5.0, 2.0, None, None, 3, 0, 100))
    control.heard([("q", "w", 7)])
    dice = random.Random(2)
    kept = {
        name: (tmp_path / name).read_bytes() for name in ("progress.jsonl", "complete_from.json")
    }
    for name, whole in kept.items():
        for bytes_ in damaged(whole, dice):
            (tmp_path / name).write_bytes(bytes_)
            control.heard([("q", "w", 9)])
            assert control.complete_from()["q"]["w"] is not None
            Journal(own).history()
            Journal(own).add(Progress(1, 10, 5.0, 2.0, None, None, 3, 0, 100))
            assert Journal(own).history()[-1].batch == 1


def test_an_answer_that_is_damaged_is_refused(tmp_path: Path) -> None:
    control = Control(Place.of(tmp_path))
    request = control.ask("suspend", "a")
    control.answer(request, Answer(True, from_batch=3))
    path = tmp_path / "answers" / f"{request.id}.json"
    for text in (path.read_text()[:9], '{"no": 1}', "7"):
        path.write_text(text)
        with pytest.raises(weft.DataError, match="is damaged"):
            control.answered(request, 0)


def test_requests_keep_their_order_when_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, clock = Control(Place.of(tmp_path)), iter([9_000, 5_000, 5_000, 9_500])
    monkeypatch.setattr("time.time_ns", lambda: next(clock))
    asked_for = [control.ask("suspend", name) for name in "abcd"]
    assert [request.query for request in control.requests()] == ["a", "b", "c", "d"]
    assert [request.id for request in control.requests()] == [one.id for one in asked_for]


def test_a_change_in_the_state_is_what_was_written_or_is_refused() -> None:
    changes = [dump_changes({"a": b"1" * 40, "b": b"2"}), dump_changes({"a": b"3"}, ["b"])]
    assert Logged.of(changes).chunks == {"a": b"3"}
    for bytes_ in damaged(changes[0], random.Random(3)):
        if bytes_[-8:-4] == b"crc:":
            with pytest.raises(weft.DataError, match="the state of a stream is damaged"):
                Logged.of([bytes_])
            continue
        with suppress(weft.DataError):  # what lost its mark is read as a change from before
            assert Logged.of([bytes_]).chunks == Logged.of(changes[:1]).chunks
    # Before there were checksums, changes were tables alone.
    old = pa.table({"name": ["a"], "chunk": pa.array([b"1"], pa.large_binary())})
    assert Logged.of([table_chunk(old)]).chunks == {"a": b"1"}


@contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[Path]:
    """A file system that is soon full; skips where none may be made."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system may be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_leaves_what_was_written_before(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        kept = Checkpoint(Place.of(disk / "c"))
        first = record_of(asked("a", 20))
        kept.write(first, 0, {})
        control = Control(kept.own)
        control.heard([("q", "w", 7)])
        filled = disk / "filled"
        filled.write_bytes(b"x" * max(0, free_bytes(disk)))
        many: Any = record_of(*(asked(f"q{n}", 20, 30, 40) for n in range(40)))
        with pytest.raises(OSError, match="No space left on device"):
            kept.write(many, 7, {})
        with pytest.raises(OSError, match="No space left on device"):
            control.ask("suspend", "a" * 8192)
        assert kept.record_of(0) == first
        assert [*control.requests()] == []
        assert control.complete_from() == {"q": {"w": 7}}
        filled.unlink()
        control.ask("suspend", "a")
        assert len([*control.requests()]) == 1


def free_bytes(disk: Path) -> int:
    told = os.statvfs(disk)
    return told.f_bavail * told.f_frsize


HOLDER = """
import sys, time
from weft.engines.spark.streaming.checkpoint.occupancy import held
from weft.engines.spark.streaming.checkpoint.places import Place

with held(Place.of(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_checkpoint_has_one_driver_and_a_kill_sets_it_free(tmp_path: Path) -> None:
    own = Place.of(tmp_path / "c" / "weft")
    command = [sys.executable, "-c", HOLDER, str(own)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            told = f"with the checkpoint {tmp_path / 'c'} already: process {other.pid} on "
            with pytest.raises(weft.UnsupportedError, match=re.escape(told)), held(own):
                pass
        finally:
            other.kill()
    with held(own) as hold:
        assert hold is not None
    hold.release()


def test_a_checkpoint_is_free_when_the_start_fails_and_when_the_stream_has_ended(
    tmp_path: Path,
) -> None:
    own = Place.of(tmp_path)
    with suppress(RuntimeError), held(own):
        raise RuntimeError
    with held(own) as first:
        assert first is not None
        first.running = mock.Mock(isActive=True)
    with pytest.raises(weft.UnsupportedError, match="already: process"), held(own):
        pass
    first.running.isActive = False  # and nobody has told yet
    with held(own) as second:
        assert second is not None
    first.release()
    assert not second.file.closed
    second.release()


@pytest.mark.spark
def test_a_micro_batch_that_is_done_again_mends_its_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink, origin = FileSink(Place.of(tmp_path)), Origin("me", "rows", shared=False, identity=None)
    rows = spark.range(100).coalesce(1)

    def file() -> Path:
        (found,) = tmp_path.glob("batch=0/*.parquet")
        return found

    def cut(path: Path, bytes_: int) -> None:
        path.write_bytes(path.read_bytes()[:bytes_])

    sink.write_from(rows, 0, origin)
    whole = file().read_bytes()
    sink.write_from(spark.range(7), 0, origin)
    assert file().read_bytes() == whole, "what is whole is done"
    for damage in (lambda p: cut(p, len(whole) // 2), lambda p: cut(p, 0), lambda p: p.unlink()):
        damage(file())
        sink.write_from(rows, 0, origin)
        assert sorted(row.id for row in spark.read.parquet(str(tmp_path)).collect()) == [
            *range(100)
        ]
    # A bit that turned is told by whoever reads: Spark keeps the sums of what it wrote.
    place = len(whole) // 3
    file().write_bytes(bytes([*whole[:place], whole[place] ^ 4, *whole[place + 1 :]]))
    with pytest.raises(Exception, match=r"(?i)checksum"):
        spark.read.parquet(str(tmp_path)).collect()


@pytest.mark.spark
def test_a_directory_that_lost_its_owner_is_not_taken_for_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink, origin = FileSink(Place.of(tmp_path)), Origin("me", "rows", shared=False, identity=None)
    rows, owner = spark.range(3).coalesce(1), tmp_path / "_weft_stream"
    sink.write_from(rows, 0, origin)
    owner.unlink()
    # Another stream begins with 0 as well; its rows would be taken for those that are there.
    with pytest.raises(weft.QueryError, match="up to 0 of a stream that it does not name"):
        sink.write_from(rows, 0, Origin("other", "rows", shared=False, identity=None))
    sink.write_from(rows, 1, origin)
    assert owner.read_text() == "me"
    for text in (b"", b"m", b"m\xe5"):
        owner.write_bytes(text)
        with pytest.raises(weft.WeftError, match=r"of another stream|is damaged"):
            sink.write_from(rows, 2, origin)
    assert spark.read.parquet(str(tmp_path)).count() == 6
