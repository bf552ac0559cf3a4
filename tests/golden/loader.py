"""Golden files: text in, text out.

    # comments, up to the first case

    case  what this shows
    the text that goes in
    ----
    the text that must come out

`pytest --update-golden` writes what came out into the file; read the difference before you keep it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

_CASE = re.compile(
    r"^case  (?P<title>.+)\n(?P<text>(?:.*\n)*?)----\n(?P<want>(?:(?!case  ).*\n)*)", re.M
)
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a golden file."""

    path: Path
    title: str
    text: str
    want: str


def read(path: Path) -> list[Case]:
    """Read all cases of a file; titles are unique, so that one case can be rewritten."""
    content = path.read_text(encoding="utf-8")
    cases = [
        Case(path, m["title"], m["text"].rstrip("\n"), m["want"].rstrip("\n"))
        for m in _CASE.finditer(content)
    ]
    titles = [case.title for case in cases]
    twice = {title for title in titles if titles.count(title) > 1}
    assert not twice, f"{path.name}: two cases are titled {twice}"
    written = len(re.findall(r"^case  ", content, re.M))
    assert len(cases) == written, f"{path.name}: a case has no ---- line"
    return cases


def cases(pattern: str, on_spark: str | None = None) -> list[object]:
    """Return the cases of all files under tests/golden that match, as pytest parameters.

    Those whose text has a line that begins with `on_spark` are marked as tests of Spark.
    """
    paths = sorted(_HERE.glob(pattern))
    assert paths, f"no golden file matches {pattern}"
    return [
        pytest.param(c, id=f"{p.stem}: {c.title}", marks=_marks(c, on_spark))
        for p in paths
        for c in read(p)
    ]


def _marks(case: Case, on_spark: str | None) -> list[pytest.MarkDecorator]:
    starts = on_spark and any(line.startswith(on_spark) for line in case.text.splitlines())
    return [pytest.mark.spark] if starts else []


def rewrite(case: Case, got: str) -> None:
    """Put what came out into the file, in place of what the case wanted."""
    content = case.path.read_text(encoding="utf-8")
    for match in _CASE.finditer(content):
        if match["title"] == case.title:
            ending = "\n\n" if match.end() < len(content) else "\n"
            content = content[: match.start("want")] + got + ending + content[match.end() :]
            case.path.write_text(content, encoding="utf-8")
            return
    raise AssertionError(f"{case.path.name} has no case {case.title!r}")
