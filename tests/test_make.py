"""The Makefile: finds a Python, says what is missing, and does nothing twice; below a path with a space too.

The Pythons here are stand-ins, so that nothing is installed: what is tested is what `make` asks of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

GOOD = """#!/bin/sh
echo "$0 $*" >> "$LOG"
if [ "$1" = --version ]; then echo "Python 3.12.0"; fi
if [ "$1" = -m ] && [ "$2" = venv ]; then
  while [ $# -gt 1 ]; do shift; done
  mkdir -p "$1/bin" && cp "$0" "$1/bin/python"
fi
"""
OLD = """#!/bin/sh
if [ "$1" = --version ]; then echo "Python 3.9.2"; exit 0; fi
exit 1
"""
BARE = """#!/bin/sh
case "$2" in *ensurepip*) exit 1;; esac
if [ "$1" = --version ]; then echo "Python 3.11.2"; fi
"""


class Checkout:
    """A copy of the build files below a path with a space, and a PATH of stand-ins."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "a checkout"
        self.directory.mkdir()
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(ROOT / name, self.directory)
        shutil.copytree(ROOT / "requirements", self.directory / "requirements")
        self.bin = directory / "bin"
        self.bin.mkdir()
        for tool in ("sh", "mkdir", "cp", "touch", "make", "rm"):
            found = shutil.which(tool)
            assert found
            (self.bin / tool).symlink_to(found)
        self.log = directory / "log"
        self.log.touch()

    def python(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(script)
        path.chmod(0o755)

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "LOG": str(self.log), "LC_ALL": "C"}
        return subprocess.run(
            [self.bin / "make", *arguments],
            cwd=self.directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[str]:
        lines = self.log.read_text().splitlines()
        self.log.write_text("")
        return lines


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_environment_is_made_from_the_locks_and_only_once(checkout: Checkout) -> None:
    checkout.python("python3", GOOD)
    done = checkout.make(".venv/.dev")
    assert done.returncode == 0, done.stderr
    installs = [call.split(" install ")[1] for call in checkout.calls() if " install " in call]
    assert installs == [
        "--require-hashes -r requirements/run.txt",
        "--no-deps --no-build-isolation --editable .",
        "--require-hashes -r requirements/dev.txt",
    ]
    assert checkout.make(".venv/.dev").returncode == 0
    assert checkout.calls() == []


def test_a_new_lock_is_installed(checkout: Checkout) -> None:
    checkout.python("python3", GOOD)
    checkout.make(".venv/.dev")
    checkout.calls()
    later = (checkout.directory / ".venv" / ".dev").stat().st_mtime + 10
    os.utime(checkout.directory / "requirements" / "dev.txt", (later, later))
    checkout.make(".venv/.dev")
    assert [call.split(" install ")[1] for call in checkout.calls()] == ["--require-hashes -r requirements/dev.txt"]


def test_a_python_that_is_too_old_is_passed_over(checkout: Checkout) -> None:
    checkout.python("python3", OLD)
    checkout.python("python3.12", GOOD)
    assert checkout.make(".venv/.made").returncode == 0
    assert all("python3.12" in call for call in checkout.calls())


def test_without_a_python_it_says_what_is_needed(checkout: Checkout) -> None:
    checkout.python("python3", OLD)
    done = checkout.make("site")
    assert done.returncode == 2
    assert "could not make an environment: no Python 3.11 or newer" in done.stderr
    assert "Python 3.9.2" in done.stderr
    assert "make PYTHON=/path/to/python3" in done.stderr
    assert not (checkout.directory / ".venv").exists()


def test_without_the_venv_module_it_says_how_to_get_it(checkout: Checkout) -> None:
    checkout.python("python3", BARE)
    done = checkout.make("test")
    assert done.returncode == 2
    assert "could not make an environment: Python 3.11.2 has no venv module" in done.stderr
    assert "apt-get install python3-venv" in done.stderr


def test_a_python_can_be_named(checkout: Checkout) -> None:
    checkout.python("python3", GOOD)
    checkout.python("my python", GOOD)
    assert checkout.make(".venv/.made", f"PYTHON={checkout.bin / 'my python'}").returncode == 0
    assert all("my python" in call for call in checkout.calls())
