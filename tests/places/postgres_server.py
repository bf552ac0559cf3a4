"""A PostgreSQL server of its own: a new cluster in a folder, on a free port, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from places.kafka_broker import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

MISSING = "there is no PostgreSQL server: apt-get install postgresql, or put initdb on the PATH"


def postgres_programs() -> Path | None:
    """Find the folder of initdb and pg_ctl; Debian keeps them off the PATH."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return folders[-1].parent if folders else None


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a server, and yield the address of its database."""
    programs = postgres_programs()
    assert programs is not None, MISSING
    folder, port = Path(tempfile.mkdtemp(prefix="weft-pg-")), free_port()
    # It refuses to run as root, whose tests therefore let somebody else run it.
    user = "nobody" if os.getuid() == 0 else None
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    options = f"-p {port} -k {folder} -h 127.0.0.1 -c fsync=off"

    def run(*words: str) -> None:
        subprocess.run(
            [str(programs / words[0]), "-D", str(folder / "data"), *words[1:]],
            user=user,
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    try:
        run("initdb", "-A", "trust", "-U", "weft", "--no-sync")
        run("pg_ctl", "-w", "-l", str(folder / "said"), "-o", options, "start")
        try:
            yield f"postgresql://127.0.0.1:{port}/postgres?user=weft"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
