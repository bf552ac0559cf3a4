"""The commands and programs of the documents run, and print what the documents say."""

from __future__ import annotations

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


def links(page: Path) -> list[str]:
    found = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())
    return [link for link in found if "://" not in link]


@pytest.mark.parametrize(
    "page", [README, *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    for link in links(page):
        assert (page.parent / link).exists(), link


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
