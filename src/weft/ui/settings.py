"""What a page may see, whom it answers, and whether it may change anything."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from weft.errors import InputError

MOST_FILES = 200
_MOST_BYTES = 1 << 20  # of a file of statements


@dataclass(frozen=True, slots=True)
class Settings:
    """All that `weft ui` is told."""

    roots: tuple[Path, ...] = ()  # nothing outside them is read, but for the checkpoints
    checkpoints: tuple[str, ...] = ()
    statements: str = ""  # shown first
    allow_changes: bool = False
    token: str | None = None  # asked of everybody, where there is one
    names: tuple[str, ...] = ()  # by which this machine may be called, besides its addresses

    def within(self, path: Path) -> Path:
        """Return a path without links and `..`, if it lies under a root.

        >>> Settings(roots=(Path("/data"),)).within(Path("/data/../etc/passwd"))
        Traceback (most recent call last):
        weft.errors.InputError: /etc/passwd is outside of what this page may reach
        hint: start weft ui with --root and a folder that holds it
        """
        found = path.resolve()
        if not any(found == root or root in found.parents for root in self._resolved):
            raise InputError(
                f"{found} is outside of what this page may reach",
                hint="start weft ui with --root and a folder that holds it",
            )
        return found

    @property
    def _resolved(self) -> tuple[Path, ...]:
        return tuple(root.resolve() for root in self.roots)

    def sink(self, text: str) -> str | None:
        """Return where the rows of a new query are to go: nowhere of its own, or under a root."""
        if not text:
            return None
        if "://" in text:
            raise InputError(
                f"{text} is outside of what this page may reach",
                hint="name a folder here, or add the query with weft queries add --sink",
            )
        return str(self.within(Path(text).expanduser()))

    def files(self) -> list[str]:
        """Name the files of statements under the roots, each as a root's number and a path."""
        found: list[str] = []
        for number, root in enumerate(self._resolved):
            for path in sorted((*root.glob("*.sql"), *root.glob("*/*.sql"))):
                found.append(f"{number}/{path.relative_to(root).as_posix()}")
                if len(found) == MOST_FILES:
                    return found
        return found

    def read(self, name: str) -> str:
        """Return the statements of a file that `files` named, and of no other."""
        number, _, path = name.partition("/")
        if not number.isdecimal() or int(number) >= len(self.roots) or not path.endswith(".sql"):
            raise InputError(f"there is no file {name!r}", hint="choose one of the list")
        found = self.within(self._resolved[int(number)] / path)
        if not found.is_file() or found.stat().st_size > _MOST_BYTES:
            raise InputError(
                f"{path} is no file of statements", hint="choose one of the list, of 1 MiB at most"
            )
        return found.read_text(encoding="utf-8-sig", errors="replace")

    def answers_to(self, host: str) -> bool:
        """Tell whether a Host header names this page: by an address, or by a name it was told.

        A page elsewhere can make its own name lead here, but never an address: so addresses are
        safe, and names have to be known.

        >>> page = Settings(names=("lab.example",))
        >>> [page.answers_to(h) for h in ("127.0.0.1:7700", "[::1]:7700", "lab.example:80")]
        [True, True, True]
        >>> [page.answers_to(h) for h in ("evil.example:7700", "", "127.0.0.1.evil.example")]
        [False, False, False]
        """
        name = _name_of(host)
        if name in ("localhost", *(known.lower() for known in self.names)):
            return True
        return is_address(name)


def _name_of(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def is_address(name: str) -> bool:
    """Tell whether a host is named by its address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address to listen at.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "10.0.0.7")]
    [True, True, True, False, False]
    """
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)
