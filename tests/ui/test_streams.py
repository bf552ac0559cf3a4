"""Pages of streams, from the files that streams leave: whole, missing, broken and out of reach."""

from __future__ import annotations

import http.client
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from pages import Server, serving
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint, Record
from weft.engines.spark.streaming.journal import Journal
from weft.engines.spark.streaming.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

SQL = """-- name: sums
SELECT k, SUM(v) AS total, MAX(v) AS hi FROM r GROUP BY k, window(ts, '1 minute')"""
S = 1_000_000


def checkpoint_in(folder: Path, sink: Path) -> None:
    kept = Checkpoint(Place.of(folder))
    kept.write(Record(weft.optimize(weft.parse(SQL)), "columnar"), 0, {})
    (kept.place / "offsets" / "0").write("")
    journal = Journal(kept.own)
    for batch in range(3):
        at = f"2024-01-01T00:0{batch}:30.000Z"
        behind = f"2024-01-01T00:0{batch}:00.000Z"
        journal.add(Progress(batch, 10, 5.0, 2.0, behind, None, 3, batch, 900, at=at))
    (kept.own / "sinks.json").write(json.dumps({"sums": str(sink)}))


def rows_in(sink: Path) -> None:
    for batch in range(2):
        starts = [60 * S * (2 * batch + n) for n in range(2)]
        times = pa.array(starts * 2, pa.timestamp("us", "UTC"))
        rows = pa.table(
            {
                "k": ["a", "a", None, None],
                "window": ["1m"] * 4,
                "window_start": times,
                "window_end": pa.array([t + 60 * S for t in starts * 2], times.type),
                "total": pa.array([1.5, 2.5, None, 4.5]).cast(pa.decimal128(9, 2)),
                "hi": pa.array([1, 2, 3, 4]),
            }
        )
        (sink / f"batch={batch}").mkdir(parents=True)
        pq.write_table(rows, sink / f"batch={batch}" / "part-0.parquet")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("streams")
    rows_in(folder / "out")
    for name, sink in (("whole", "out"), ("broken", "out"), ("linked", "in/linked")):
        checkpoint_in(folder / name, folder / sink)
    (version,) = (folder / "broken" / "weft" / "versions").glob("*.json")
    version.write_text(version.read_text()[:100])
    shutil.copytree(folder / "out", folder / "in" / "linked")
    linked = folder / "in" / "linked" / "batch=1" / "part-0.parquet"
    linked.unlink()
    (folder / "secret.parquet").symlink_to(folder / "out" / "batch=1" / "part-0.parquet")
    linked.symlink_to(folder / "secret.parquet")
    words = [w for n in ("whole", "missing", "broken", "linked") for w in ("--checkpoint", n)]
    with serving(*words, "--root", "in", "--root", "out", "--allow-changes", cwd=folder) as running:
        yield running


def test_every_stream_is_shown_by_itself_whatever_became_of_the_others(server: Server) -> None:
    _, _, text = server.answer("/streams")
    assert text.count("lag of the watermark <b>30 s</b>") == 2
    assert text.count("late rows <b>2</b>") == 2
    assert "state per window <b>900 B</b>" in text
    assert "no stream has run with the checkpoint missing" in text
    assert "broken/weft/versions" in text
    assert "is damaged" in text


def test_what_changes_is_sent_as_it_changes(server: Server) -> None:
    line = http.client.HTTPConnection(server.address, timeout=30)
    line.request("GET", "/streams/0/events")
    answer = line.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    first = [answer.readline().decode().rstrip() for _ in range(2)]
    assert first == ["event: part", "data: curves-0"]
    answer.close()
    line.close()
    assert server.answer("/streams/9/events")[0] == 404


def test_the_last_rows_and_a_curve_of_one_key_are_shown(server: Server) -> None:
    _, _, text = server.answer("/results?stream=0&query=sums&column=total&key=NULL")
    assert "total of" in text
    assert "<b>4.5</b>" in text
    assert text.count("<tr>") == 1 + 8
    newest = text[text.index("<tbody>") :]
    assert "1970-01-01 00:04:00" in newest.partition("</tr>")[0]
    assert "<td>NULL</td>" in newest


def test_links_that_lead_out_of_the_roots_are_not_followed(server: Server, tmp_path: Path) -> None:
    folder = Path(f"/proc/{server.process.pid}/cwd").resolve()
    (tmp_path / "far.parquet").write_bytes((folder / "secret.parquet").read_bytes())
    linked = folder / "in" / "linked" / "batch=1" / "part-0.parquet"
    linked.unlink()
    linked.symlink_to(tmp_path / "far.parquet")
    _, _, text = server.answer("/results?stream=3&query=sums")
    assert "is outside of what this page may reach" in text
    assert "<tbody>" not in text


def test_a_request_that_cannot_be_is_told_where_it_was_typed(server: Server) -> None:
    origin = f"http://{server.address}"
    for body, told in (
        ("query=SELECT", "line 1"),
        (f"query={SQL}&sink=s3://bucket/x", "may reach"),
        (f"query={SQL}&sink=../x", "may reach"),
    ):
        status, _, text = server.answer("/streams/0/add", body, Origin=origin, X_Fragment="1")
        assert (status, told in text) == (400, True), text
    status, _, text = server.answer("/streams/2/suspend", "query=sums", Origin=origin)
    assert (status, "is damaged" in text) == (400, True)
    assert server.answer("/streams/0/drop", "query=sums", Origin=origin)[0] == 404
