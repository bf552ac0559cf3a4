"""The set-up scripts decide rightly on machines that lack something.

Each test builds a machine out of a folder of small commands and gives the script nothing else on
its PATH, so no answer depends on the machine that runs the tests, and nothing is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
BASH = shutil.which("bash") or "/bin/bash"
MAKE = shutil.which("make")
POSIX_TOOLS = ("awk", "bash", "cat", "cksum", "dirname", "env", "ln", "mkdir", "rm", "sed")
SETUP_FILES = ("Makefile", "pyproject.toml", "constraints.txt", "scripts")


@dataclass(frozen=True, slots=True)
class Machine:
    """A PATH of one folder, and the environment that goes with it."""

    root: Path

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def log(self) -> Path:
        return self.root / "calls.log"

    def command(self, name: str, body: str, folder: Path | None = None) -> Path:
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{BASH}\n{body}\n")
        path.chmod(0o755)
        return path

    def java(self, version: str, home: str, on_path: bool = True) -> Path:
        """Add a java that answers as the real one does, in `home`, and perhaps on the PATH."""
        folder = self.root / home
        settings = f"    java.home = {folder}\\n    java.specification.version = {version}\\n"
        self.command("java", f"printf '{settings}' >&2", folder / "bin")
        if on_path:
            (self.bin / "java").symlink_to(folder / "bin" / "java")
        return folder

    def python(self, name: str, new_enough: bool = True, venv: bool = True) -> Path:
        return self.command(
            name,
            f'case "$2" in *version_info*) exit {int(not new_enough)} ;;'
            f" *ensurepip*) exit {int(not venv)} ;; esac",
        )

    def run(self, *words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in words],
            cwd=self.root,
            env={"PATH": str(self.bin), "WEFT_JVM_DIRS": str(self.root / "jvm"), "CI": "true"}
            | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def script(self, name: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(BASH, ROOT / "scripts" / name, *words, **env)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with the tools that every system has; its user is nobody in particular."""
    made = Machine(tmp_path)
    made.bin.mkdir()
    for tool in POSIX_TOOLS:
        found = shutil.which(tool)
        assert found is not None, f"the tests need {tool}"
        (made.bin / tool).symlink_to(found)
    made.command("id", "echo 1000")
    return made


def give_apt(machine: Machine, offers: str, installs: str) -> None:
    """Add an apt-get that offers one package; installing it runs `installs`."""
    machine.command(
        "apt-get",
        f"""echo "apt-get $*" >>{machine.log}
        case "$*" in *install*{offers}) {installs} ;; *install*) exit 100 ;; esac""",
    )


def java_appears(machine: Machine, version: str) -> str:
    home = machine.java(version, home=f"staged-{version}", on_path=False)
    return f'ln -s "{home}/bin/java" "{machine.bin}/java"'


def quiet_mkdir(machine: Machine) -> None:
    """The scripts make a folder for manual pages as root; here that must not reach the system."""
    (machine.bin / "mkdir").unlink()
    machine.command("mkdir", f'echo "mkdir $*" >>{machine.log}')


def test_java_on_the_path_is_taken(machine: Machine) -> None:
    home = machine.java("17", "jdk-17")
    got = machine.script("java.sh")
    assert (got.returncode, got.stdout, got.stderr) == (0, f"{home}\n", "")


def test_java_home_is_preferred_to_the_path(machine: Machine) -> None:
    machine.java("17", "jdk-17")
    home = machine.java("21", "jdk 21", on_path=False)
    assert machine.script("java.sh", JAVA_HOME=str(home)).stdout == f"{home}\n"


def test_an_old_java_home_gives_way_and_is_named(machine: Machine) -> None:
    home = machine.java("17", "jdk-17")
    old = machine.java("1.8", "jdk-8", on_path=False)
    got = machine.script("java.sh", JAVA_HOME=str(old))
    assert got.stdout == f"{home}\n"
    assert f"JAVA_HOME={old} holds no Java 17 or newer" in got.stderr


def test_a_java_off_the_path_is_found_in_the_usual_folders(machine: Machine) -> None:
    machine.java("11", "jdk-11")
    home = machine.java("17", "jvm/java-17", on_path=False)
    assert machine.script("java.sh").stdout == f"{home}\n"


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_old_java_alone_ends_in_a_message_for_each_system(machine: Machine, version: str) -> None:
    machine.java(version, "jdk-old")
    got = machine.script("java.sh", "--install")
    assert got.returncode == 1
    assert got.stdout == ""
    for words in ("Java 17 or newer", "Debian, Ubuntu:", "Fedora:", "macOS:", "JAVA_HOME="):
        assert words in got.stderr


def test_a_java_stub_that_fails_is_no_java(machine: Machine) -> None:
    machine.command("java", "echo 'Unable to locate a Java Runtime' >&2; exit 1")
    assert machine.script("java.sh").returncode == 1


def test_root_with_apt_installs_java_17(machine: Machine) -> None:
    machine.command("id", "echo 0")
    give_apt(machine, "openjdk-17-jre-headless", java_appears(machine, "17"))
    quiet_mkdir(machine)
    got = machine.script("java.sh", "--install")
    assert (got.returncode, got.stdout) == (0, f"{machine.root}/staged-17\n")
    assert "openjdk-17-jre-headless" in machine.log.read_text()


def test_java_21_is_installed_where_17_is_not_offered(machine: Machine) -> None:
    machine.command("id", "echo 0")
    give_apt(machine, "openjdk-21-jre-headless", java_appears(machine, "21"))
    quiet_mkdir(machine)
    assert machine.script("java.sh", "--install").stdout == f"{machine.root}/staged-21\n"


def test_passwordless_sudo_serves_as_root(machine: Machine) -> None:
    machine.command("sudo", f'echo "sudo $*" >>{machine.log}; shift; [ "$1" = true ] || exec "$@"')
    give_apt(machine, "openjdk-17-jre-headless", java_appears(machine, "17"))
    quiet_mkdir(machine)
    assert machine.script("java.sh", "--install").returncode == 0
    assert "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install" in machine.log.read_text()


@pytest.mark.parametrize(
    ("words", "sudo"),
    [
        pytest.param(("--install",), None, id="no sudo"),
        pytest.param(
            ("--install",),
            '[ "$2" = true ] && exit 1; shift; exec "$@"',
            id="sudo wants a password",
        ),
        pytest.param((), 'shift; exec "$@"', id="looking only"),
    ],
)
def test_apt_is_left_alone(machine: Machine, words: tuple[str, ...], sudo: str | None) -> None:
    if sudo is not None:
        machine.command("sudo", sudo)
        (machine.bin / "true").symlink_to(shutil.which("true") or "/bin/true")
    quiet_mkdir(machine)
    give_apt(machine, "openjdk-17-jre-headless", java_appears(machine, "17"))
    assert machine.script("java.sh", *words).returncode == 1
    assert not machine.log.exists()


def test_a_failing_apt_ends_in_the_message(machine: Machine) -> None:
    machine.command("id", "echo 0")
    give_apt(machine, "nothing-at-all", "exit 0")
    quiet_mkdir(machine)
    got = machine.script("java.sh", "--install")
    assert got.returncode == 1
    assert "apt-get could not install Java" in got.stderr
    assert "macOS:" in got.stderr


def test_python_3_11_comes_before_newer_ones(machine: Machine) -> None:
    for name in ("python3", "python3.13", "python3.12"):
        machine.python(name)
    wanted = machine.python("python3.11")
    assert machine.script("python.sh").stdout == f"{wanted}\n"


def test_python3_is_taken_when_its_version_will_do(machine: Machine) -> None:
    wanted = machine.python("python3")
    assert machine.script("python.sh").stdout == f"{wanted}\n"


def test_a_shim_with_nothing_behind_it_is_passed_over(machine: Machine) -> None:
    machine.command("python3.11", "echo 'command not found' >&2; exit 127")
    wanted = machine.python("python3.12")
    assert machine.script("python.sh").stdout == f"{wanted}\n"


def test_the_named_python_is_the_only_one_considered(machine: Machine) -> None:
    machine.python("python3.11")
    named = machine.python("my python")
    assert machine.script("python.sh", WEFT_PYTHON=str(named)).stdout == f"{named}\n"
    got = machine.script("python.sh", WEFT_PYTHON="/nowhere/python3")
    assert got.returncode == 1
    assert "looked for: /nowhere/python3" in got.stderr


def test_old_python_alone_ends_in_a_message_for_each_system(machine: Machine) -> None:
    machine.python("python3", new_enough=False)
    got = machine.script("python.sh", "--install")
    assert (got.returncode, got.stdout) == (1, "")
    for words in ("Python 3.11 or newer", "Debian, Ubuntu:", "Fedora:", "macOS:", "WEFT_PYTHON="):
        assert words in got.stderr


def test_a_python_without_venv_is_named_with_the_package_it_lacks(machine: Machine) -> None:
    machine.python("python3", venv=False)
    got = machine.script("python.sh", "--install")
    assert got.returncode == 1
    assert "python3 has no venv module" in got.stderr
    assert "apt-get install python3-venv" in got.stderr


def test_root_with_apt_installs_the_venv_of_that_python(machine: Machine) -> None:
    python = machine.python("python3.12", venv=False)
    machine.command("id", "echo 0")
    give_apt(machine, "python3.12-venv", f'echo "exit 0" >"{python}"')
    quiet_mkdir(machine)
    assert machine.script("python.sh", "--install").stdout == f"{python}\n"


def copy_of_the_repository(machine: Machine) -> Path:
    """Copy what set-up reads, with a .venv whose python logs the installs and does none."""
    copy = machine.root / "a copy"
    copy.mkdir()
    for name in SETUP_FILES:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, copy / name)
    machine.java("17", "jdk-17")
    machine.command("weft", "", copy / ".venv" / "bin")
    fake_pip(machine, copy, "exit 0")
    return copy


def fake_pip(machine: Machine, copy: Path, install: str) -> None:
    body = f"""case "$*" in *"pip install"*) echo "$*" >>"{machine.log}"; {install} ;;
        *weft.cli.first_use*) echo "$*" >>"{machine.log}" ;; esac"""
    machine.command("python", body, copy / ".venv" / "bin")


def test_set_up_installs_once_and_again_only_when_the_pins_change(machine: Machine) -> None:
    copy = copy_of_the_repository(machine)

    def steps() -> int:
        got = machine.run(BASH, copy / "scripts" / "setup.sh")
        assert got.returncode == 0, got.stderr
        count = len(machine.log.read_text().splitlines()) if machine.log.exists() else 0
        machine.log.unlink(missing_ok=True)
        return count

    # pip, what builds, weft itself; and the kernels that most runs need are compiled.
    assert [steps(), steps()] == [4, 0]
    os.utime(copy / "constraints.txt")
    assert steps() == 0
    with (copy / "constraints.txt").open("a") as constraints:
        constraints.write("# changed\n")
    assert [steps(), steps()] == [4, 0]


def test_a_moved_repository_is_set_up_again(machine: Machine) -> None:
    copy = copy_of_the_repository(machine)
    machine.run(BASH, copy / "scripts" / "setup.sh")
    machine.log.unlink()
    moved = copy.rename(machine.root / "moved")
    assert machine.run(BASH, moved / "scripts" / "setup.sh").returncode == 0
    assert machine.log.exists()


def test_a_failing_pip_says_what_to_do_and_is_tried_again_next_time(machine: Machine) -> None:
    copy = copy_of_the_repository(machine)
    fake_pip(machine, copy, "echo 'ERROR: no route' >&2; exit 1")
    for _ in range(2):
        got = machine.run(BASH, copy / "scripts" / "setup.sh")
        assert got.returncode == 1
        assert got.stderr.index("ERROR: no route") < got.stderr.index("pip could not install")
        for words in ("HTTPS_PROXY", "PIP_INDEX_URL", "PIP_FIND_LINKS", "again"):
            assert words in got.stderr


def test_missing_java_is_told_before_anything_is_downloaded(machine: Machine) -> None:
    copy = copy_of_the_repository(machine)
    (machine.bin / "java").unlink()
    assert machine.run(BASH, copy / "scripts" / "setup.sh").returncode == 1
    assert not machine.log.exists()


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
def test_bare_make_lists_every_target(machine: Machine) -> None:
    assert MAKE is not None
    got = machine.run(MAKE, "-C", ROOT, "--no-print-directory", SHELL=BASH)
    assert got.returncode == 0, got.stderr
    listed = re.findall(r"^  make (\S+) +\S", got.stdout, flags=re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert listed == re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE)
    assert {"setup", "demo", "test", "lint", "bench", "soak", "clean"} < set(listed)


def test_ci_runs_make_test_and_is_executable() -> None:
    ci = ROOT / ".ci" / "run"
    assert os.access(ci, os.X_OK)
    assert ci.read_text().rstrip().endswith("make test")


def load_pin() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pin", ROOT / "scripts" / "pin.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_package_of_the_environment_is_pinned_at_its_version() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    needed: dict[str, str] = load_pin().pins(("weft-spark[dev]",))
    assert needed.items() <= pinned.items()
