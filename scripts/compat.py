"""Try weft with every Spark that people run, and write down what works: docs/versions.md.

Run by `make compat`. PySpark of each version goes into a folder of the user's cache, once; the rest
of the environment is the pinned one. A way that used to work and does not is an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "versions.md"
TRIAL = ROOT / "tests" / "compat" / "spark_version.py"
PATIENCE_S = 600
HEADER = """\
# Versions of Spark

What works with which Spark, as `make compat` found it: every way of running is tried against the
reference engine, with PySpark of that version and the other packages as pinned. A hyphen means
that weft refuses, with the reason below.

"""


def environment(version: str) -> Path:
    """Return the folder that has PySpark of a version, which is fetched the first time."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(cache, "weft", "compat", version).expanduser()
    if not (folder / "pyspark").is_dir():
        say(f"fetching PySpark {version} into {folder}")
        words = ["install", "--quiet", "--no-deps", "--target", str(folder), f"pyspark=={version}"]
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    return folder


def tried(version: str, remote: str | None) -> dict[str, Any]:
    """Run the trial with a version, and return what it found."""
    found = {**os.environ, "WEFT_RUNS": os.devnull}
    path = (str(environment(version)), str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))
    found["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    if remote is not None:
        found["SPARK_REMOTE"] = remote
    run = subprocess.run(
        [sys.executable, str(TRIAL)],
        env=found,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
    )
    if run.returncode != 0:
        raise SystemExit(f"the trial of Spark {version} ended with {run.returncode}")
    told: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return told


def page(results: list[dict[str, Any]]) -> str:
    """Write the table, and under it why what does not work does not."""
    ways: dict[str, dict[str, str]] = {}
    for told in results:
        for way, answer in told.items():
            if way not in ("spark", "connect"):
                name = f"{way}, over Connect" if told["connect"] else way
                ways.setdefault(name, {})[told["spark"]] = answer
    versions = list(dict.fromkeys(told["spark"] for told in results))
    lines = [f"| | {' | '.join(versions)} |", f"|---|{'---|' * len(versions)}"]
    reasons: list[str] = []
    for way, answers in ways.items():
        cells = []
        for version in versions:
            answer = answers.get(version, "")
            cells.append({"yes": "yes", "": ""}.get(answer, "-"))
            if answer not in ("yes", ""):
                reasons.append(f"- {way}, Spark {version}: {answer.removeprefix('no: ')}")
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return HEADER + "\n".join([*lines, "", *reasons]) + "\n"


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Try the versions that are named, or all, and write the page if it was all."""
    asked = sys.argv[1:] or VERSIONS
    results = []
    for version in asked:
        for remote in (None, "local[2]"):
            if remote is None or not version.startswith("3."):
                results.append(tried(version, remote))
                say(json.dumps(results[-1]))
    if not sys.argv[1:]:
        PAGE.write_text(page(results), encoding="utf-8")
        say(f"wrote {PAGE.relative_to(ROOT)}")
    broken = [t for t in results for answer in t.values() if str(answer).startswith("fails")]
    if broken:
        raise SystemExit("some ways fail without a reason of weft's: see above")


if __name__ == "__main__":
    main()
