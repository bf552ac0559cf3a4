"""Write constraints.txt from the packages that are installed in the running environment.

Run it with `.venv/bin/python scripts/pin.py` after upgrading something there. Only what
`weft-spark[dev]` and its build need is written, so a package tried out by hand never becomes a pin.
"""

from __future__ import annotations

import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOTS = ("weft-spark[dev]", "hatchling", "pip", "setuptools")
CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
HEADER = """\
# The whole development environment, pinned. Written by scripts/pin.py; see CONTRIBUTING.md.
"""


def pins(roots: tuple[str, ...] = ROOTS) -> dict[str, str]:
    """Return the installed version of every package that `roots` need here, without weft itself."""
    versions: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(root) for root in roots]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in seen:
            continue
        seen.add((name, frozenset(wanted.extras)))
        installed = distribution(name)
        versions[name] = installed.version
        waiting += [
            need
            for need in map(Requirement, installed.requires or ())
            if need.marker is None
            or any(need.marker.evaluate({"extra": extra}) for extra in (wanted.extras or {""}))
        ]
    del versions["weft-spark"]
    return versions


def main() -> None:
    """Write the file and say how many packages it pins."""
    versions = pins()
    lines = [f"{name}=={version}\n" for name, version in sorted(versions.items())]
    CONSTRAINTS.write_text(HEADER + "".join(lines), encoding="utf-8")
    sys.stdout.write(f"{CONSTRAINTS.name}: {len(versions)} packages\n")


if __name__ == "__main__":
    main()
