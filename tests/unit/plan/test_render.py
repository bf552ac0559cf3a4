"""What the forms of EXPLAIN promise beyond their golden texts."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from weft.aggregates import AggregateCall, Partial
from weft.plan import FOLD, FORMATS, Candidate, Emit, Plan, Roll, Scan, Share, Slice
from weft.plan.nodes import topological
from weft.plan.render.graph import Limits, drawing
from weft.plan.render.html import MOST_ROWS
from weft.plan.render.layout import layered
from weft.plan.render.svg import svg
from weft.window import Edges, PeriodicWindow, hopping, tumbling

if TYPE_CHECKING:
    from weft.plan.body import Format

MIN = (Partial("min", ("x",)),)
LOW = (("lo", AggregateCall("min", ("x",))),)
SCAN = Scan("t", "ts", None, ("x",))
EVIL = "<script>alert('x')</script>\"&\n--></title></svg></style></pre>"


def minutes(range_: int, slide: int | None = None) -> PeriodicWindow:
    return hopping(f"{range_} minutes", f"{slide or range_} minutes")


def plan_of(*emits: Emit, **settings: object) -> Plan:
    nodes = topological(emits)
    costs = tuple(float(i) for i in range(len(nodes)))
    return Plan(nodes, "factor", "spark", "paper", "per 2h", costs, **settings)


def fan(count: int) -> Plan:
    """So many windows over one slicing."""
    windows = [minutes(n, 1) for n in range(1, count + 1)]
    slices = Slice(SCAN, (), Edges.of(windows), MIN)
    return plan_of(
        *(
            Emit((Roll((slices,), w, "ranges", (), MIN, "slick_deque"),), f"q{n}", str(w), LOW)
            for n, w in enumerate(windows)
        ),
        shares=tuple(
            Share(f"q{n}", "w", str(w), "slices", 1, 2, "") for n, w in enumerate(windows)
        ),
    )


def chain(length: int) -> Plan:
    """Every window feeds the next one, twice as long."""
    emits, feeder = [], SCAN
    for n in range(length):
        feeder = Roll((feeder,), PeriodicWindow(n + 1, n + 1), FOLD, (), MIN)
        emits.append(Emit((feeder,), f"q{n}", "w", LOW))
    return plan_of(*emits)


def evil() -> Plan:
    scan = Scan(EVIL, EVIL, EVIL, (EVIL,))
    roll = Roll((scan,), tumbling("1 hour"), FOLD, ((EVIL, EVIL),), (Partial("min", (EVIL,)),))
    emit = Emit((roll,), EVIL, EVIL, ((EVIL, AggregateCall("min", (EVIL,))),))
    return plan_of(
        emit,
        candidates=(Candidate(EVIL, 1.0, EVIL),),
        shares=(Share(EVIL, EVIL, EVIL, EVIL, 1.0, 2.0, EVIL),),
        notes=(EVIL,),
    )


class Tags(HTMLParser):
    """Collects the tags and attributes of a page, and what is left open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


PLANS = {
    "fan": fan(5),
    "wide fan": fan(300),
    "chain": chain(9),
    "long chain": chain(90),
    "evil": evil(),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_page_is_well_formed_runs_nothing_and_loads_nothing(plan: Plan) -> None:
    page = plan.explain("html")
    tags = Tags(page)
    assert tags.open == []
    names = {name for name, _ in tags.seen}
    assert not names & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "use",
        "image",
    }
    for _, attributes in tags.seen:
        assert not any(name.startswith("on") for name in attributes)
        assert not attributes.keys() & {"src", "href", "xlink:href", "action", "data"}
    assert not re.search(r"https?:|url\((?!#)|@import", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_drawing_is_well_formed_and_inside_its_frame(plan: Plan) -> None:
    text = re.search(r'<svg class="graph".*?</svg>', plan.explain("html"), re.S)
    assert text
    drawn = ElementTree.fromstring(text[0])
    width, height = float(drawn.attrib["width"]), float(drawn.attrib["height"])
    boxes = drawn.findall("g")
    assert boxes
    for box in boxes:
        x, y = map(float, re.findall(r"[-\d.]+", box.attrib["transform"]))
        frame = box.find("rect")
        assert frame is not None
        assert x >= 0
        assert y >= 0
        assert x + float(frame.attrib["width"]) <= width
        assert y + float(frame.attrib["height"]) <= height


def test_names_of_the_user_are_escaped_everywhere() -> None:
    page = evil().explain("html")
    assert "<script>" not in page
    assert page.count("</title>") == 1 + page.count("<g ")  # one per box, and the page's own
    assert html.escape("<script>alert('x')</script>") in page
    graph = evil().explain("mermaid")
    assert "<script>" not in graph
    assert not re.search(r'"[^"\n]*[<>](?!br/>|/)[^"\n]*"', graph.replace("<br/>", ""))


@pytest.mark.parametrize("form", ["text", "verbose", "mermaid"])
def test_a_line_break_in_a_name_breaks_no_line(form: Format) -> None:
    assert not any(line.startswith("-->") for line in evil().explain(form).splitlines())


@pytest.mark.parametrize("form", FORMATS)
def test_equal_plans_give_equal_bytes(form: Format) -> None:
    assert fan(70).explain(form) == fan(70).explain(form)


@pytest.mark.parametrize("form", FORMATS)
def test_no_form_shows_a_memory_address(form: Format) -> None:
    assert not re.search(r" at 0x[0-9a-f]+", evil().explain(form))


def test_text_is_whole_up_to_sixty_results_and_a_summary_beyond() -> None:
    whole, summary = fan(60).explain(), fan(61).explain()
    assert whole.count(" -> query ") == 60
    assert "more (format" not in whole
    assert summary.count(" -> query ") == 20
    assert '... 41 more (format "verbose" or "json" has all)' in summary
    assert fan(61).explain("verbose").count(" -> query ") == 61


def test_a_summary_stays_short_however_long_the_chains_are() -> None:
    plan = chain(90)
    last = plan.emits[-1]
    nodes = topological((last, *plan.emits[:-1]))
    reordered = Plan(nodes, "x", "x", "x", "x", (0.0,) * len(nodes))
    lines = reordered.explain().splitlines()
    assert len(lines) < 100
    assert '... 90 more (format "verbose" or "json" has all)' in lines


def test_every_node_has_one_line_and_every_id_is_defined_before_it_is_read() -> None:
    defined: set[str] = set()
    lines = [line for line in chain(9).explain().splitlines() if re.match(r"\w+ +(:=|->)", line)]
    assert len(lines) == 19
    for line in lines:
        name, sign, rest = line.split(maxsplit=2)
        assert set(re.findall(r"from (\w+)", rest)) <= defined
        assert (name in defined) == (sign == "->")
        defined.add(name)


def test_a_drawing_within_the_limits_shows_every_node() -> None:
    graph = drawing(fan(5), Limits(boxes=20, results=10, columns=5))
    assert len(graph.boxes) == 12
    assert graph.note == ""


def test_results_move_into_their_windows_when_there_are_many() -> None:
    graph = drawing(fan(5), Limits(boxes=20, results=4, columns=5))
    assert [box.kind for box in graph.boxes] == ["scan", "slice", *["window"] * 5]
    assert graph.boxes[2].subtitle == "→ q0 · TUMBLE 1m"
    assert graph.note == "5 results drawn inside their windows"


def test_windows_that_feed_nobody_become_one_box_with_their_cost() -> None:
    plan = fan(300)
    graph = drawing(plan, Limits(boxes=20, results=4, columns=5))
    assert [(box.kind, box.title) for box in graph.boxes][2:] == [("group", "300 windows")]
    assert sum(box.cost for box in graph.boxes) == pytest.approx(plan.cost)
    assert graph.boxes[2].details[-1] == "... 270 more"


def test_a_chain_is_folded_from_its_end_until_it_fits() -> None:
    graph = drawing(chain(9), Limits(boxes=6, results=4, columns=5))
    assert len(graph.boxes) == 6
    assert graph.boxes[-1].title == "5 windows"
    assert [(a.source, a.target) for a in graph.arrows][-1] == ("w4", "w5")


def test_scans_that_exceed_the_limit_are_cut_and_the_note_says_so() -> None:
    scans = [Scan(f"t{n}", "ts", None, ()) for n in range(9)]
    emits = [Emit((Roll((s,), minutes(1), FOLD, (), MIN),), s.source, "w", LOW) for s in scans]
    graph = drawing(plan_of(*emits), Limits(boxes=6, results=4, columns=5))
    assert len(graph.boxes) == 6
    assert graph.note.endswith("; 12 more nodes not drawn")
    assert {a.target for a in graph.arrows} <= {box.id for box in graph.boxes}
    assert svg(graph).count("<g ") == 6


def test_boxes_of_a_column_keep_their_distance_and_arrows_point_right() -> None:
    arrows = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4), (1, 5), (0, 5)]
    layout = layered([60] * 6, arrows, gap=16, last=[4, 5])
    assert layout.columns == (0, 1, 1, 2, 3, 3)
    assert all(layout.columns[a] < layout.columns[b] for a, b in arrows)
    for column in set(layout.columns):
        found = sorted(
            m for m, c in zip(layout.middles, layout.columns, strict=True) if c == column
        )
        assert all(b - a >= 75.9 for a, b in pairwise(found))
    assert [len(stops) for stops in layout.stops] == [0, 0, 0, 0, 1, 0, 1, 2]
    assert min(layout.middles) >= 30
    assert max(layout.middles) <= layout.height - 30


def test_a_crossing_that_can_be_avoided_is_avoided() -> None:
    # Two chains whose second halves are numbered the wrong way round.
    layout = layered([10] * 6, [(0, 3), (1, 2), (3, 4), (2, 5)], gap=5)
    above = [layout.middles[a] < layout.middles[b] for a, b in ((0, 1), (3, 2), (4, 5))]
    assert len(set(above)) == 1


def test_the_table_of_windows_is_limited_on_the_page() -> None:
    page = fan(MOST_ROWS + 7).explain("html")
    assert '... 7 more (format "json" has all)' in page


def test_an_empty_plan_can_be_shown_in_every_form() -> None:
    empty = Plan((), "independent", "local", "paper", "per 2h", ())
    for form in FORMATS:
        assert "independent" in empty.explain(form)
