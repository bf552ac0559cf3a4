"""The parts of a stream that need no Spark to be tried: places, versions, routes, requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import weft
from weft import agg
from weft.engines.spark.common_rows import matching
from weft.engines.spark.streaming.checkpoint.control import Answer, Control
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint, Record
from weft.engines.spark.streaming.checkpoint.versions import Versions, version_at
from weft.engines.spark.streaming.columnar.scope_structs import Parcel
from weft.engines.spark.streaming.sinks import FileSink, FunctionSink, routes_of, routes_with
from weft.engines.spark.streaming.streams import streams_of
from weft.sessions.migration import resumed

if TYPE_CHECKING:
    from pathlib import Path


def asked(name: str, *seconds: int, **more: object) -> weft.Query:
    windows = {f"{s}s": weft.tumbling(f"{s} seconds") for s in seconds}
    settings = {"keys": ["k"], "aggs": {"n": agg.sum("v")}, "watermark": "5 seconds", **more}
    return weft.Query(name, source="r", time="ts", windows=windows, **settings)  # type: ignore[arg-type]


def record_of(*queries: weft.Query, strategy: str = "columnar") -> Record:
    plan = weft.optimize(weft.Workload(queries), "slice")
    parcels = {s.name: tuple(map(Parcel.of, s.scopes)) for s in streams_of(plan)}
    return Record(plan, strategy, 4, parcels)


def test_a_file_is_written_whole_and_read_back(tmp_path: Path) -> None:
    place = Place.of(tmp_path / "deep" / "down")
    assert place.names() == []
    assert (place / "told").read() is None
    (place / "told").write("first")
    (place / "told").write("second")
    assert (place / "told").read() == "second"
    assert place.names() == ["told"]


def test_a_micro_batch_runs_by_the_last_version_announced_before_it(tmp_path: Path) -> None:
    kept = Checkpoint(Place.of(tmp_path))
    record = record_of(asked("a", 20))
    kept.write(record, 0, {"r by ts": {0: b"first"}})
    kept.write(replace(record, version=1), 7, {"r by ts": {0: b"second", 1: b"more"}})
    versions = Versions(kept.versions, "r by ts")
    assert [version_at(kept.versions, batch) for batch in (0, 6, 7, 99)] == [0, 0, 1, 1]
    assert versions.at(6) == (0, {0: b"first"})
    assert versions.at(7) == (1, {0: b"second", 1: b"more"})
    assert kept.record_of(1) == replace(record, version=1)


def test_a_record_is_read_back_as_it_was(tmp_path: Path) -> None:
    kept = Checkpoint(Place.of(tmp_path))
    record = replace(
        record_of(asked("a", 20), asked("b", 30)),
        live_sinks={"b": "out/b"},
        suspended={"c": record_of(asked("c", 40)).plan},
    )
    kept.write(record, 0, {})
    assert kept.read() is None  # no micro-batch has begun
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").touch()
    assert kept.read() == record
    assert kept.next_batch == 1


def test_every_query_has_a_sink_and_several_share_one() -> None:
    shared = routes_of("out", ["a", "b"])
    assert shared["a"] == shared["b"]
    assert shared["a"].shared
    own = routes_of({"a": "out/a", "b": print}, ["a", "b"])
    assert isinstance(own["a"].sink, FileSink)
    assert isinstance(own["b"].sink, FunctionSink)
    assert not own["a"].shared
    live = routes_with({"a": "out/a"}, ["a", "b"], {"b": "elsewhere"})
    assert isinstance(live["b"].sink, FileSink)
    with pytest.raises(weft.QueryError, match="7 is no sink"):
        routes_of(7, ["a"])


def test_requests_are_answered_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    control = Control(Place.of(tmp_path))
    first = control.ask("suspend", "a")
    second = control.ask("resume", "a")
    assert [request.id for request in control.requests()] == [first.id, second.id]
    assert control.answered(first, patience_s=0) is None
    control.answer(first, Answer(True, from_batch=3))
    assert control.answered(first, patience_s=0) == Answer(True, from_batch=3)
    assert [request.id for request in control.requests()] == [second.id]


def test_a_restart_migrates_added_and_removed_queries() -> None:
    before = record_of(asked("a", 20), asked("b", 40))
    now = resumed(before, [asked("a", 20), asked("c", 60)], {}, "here")
    assert [query.name for query in now.plan.queries] == ["a", "c"]
    assert now.version == 1
    assert now.parcels == before.parcels
    same = resumed(before, [asked("a", 20), asked("b", 40)], {}, "here")
    assert same is before


def test_a_new_query_may_need_more_of_the_events() -> None:
    before = record_of(asked("a", 20))
    more = asked("b", 20, aggs={"m": agg.max("w")})
    other = asked("c", 20, where="v > 1")
    now = resumed(before, [asked("a", 20), more, other], {}, "here")
    first, second = now.parcels["r by ts"]
    assert first.arguments == ("v", "w")
    assert second.where == "v > 1"


def test_a_restart_refuses_what_the_state_cannot_follow() -> None:
    native = record_of(asked("a", 20), strategy="native")
    with pytest.raises(weft.QueryError, match="query 'b' is new"):
        resumed(native, [asked("a", 20), asked("b", 20)], {}, "here")
    columnar = record_of(asked("a", 20))
    with pytest.raises(weft.QueryError, match="window '20s' of query 'a' is gone"):
        resumed(columnar, [asked("a", 30)], {}, "here")
    with pytest.raises(weft.QueryError, match="the strategy was columnar and now is native"):
        resumed(columnar, [asked("a", 20)], {"strategy": "native"}, "here")
    with pytest.raises(weft.QueryError, match="the watermark of query 'a' was 5s and now is 1m"):
        resumed(columnar, [asked("a", 20, watermark="1 minute")], {}, "here")


def test_queries_added_while_the_stream_ran_stay_when_it_restarts_without_them() -> None:
    before = replace(record_of(asked("a", 20), asked("b", 20)), live_sinks={"b": ""})
    assert resumed(before, [asked("a", 20)], {}, "here") is before
    assert resumed(before, [asked("a", 20), asked("b", 20)], {}, "here") is before


def test_matching_rows_may_have_nulls() -> None:
    rows = pa.table({"a": [None, 1, 1], "b": [1, None, 2]})
    others = pa.table({"a": pa.array([None, 1], pa.int64()), "b": [1, 2]})
    assert matching(rows, others, ["a", "b"]).to_pylist() == [{"a": None, "b": 1}, {"a": 1, "b": 2}]
