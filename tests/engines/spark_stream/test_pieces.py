"""The parts of a stream that need no Spark to be tried: places, versions, routes, requests."""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import weft
from weft import agg
from weft.engines.local.state.table_bytes import read_table
from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.columnar.user_code import code_of
from weft.engines.spark.common_rows import matching
from weft.engines.spark.streaming.anchors.processor import RollingProcessor
from weft.engines.spark.streaming.checkpoint.control import Answer, Control
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint, Record
from weft.engines.spark.streaming.checkpoint.versions import Versions, version_at
from weft.engines.spark.streaming.columnar.bucket_numbers import Buckets
from weft.engines.spark.streaming.columnar.buckets import Logged
from weft.engines.spark.streaming.columnar.byte_values import dump_changes
from weft.engines.spark.streaming.columnar.executor_batches import Packer
from weft.engines.spark.streaming.columnar.parcels import Parcel
from weft.engines.spark.streaming.sinks import (
    FileSink,
    FunctionSink,
    SinkRoots,
    routes_of,
    routes_with,
)
from weft.engines.spark.streaming.streams import streams_of
from weft.plan.nodes import topological
from weft.plan.planned_scope import planned_scopes
from weft.sessions.migration import resumed
from weft.sessions.replay import closed_rows
from weft.window import MeasuredWindow

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000


def asked(name: str, *seconds: int, **more: object) -> weft.Query:
    windows = {f"{s}s": weft.tumbling(f"{s} seconds") for s in seconds}
    settings = {"keys": ["k"], "aggs": {"n": agg.sum("v")}, "watermark": "5 seconds", **more}
    return weft.Query(name, source="r", time="ts", windows=windows, **settings)  # type: ignore[arg-type]


def record_of(*queries: weft.Query, strategy: str = "columnar") -> Record:
    plan = weft.optimize(weft.Workload(queries), "slice")
    parcels = {s.name: tuple(map(Parcel.of, s.scopes)) for s in streams_of(plan)}
    return Record(plan, strategy, Buckets(4, 2), parcels)


def scope_of(query: weft.Query) -> HostedScope:
    (scope,) = planned_scopes(weft.optimize(weft.Workload([query]), "slice"))
    source = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.float64()})
    return HostedScope(scope.emits, source)


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
    first, second, more = (scope_of(asked("a", seconds)) for seconds in (20, 30, 40))
    kept.write(record, 0, {"r by ts": {0: first}})
    kept.write(replace(record, version=1), 7, {"r by ts": {0: second, 1: more}})
    versions = Versions(kept.versions, "r by ts")
    assert [version_at(kept.versions, batch) for batch in (0, 6, 7, 99)] == [0, 0, 1, 1]
    assert versions.at(6) == (0, {0: first})
    assert versions.at(7) == (1, {0: second, 1: more})
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
    roots = SinkRoots.of(None, {"a": "out/a"})
    live = routes_with({"a": "out/a"}, ["a", "b"], {"b": "out/b"}, roots)
    assert isinstance(live["b"].sink, FileSink)
    with pytest.raises(weft.QueryError, match="writes nothing to elsewhere: it is not under"):
        routes_with({"a": "out/a"}, ["a", "b"], {"b": "elsewhere"}, roots)
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


def test_what_is_no_request_harms_nobody(tmp_path: Path) -> None:
    control = Control(Place.of(tmp_path / "weft"))
    folder = tmp_path / "weft" / "control"
    asked = control.ask("suspend", "a")
    text = (folder / f"{asked.id}.json").read_text()
    (folder / f"{asked.id}.json").unlink()
    (folder / "0.json").write_bytes(b"\xff\xfe")
    (folder / "1.json").write_text("[]")
    (folder / "2.json").write_text('{"action": "add", "query": 7, "sink": null}')
    (folder / "3.json").write_text(text.replace(asked.id, "../../escaped"))
    (folder / "readme").write_text("not for the stream")
    found = list(control.requests())
    assert [request.id for request in found] == ["0", "1", "2", "3"]
    assert [request.action for request in found] == ["nothing that can be read"] * 3 + ["suspend"]
    for request in found:
        control.answer(request, Answer(False, error="no"))
    assert {path.name for path in tmp_path.iterdir()} == {"weft"}
    assert [path.name for path in folder.iterdir()] == ["readme"]


def test_requests_name_sinks_under_the_roots_of_the_stream(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to(tmp_path / "elsewhere")
    roots = SinkRoots.of(None, {"a": tmp_path / "data" / "a", "b": print})
    assert roots.checked(f"{tmp_path}/data/more") == f"{tmp_path}/data/more"
    outside = [f"{tmp_path}/b", f"{tmp_path}/data/../b", f"{tmp_path}/data/link/b", "s3://data/b"]
    for sink in (*outside, f"file://{tmp_path}/b", str(tmp_path / "data"), f"{tmp_path}/database"):
        with pytest.raises(weft.QueryError, match="writes nothing to"):
            roots.checked(sink)
    wider = SinkRoots.of([tmp_path, "s3://data"], print)
    assert wider.checked(f"file://{tmp_path}/b")
    assert wider.checked("s3://data/x/../b")
    with pytest.raises(weft.QueryError, match="it has none"):
        SinkRoots.of(None, print).checked("anywhere")


def test_a_version_holds_no_code_and_executors_get_it_with_the_closure(tmp_path: Path) -> None:
    class Fives(weft.UserWindow):
        version = "2"

        def begins(self, event: object, state: dict[str, int]) -> int:
            state["seen"] = state.get("seen", 0) + 1
            return int(state["seen"] % 5 == 1)

        def ends(self, event: object, state: dict[str, int]) -> int:
            return int(state.get("seen", 0) > 0 and state["seen"] % 5 == 0)

    agg.custom(
        "thrice", lift=lambda v: 3 * v, combine=lambda a, b: a + b, lower=float, identity=0,
        commutative=True, idempotent=False,
    )  # fmt: skip
    query = weft.Query(
        "own", source="r", time="ts", keys=["k"], windows={"5": Fives()}, aggs={"n": "thrice(v)"}
    )
    scope = scope_of(query)
    kept = Checkpoint(Place.of(tmp_path))
    kept.write(record_of(asked("a", 20)), 0, {"r by ts": {0: scope}})
    (path,) = (tmp_path / "weft" / "versions").iterdir()
    told = json.loads(path.read_text())["hosted"]["r by ts"]["0"]
    assert told.keys() == {"custom", "windows", "nodes", "source"}
    assert told["custom"]["thrice"]["module"] == __name__
    assert "gASV" not in path.read_text()  # how pickles begin, in base64
    versions = Versions(kept.versions, "r by ts")
    with pytest.raises(weft.QueryError, match=r"window class '.*Fives' .* is not there"):
        versions.of(0)  # a class inside a function has no name to import
    nodes = topological(scope.emits)
    assert replace(versions, code=code_of(nodes, ["thrice"])).of(0) == {0: scope}


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    kept = Checkpoint(Place.of(tmp_path))
    kept.write(record_of(asked("a", 20)), 0, {})
    (path,) = (tmp_path / "weft" / "versions").iterdir()
    told = json.loads(path.read_text())
    del told["sha256"]  # which was not there then
    path.write_text(json.dumps({**told, "weft_checkpoint": 1}))
    with pytest.raises(weft.DataError, match=r"is of version 1, and this .* versions 2 to 3"):
        kept.record_of(0)


def test_buckets_of_a_checkpoint_before_keep_their_numbers(tmp_path: Path) -> None:
    kept = Checkpoint(Place.of(tmp_path))
    record = record_of(asked("a", 20))
    kept.write(record, 0, {})
    assert kept.record_of(0).buckets == Buckets(4, 2)
    (path,) = (tmp_path / "weft" / "versions").iterdir()
    told = json.loads(path.read_text())
    for name in ("sha256", "partitions"):
        del told[name]
    path.write_text(json.dumps({**told, "weft_checkpoint": 2}))
    before = kept.record_of(0).buckets
    assert [before.number(1, bucket) for bucket in range(4)] == [4, 5, 6, 7]


@pytest.mark.parametrize(
    "buckets",
    [Buckets(4), Buckets(4, 2), Buckets(400, 200), Buckets(6, 3), Buckets(20_000, 10_000)],
)
def test_numbers_of_buckets_are_those_of_one_bucket_and_scope(buckets: Buckets) -> None:
    numbers = {
        (scope, bucket): buckets.number(scope, bucket)
        for scope in (0, 1, 2, 29, 1_000)
        for bucket in range(buckets.each)
    }
    assert len(set(numbers.values())) == len(numbers)
    assert all(0 <= number < 2**31 for number in numbers.values())
    assert all(buckets.scope_of(number) == scope for (scope, _), number in numbers.items())


def test_a_stream_has_numbers_for_thousands_of_key_sets_and_no_more() -> None:
    with pytest.raises(weft.UnsupportedError, match="400000 sets of keys in one stream"):
        Buckets(4, 2).number(399_999, 0)


def test_changes_are_kept_compressed() -> None:
    chunks = {"slices": bytes(100_000), "keys": b"a"}
    log = [dump_changes(chunks), dump_changes({"keys": b"b"}, ["slices"])]
    assert len(log[0]) < 3_000
    assert Logged.of(log[:1]).chunks == chunks
    assert Logged.of(log).chunks == {"keys": b"b"}


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


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_of_instances_that_are_alike_the_first_have_ended(engine: str) -> None:
    """Of [396, 414) the second event is no part; it is the latest of all that begin with it."""
    table = pa.table(
        {"ts": pa.array([5 * S, 5 * S, 60 * S], pa.timestamp("us")), "k": ["a", "a", "b"],
         "km": [407, 416, 0]}
    )  # fmt: skip
    query = weft.Query(
        "q",
        source="t",
        time="ts",
        keys=["k"],
        windows={"18km": MeasuredWindow("km", 18, 18)},
        aggs={"far": agg.max("km")},
    )
    rows = weft.run(query, {"t": table}, engine=engine)
    assert sorted(rows["far"].to_pylist()) == [0, 407, 416]
    assert closed_rows(query, rows, table)["far"].to_pylist() == [407]


BESIDE_THE_DRIVER = """
import base64, importlib.util, pickle, sys
sys.modules["__main__"].__spec__ = importlib.util.find_spec({module!r})
print("starting", flush=True)
pickle.loads(base64.b64decode({pickled!r}))
print("Received UDF from JVM", flush=True)
"""


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("pyspark.sql.streaming.transform_with_state_driver_worker", ["starting"]),
        ("pyspark.worker", ["starting", "Received UDF from JVM"]),  # whose lines are users' own
    ],
)
def test_what_is_printed_beside_the_driver_stays_off_the_terminal(
    module: str, said: list[str]
) -> None:
    pickled = base64.b64encode(pickle.dumps(RollingProcessor(b"", "asked"))).decode()
    text = BESIDE_THE_DRIVER.format(module=module, pickled=pickled)
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == said


def test_events_that_one_filter_of_two_keeps_are_packed_for_the_other() -> None:
    names = [{"t": "c0"}, {"t": "c1"}]
    batch = pa.RecordBatch.from_pydict(
        {"c0": [1, 2], "c1": [None, None], "bucket0": [0, 0], "bucket1": [None, None]},
        pa.schema([("c0", "int64"), ("c1", "int64"), ("bucket0", "int32"), ("bucket1", "int32")]),
    )
    (packed,) = Packer(names, Buckets(4, 2))([batch])
    assert packed.num_rows == 1
    (payload,) = packed.column("payload").to_pylist()
    assert read_table(payload).to_pydict() == {"t": [1, 2]}
