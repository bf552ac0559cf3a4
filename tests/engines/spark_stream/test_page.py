"""`weft ui` beside a running stream, in a real browser: curves, results, queries by clicking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import weft
from engines.spark_stream.test_live import COUNTS_SQL, HOPS, LOWS, Feed, S
from pages import Page, browsing, serving

NAMES = Path(__file__).parents[3] / "docs" / "names.md"
pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow]


def test_a_stream_is_seen_and_changed_in_the_browser(
    streams: Any, readings: pa.Table, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    place = streams.place
    feed = Feed(readings, place / "in", 8)
    feed.add()
    running = weft.start(
        weft.Workload([LOWS, HOPS]),
        {"r": streams.read()},
        place / "out",
        place / "c",
        strategy="columnar",
    )
    for _ in range(2):
        feed.add(running)
    words = ("--checkpoint", "c", "--allow-changes", "--root", "out")
    keep = request.config.getoption("--update-golden")
    with serving(*words, cwd=place) as server, browsing() as browser:
        page = Page(browser, server, keep)
        page.looks("light", 1280, 1000)
        page.open("/streams")
        for name in ("rows/s", "lag of the watermark", "micro-batch", "late rows", "open slices"):
            page.says(".curve figcaption", name)
        page.says(".curve figcaption", "state of lows 20s")
        assert all(path.get_attribute("d") for path in page.all(".curve path.line"))
        page.says("#queries-0 td", "lows")
        told = json.loads((place / "c" / "weft" / "progress.jsonl").read_text().splitlines()[-1])
        page.says("#curves-0", f"batch {told['batch']}: {told['rows']:,} rows")
        shares = [n for _, _, n in told["window_bytes"]]
        assert len(shares) == len(LOWS.windows) + len(HOPS.windows)
        assert 0 < min(shares) < max(shares) <= told["state_bytes"] <= sum(shares)
        feed.add(running)
        page.says("#curves-0", f"batch {told['batch'] + 1}: ")  # without loading the page anew

        add(page, "SELECT k, MINN(v) AS lo FROM r GROUP BY k, window(ts, '30 seconds')")
        page.says("#added-0 .error", "unknown function 'MINN'")
        page.says("#added-0 .error", "^")
        page.type("input[name=sink]", "/etc/weft")
        add(page, COUNTS_SQL)
        page.says("#added-0 .error", "/etc/weft is outside of what this page may reach")
        page.type("input[name=sink]", "")
        add(page, COUNTS_SQL)
        feed.add(running)  # after this micro-batch the request is answered
        page.says("#added-0", "done: from micro-batch")
        feed.add(running)
        page.says("#queries-0 td", "30s: TUMBLE 30s, complete from 2023-11-14")
        page.one("#suspend-0-lows").click()
        feed.add(running)
        page.says("#said-0", "done: from micro-batch")
        page.says("#queries-0 button", "resume lows")
        page.picture("streams", tmp_path)
        page.one("#resume-0-lows").send_keys("\n")
        feed.add(running)
        page.says("#queries-0 button", "suspend lows")

        page.open("/results?stream=0&query=lows")
        page.says("h2", "Last rows")
        heads = [head.text for head in page.all("th")]
        assert heads == ["k", "window", "window_start", "window_end", "lo", "n"]
        newest = [cell.text for cell in page.all("tbody tr:first-child td")]
        kept = streams.spark.read.parquet(str(place / "out" / "query=lows")).toArrow()
        assert newest[3].startswith(f"{pc.max(kept['window_end']).as_py():%Y-%m-%d %H:%M:%S}")
        page.choose("column", "n")
        page.one("form button").click()
        page.says(".curve figcaption", "n of 20s")
        page.picture("results", tmp_path)
        page.looks("dark", 360, 740)
        page.open("/streams")
        page.says(".curve figcaption", "rows/s")
        sizes = "return [document.documentElement.scrollWidth, window.innerWidth]"
        wide, screen = browser.execute_script(sizes)
        assert wide <= screen
        refused = "the server responded with a status of 400"  # the error above
        assert [line for line in page.complaints() if refused not in line] == []
    running.stop()
    with serving("--checkpoint", "c", "--root", "in", cwd=place) as server:
        origin = f"http://{server.address}"
        status, _, text = server.answer("/streams/0/suspend", "query=lows", Origin=origin)
        assert (status, "this page only looks" in text) == (400, True)
        assert "suspend</button>" not in server.answer("/streams")[2]
        _, _, text = server.answer("/results?stream=0&query=lows")
        assert "is outside of what this page may reach" in text


def add(page: Page, sql: str) -> None:
    page.type("textarea[name=query]", sql)
    page.one("form[action='/streams/0/add'] button").click()


def test_the_example_of_start_in_the_documents_runs(streams: Any) -> None:
    code = NAMES.read_text().partition("### weft.start\n")[2].partition("```python\n")[2]
    code = code.partition("```")[0]
    place, spark = streams.place, streams.spark
    minutes = pa.array([60 * n * S for n in range(120)], pa.timestamp("us", "UTC"))
    events = pa.table({"ts": minutes, "device": ["a", "b"] * 60, "temp": [20.0] * 120})
    (place / "incoming").mkdir()
    pq.write_table(events, place / "incoming" / "0.parquet")
    query = weft.Query(
        "lows",
        source="readings",
        time="ts",
        keys=["device"],
        windows={"20m": "20 minutes", "30m": "30 minutes"},
        aggs={"lo": "min(temp)"},
    )
    schema = spark.read.parquet(str(place / "incoming")).schema
    names = {"weft": weft, "query": query, "spark": spark, "schema": schema, "folder": place}
    exec(code, names)
    kept = spark.read.parquet(str(place / "features")).toArrow()
    assert set(kept["window"].to_pylist()) == {"20m", "30m"}
