"""The commands and programs of the documents run, and print what the documents say."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"


def sessions(page: Path) -> list[tuple[str, str]]:
    """Commands of the console blocks, with what each must print."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output.strip()))
    return found


@pytest.mark.parametrize(
    "page", [pytest.param(README, marks=pytest.mark.spark), TUTORIAL], ids=lambda p: p.name
)
def test_the_commands_of_a_page_run_and_print_what_it_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command, output in sessions(page):
        program, *arguments = shlex.split(command)
        assert program == "weft"
        run = subprocess.run(
            [sys.executable, "-m", "weft", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, f"{command}\n{run.stderr}"
        if output:
            assert run.stdout.strip() == output, command


@pytest.mark.parametrize("page", ["spark", pytest.param("streaming", marks=pytest.mark.spark)])
def test_a_page_shows_the_strategies_that_its_command_chooses(page: str, tmp_path: Path) -> None:
    """Prices that are measured anew change what it prints: then the page is written anew."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    ((command, table),) = re.findall(r"```\n\$ weft (.*?)\n\.\.\.\n(.*?)```", text, re.DOTALL)
    run = subprocess.run(
        [sys.executable, "-m", "weft", *shlex.split(command.replace("\\\n", ""))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert table in run.stdout


@pytest.mark.parametrize(
    ("page", "file"), [(README, "lows.sql"), (TUTORIAL, "features.sql")], ids=["README", "tutorial"]
)
def test_the_statements_of_a_page_are_the_file_it_names(page: Path, file: str) -> None:
    (sql,) = re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL)
    assert sql.strip() in (ROOT / "examples" / file).read_text()


def test_the_python_of_the_tutorial_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.generate import sensors

    monkeypatch.chdir(ROOT)
    names = {"readings": sensors(2000, 1, rate=50.0)}
    for code in re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(), re.DOTALL):
        exec(code, names)
    assert set(names["results"]) == {"lows", "busy", "visits"}
    assert all(table.num_rows for table in names["rest"].values())


def test_the_python_of_the_readme_runs() -> None:
    import weft
    from weft.generate import sensors

    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names = {"readings": sensors(500, 1, rate=0.5)}
    exec(code, names)
    assert names["result"].column_names[:4] == ["device", "window", "window_start", "window_end"]
    assert set(names["result"]["window"].to_pylist()) == {"20m", "1h/5m", "visit", "month"}
    assert weft.__version__


def links(page: Path) -> list[tuple[str, str]]:
    """Links of a page to others: the path, and the anchor in it."""
    found = re.findall(r"\]\(([^)#]*?)(?:#([^)]*))?\)", page.read_text())
    return [(path, anchor) for path, anchor in found if "://" not in path]


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize(
    "page", [README, *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    for path, anchor in links(page):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")) or [None])
def test_examples_run(script: Path | None, tmp_path: Path) -> None:
    if script is None:
        pytest.skip("there is no example script")
    run = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


def test_the_python_of_the_page_on_features_runs_and_says_what_it_prints() -> None:
    page = (ROOT / "docs" / "features.md").read_text()
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    heads, *rows = re.findall(r"^\| (?:user|ann|bob|eve) .*$", page, re.MULTILINE)
    training = names["training"]
    assert [cell.strip() for cell in heads.strip("|").split("|")] == training.column_names
    said = {None: "NULL", True: "true", False: "false"}
    for row, found in zip(rows, training.to_pylist(), strict=True):
        user, at, fraud, *features = found.values()
        values = [user, f"{at:%H:%M:%S}", said[fraud]]
        values += ["NULL" if value is None else str(value) for value in features]
        assert [cell.strip() for cell in row.strip("|").split("|")] == values
    (shown,) = re.findall(r"```\n(FEATURES.*?)```", page, re.DOTALL)
    assert shown.strip() == str(names["plan"])
    assert names["now"].equals(training)
    assert names["both"].column_names[3:] == ["paid_n_1h", "paid_n_7d", "back_n_30d"]


PAGES_THAT_RUN = ("my_spark_sql_job", "my_feature_table", "my_nightly_job", "coming_from")


@pytest.mark.parametrize("page", PAGES_THAT_RUN)
def test_the_python_of_a_page_runs(page: str) -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(), re.DOTALL
    )
    assert blocks
    for code in blocks:
        exec(code, names)


@pytest.mark.parametrize("page", ["names", "aggregates"])
def test_every_public_name_has_an_example_that_runs(page: str) -> None:
    import weft

    text = (ROOT / "docs" / f"{page}.md").read_text()
    failures, tried = doctest.testfile(
        str(ROOT / "docs" / f"{page}.md"), module_relative=False, encoding="utf-8"
    )
    assert failures == 0
    assert tried > 30
    where = weft if page == "names" else weft.agg
    public = weft.__all__ if page == "names" else [n for n in vars(weft.agg) if n[0] != "_"]
    sections = dict(re.findall(r"^### weft\.([\w.]+)\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.M))
    sections = {name.removeprefix("agg."): section for name, section in sections.items()}
    for name in public:
        if name in ("agg", "annotations"):
            continue
        assert hasattr(where, name)
        code = "".join(re.findall(r"```(?:pycon|python)\n(.*?)```", sections[name], re.DOTALL))
        assert name in code or f"{name.lower()}" in code, name


PICTURES = {
    f"lows-{planner}": (
        "lows.sql",
        "--planner",
        planner,
        "--model",
        "paper",
        "--rate",
        "1/60",
        "--keys",
        "1",
    )
    for planner in ("independent", "factor", "weave", "subsume", "slice")
} | {"lows-auto": ("lows.sql",), "links": ("links.sql", "--rate", "100", "--keys", "50")}


def test_the_pictures_of_plans_are_what_their_commands_draw(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    from typer.testing import CliRunner

    from weft.cli.app import app

    keep = request.config.getoption("--update-golden")
    for name, (file, *words) in PICTURES.items():
        kept = ROOT / "docs" / "pictures" / f"{name}.svg"
        drawn = kept if keep else tmp_path / kept.name
        given = ["explain", str(ROOT / "examples" / file), *words, "-o", str(drawn)]
        done = CliRunner().invoke(app, [*given, "--overwrite"])
        assert done.exit_code == 0, done.output
        assert drawn.read_bytes() == kept.read_bytes(), f"{name}: run with --update-golden"


def test_planners_cost_what_the_page_on_how_it_works_says() -> None:
    import weft

    page = (ROOT / "docs" / "how_it_works.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    workload = weft.parse((ROOT / "examples" / "lows.sql").read_text())
    known = {"model": "paper", "statistics": weft.Statistics(rate=1 / 60, keys=1)}
    candidates = weft.optimize(workload, **known).candidates
    costs = {one.planner: one.cost for one in candidates}
    assert [planner for planner, _, _ in rows] == [
        *("independent", "factor", "weave", "subsume", "slice")
    ]
    for planner, cost, share in rows:
        assert float(cost) == pytest.approx(costs[planner], abs=0.05)
        assert float(share) == pytest.approx(costs[planner] / costs["independent"], abs=0.005)


@pytest.mark.slow
def test_the_notebook_runs_from_its_first_cell_to_its_last() -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "docs" / "tour.ipynb", as_version=4)
    where = {"metadata": {"path": str(ROOT / "docs")}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    shown = [out["data"] for out in outputs if "data" in out]
    assert any("<iframe" in data.get("text/html", "") for data in shown), "the plan"
    assert any("<h4>waves</h4>" in data.get("text/html", "") for data in shown), "the results"
    assert any("events per second" in data.get("text/html", "") for data in shown), "the session"
    assert any("image/png" in data for data in shown), "the curve"


@pytest.mark.soak
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs"]
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Every error" in (tmp_path / "errors.html").read_text()
    for page in tmp_path.glob("*.html"):
        assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=.https?:", page.read_text())


def test_the_list_of_errors_has_every_error_of_the_source() -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("error_list", ROOT / "scripts" / "error_list.py")
    assert spec is not None
    assert spec.loader is not None
    listed: Any = module_from_spec(spec)
    sys.modules["error_list"] = listed  # its types look for their module
    spec.loader.exec_module(listed)
    assert doctest.testmod(listed).failed == 0
    told = {(one.kind, one.message): one.hint for one in listed.errors_of()}
    assert len(told) > 750
    named = ("QueryError", "there is no statement in this text")
    assert told[named].startswith("write one, such as ")
    assert ("InputError", "there is no query | the query is given twice: {file} and -e") in told
    filled_in = ("UnsupportedError", "a Delta table needs {package}, which is not installed")
    assert filled_in in told  # made by a function, of what that was given
    assert listed.unlisted() == []
