"""Change the source a little, many times, and see whether a test notices.

    .venv/bin/python scripts/mutants.py --sample 10 --seed 1      # ten changes of each part
    .venv/bin/python scripts/mutants.py --only window --sample 40

Each change (a mutant) turns one operator, comparison, constant or condition of a module into
another, in a copy of the source; the tests of its part then run against the copy. A mutant that no
test notices has survived, and is printed as a line of source before and after.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
# The parts that decide what is right, and the tests that speak of them.
PARTS: dict[str, tuple[list[str], list[str]]] = {
    "window": (
        ["weft/window"],
        ["tests/unit/window", "tests/property/test_windows.py", "tests/engines/test_semantics.py",
         "src/weft/window"],
    ),
    "validate": (
        ["weft/plan/validate.py"],
        ["tests/unit/plan/test_validate.py", "tests/property/test_planners.py",
         "src/weft/plan/validate.py"],
    ),
    "edges": (
        ["weft/cost/edges"],
        ["tests/unit/cost/test_edges.py", "tests/unit/cost/test_omega.py", "src/weft/cost/edges"],
    ),
    "planners": (
        ["weft/planners"],
        ["tests/unit/planners", "tests/golden/test_planners.py", "tests/golden/test_explain.py",
         "tests/golden/test_joins.py", "tests/property/test_factor_search.py",
         "tests/property/test_weave_search.py", "tests/property/test_subsume_groups.py",
         "tests/property/test_planners.py", "tests/engines/local/test_live.py",
         "tests/property/test_mixed_filters.py", "src/weft/planners"],
    ),
    "sql": (
        ["weft/engines/spark/sql"],
        ["tests/property/test_readings.py", "tests/golden/test_streams.py",
         "src/weft/engines/spark/sql", "tests/engines/spark/test_native.py",
         "tests/engines/spark/test_equivalence.py", "tests/engines/spark/test_joins.py",
         "tests/engines/spark/test_stock.py", "tests/engines/spark_stream/test_native.py"],
    ),
}  # fmt: skip
ON_SPARK = frozenset({"sql"})  # whose text only Spark can read
PATIENCE_S = 240
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Div: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module."""

    path: Path
    line: int
    before: str
    after: str
    text: str  # of the whole module


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node."""
    made = copy.deepcopy(node)
    match made:
        case ast.Compare(ops=[op, *rest]) if type(op) in _COMPARED:
            made.ops = [_COMPARED[type(op)](), *rest]
            yield made
        case ast.BinOp(op=op) if type(op) in _COMPUTED and not _is_type(made):
            made.op = _COMPUTED[type(op)]()
            yield made
        case ast.BoolOp(op=op):
            made.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield made
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.IfExp(body=body, orelse=orelse):
            made.body, made.orelse = orelse, body
            yield made


def _is_type(node: ast.BinOp) -> bool:
    """Tell whether a union of types is meant, which is for readers alone."""
    return isinstance(node.op, ast.BitOr) and isinstance(node.left, ast.Name | ast.Constant)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    text = path.read_text()
    tree = ast.parse(text)
    hidden = {id(n) for outer in ast.walk(tree) for n in _hidden_below(outer)}
    for node in ast.walk(tree):
        if id(node) in hidden or not isinstance(node, ast.expr):
            continue
        for other in changed(node):
            before = ast.get_source_segment(text, node)
            if before is None:
                continue
            after = ast.unparse(other)
            yield Mutant(path, node.lineno, before, after, _replaced(text, node, f"({after})"))


def _hidden_below(node: ast.AST) -> Iterator[ast.AST]:
    """What no test of answers can see: annotations, errors, borders between ways that agree."""
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        yield from ast.walk(node.annotation)
    if isinstance(node, ast.FunctionDef) and node.returns is not None:
        yield from ast.walk(node.returns)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        yield from ast.walk(node)
    if isinstance(node, ast.Assert | ast.Raise | ast.JoinedStr):
        yield from ast.walk(node)
    if isinstance(node, ast.keyword) and node.arg == "strict":  # lists that are as long anyway
        yield from ast.walk(node)
    if isinstance(node, ast.Module):
        for own in node.body:
            if isinstance(own, ast.Assign) and _is_border(own):
                yield from ast.walk(own)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("dataclass", "lru_cache", "field"):
        yield from ast.walk(node)


def _is_border(node: ast.Assign) -> bool:
    """Tell a number that only says from when on one of two ways pays, both giving the same."""
    names = [
        target.id
        for one in node.targets
        for target in ast.walk(one)
        if isinstance(target, ast.Name)
    ]
    return all(name.startswith("_") and name.isupper() for name in names) and all(
        isinstance(part, ast.Constant | ast.BinOp | ast.operator | ast.Tuple | ast.expr_context)
        for part in ast.walk(node.value)
    )


def _replaced(text: str, node: ast.expr, by: str) -> str:
    """Put another text in the place of a node; columns of the tree count bytes."""
    lines = text.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head = b"".join(lines[:first]) + lines[first][: node.col_offset]
    tail = lines[last][node.end_col_offset :] + b"".join(lines[last + 1 :])
    return (head + by.encode() + tail).decode()


def noticed(mutant: Mutant, tests: list[str], marks: str, place: Path) -> bool:
    """Run the tests of a part against a source with the mutant in it."""
    target = place / "src" / mutant.path.relative_to(SOURCE)
    before = target.read_text()
    target.write_text(mutant.text)
    environment = {**os.environ, "PYTHONPATH": str(place / "src"), "HYPOTHESIS_SEED": "0"}
    words = ["-q", "-x", "-m", marks, "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *tests],
            cwd=place,
            env=environment,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True  # it runs for ever, which somebody would notice
    finally:
        target.write_text(before)
    return run.returncode != 0


def main() -> int:
    """Try a sample of mutants of each part, and print which survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sample", type=int, default=10, help="mutants of each part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[*PARTS], action="append")
    asked = parser.parse_args()
    killed = tried = 0
    with tempfile.TemporaryDirectory(prefix="weft-mutants-") as folder:
        place = Path(folder)
        for name in ("src", "tests", "docs"):
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, place / name)
        for part in asked.only or PARTS:
            sources, tests = PARTS[part]
            paths = [p for s in sources for p in _modules(SOURCE / s)]
            every = [mutant for path in paths for mutant in mutants_of(path)]
            random.Random(asked.seed).shuffle(every)
            marks = "not soak" if part in ON_SPARK else "not spark and not soak and not slow"
            for mutant in every[: asked.sample]:
                tried += 1
                if noticed(mutant, tests, marks, place):
                    killed += 1
                    continue
                where = f"{mutant.path.relative_to(ROOT)}:{mutant.line}"
                sys.stdout.write(f"survived {where}: {mutant.before} -> {mutant.after}\n")
                sys.stdout.flush()
            sys.stdout.write(
                f"{part}: {len(every)} mutants there are; {killed} of {tried} killed\n"
            )
            sys.stdout.flush()
    return 0 if killed == tried else 1


def _modules(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


if __name__ == "__main__":
    raise SystemExit(main())
