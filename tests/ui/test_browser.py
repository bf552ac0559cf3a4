"""The page of `weft ui` in a real browser: plans, runs, and how it looks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pages import Page, Server, browsing, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
LOWS = (ROOT / "examples" / "lows.sql").read_text()
TWO_QUERIES = """-- name: lows
SELECT device, MIN(temp) AS lo FROM readings GROUP BY device, window(ts, '20 minutes');
-- name: means
SELECT device, AVG(temp) AS mean FROM readings GROUP BY device, window(ts, '1 hour')"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A page over a folder with statements, and a run that was measured."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "lows.sql").write_text(LOWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_RUNS", str(folder / "runs.jsonl"))
        measured_run(folder)
        with serving("lows.sql", "--root", str(folder), cwd=folder) as running:
            yield running


def measured_run(folder: Path) -> None:
    from typer.testing import CliRunner

    from weft.cli.app import app
    from weft.generate import sensors
    from weft.tables import write_table

    write_table(sensors(200_000, 1), folder / "readings.parquet")
    words = ["run", str(folder / "lows.sql"), "--engine", "local", "--stats"]
    words += ["--table", f"readings={folder / 'readings.parquet'}"]
    for _ in range(2):  # the first one also loads the kernels
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def page(server: Server, request: pytest.FixtureRequest) -> Iterator[Page]:
    with browsing() as browser:
        yield Page(browser, server, request.config.getoption("--update-golden"))


@pytest.fixture(autouse=True)
def _plain(page: Page) -> Iterator[None]:
    page.looks("light")
    yield
    assert page.complaints() == []


def test_a_plan_is_seen_at_a_glance_and_changes_as_it_is_typed(page: Page, tmp_path: Path) -> None:
    page.open("/")
    page.says("svg.graph .name", "SCAN readings")
    page.says("svg.graph .cost", " ms")
    assert page.all("svg.graph .box.shared"), "what several windows read is marked"
    wide = (
        "return [...document.querySelectorAll('.arrow')].map(a => +a.getAttribute('stroke-width'))"
    )
    widths = page.browser.execute_script(wide)
    assert max(widths) > min(widths), "what more results rest on is thicker"
    for planner in ("independent", "factor", "weave", "subsume", "slice"):
        page.says("td", planner)
    page.says("#windows td", "shared: read from")
    page.picture("plan", tmp_path)

    more = LOWS.replace(
        "Window('20m'", "Window('50m', TumblingWindow(minute, 50)),\n    Window('20m'"
    )
    page.type("textarea[name=sql]", more)
    page.says("#plan h2", "What changed")
    page.says("#plan li", "TUMBLE 50m")
    assert page.all("svg.graph .box.new")

    page.type("textarea[name=sql]", more.replace("MIN(temp)", "MINN(temp)"))
    page.says("#plan .error", "unknown function 'MINN'")
    page.says("#plan .error", "hint:")
    page.says("#plan .error", "^")
    page.picture("error", tmp_path)


def test_two_planners_stand_side_by_side(page: Page, tmp_path: Path) -> None:
    page.open("/?file=0/lows.sql")
    page.choose("planner", "independent")
    page.choose("against", "factor")
    page.choose("model", "paper")
    page.type("input[name=rate]", "1/60")
    page.type("input[name=keys]", "1")
    page.says("#plan h2", "independent beside factor")
    page.says("#plan p", "cost 360 → 150")
    assert len(page.all("svg.graph")) == 2
    page.says("#plan li", "TUMBLE 10m")
    page.picture("planners", tmp_path)


def test_a_thousand_windows_are_grouped_and_can_be_searched(page: Page, tmp_path: Path) -> None:
    windows = ",\n".join(
        f"Window('w{n}', HoppingWindow(minute, {n + 5}, {n % 7 + 1}))" for n in range(1000)
    )
    page.open("/")
    page.choose("planner", "triweave")
    page.type(
        "textarea[name=sql]",
        "SELECT device, System.Window().Id, MAX(temp) AS hi FROM readings TIMESTAMP BY ts "
        f"GROUP BY device, Windows({windows})",
    )
    page.says("#found", "1,000 windows")
    assert len(page.all("svg.graph .box")) <= 32
    assert not page.all("details.group[open]"), "so many are shown when they are asked for"
    page.type("input[type=search]", "HOP 777m")
    page.says("#found", "1 window")
    (row,) = page.all("#windows tbody tr:not([hidden])")
    assert row.is_displayed()
    assert "w772" in row.text
    page.picture("thousand", tmp_path)


def test_runs_show_what_was_expected_beside_what_was_measured(page: Page, tmp_path: Path) -> None:
    page.open("/runs")
    heads = [head.text for head in page.all("details[open] th")]
    assert heads[-2:] == ["ms expected", "ms"]
    cells = [
        [c.text for c in row.find_elements("css selector", "td")]
        for row in page.all("details[open] tr")
    ]
    scan = next(row for row in cells if row and row[0] == "s0")
    assert scan[3] == "200,000"
    assert float(scan[4]) > 0
    assert float(scan[5]) > 0
    total = float(
        page.text("details[open] summary").split(" · ")[2].split(" ms")[0].replace(",", "")
    )
    nodes = [float(row[5].replace(",", "")) for row in cells if row and row[5] != "–"]
    assert 0.4 * total < sum(nodes) <= total, "nodes have all of the time but for what is between"
    assert page.all("svg.bars .measured")
    page.picture("runs", tmp_path)


def test_pages_without_streams_say_how_to_attach_one(page: Page) -> None:
    for path in ("/streams", "/results"):
        page.open(path)
        page.says("main", "weft ui --checkpoint state")


def test_it_is_dark_where_the_system_is(page: Page, tmp_path: Path) -> None:
    page.open("/")
    page.says("svg.graph .name", "SCAN readings")
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = page.browser.execute_script(colour)
    page.looks("dark")
    dark = page.browser.execute_script(colour)
    assert brightness(light) > 200 > 60 > brightness(dark)
    page.picture("dark", tmp_path)


def brightness(colour: str) -> float:
    values = [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(values) / 3


@pytest.mark.parametrize("path", ["/", "/runs", "/streams"])
def test_a_narrow_screen_scrolls_no_page_sideways(path: str, page: Page, tmp_path: Path) -> None:
    page.looks("light", 360, 740)
    page.open(path)
    page.says("h1", "")
    sizes = page.browser.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert sizes[0] <= sizes[1]
    if path == "/":
        page.picture("narrow", tmp_path)


def test_all_can_be_done_with_the_keyboard(page: Page, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("/")
    visited = []
    for _ in range(14):
        page.browser.switch_to.active_element.send_keys(Keys.TAB)
        focused = page.browser.switch_to.active_element
        visited.append(focused.get_attribute("name") or focused.text)
    assert visited[:5] == ["to the content", "Plan", "Streams", "Results", "Runs"]
    assert visited[5:] == [
        *("file", "open", "sql", "planner", "against", "engine", "model", "rate", "keys")
    ]
    page.picture("keyboard", tmp_path)  # with a ring around what is chosen
    page.one("textarea[name=sql]").send_keys(Keys.CONTROL, "a")
    page.one("textarea[name=sql]").send_keys(TWO_QUERIES)
    page.one("form[data-typed] button").send_keys(Keys.ENTER)
    page.says("svg.graph .name", "means · ")
