"""Owners of servers that can be killed, and places where servers have it hard."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from failure_matrix.database import hosting

OWNER = """
import sys
from pathlib import Path
from failure_matrix.database.cluster import Source, serve
prefix, dsn, work = (sys.stdin.readline().rstrip("\\n") for _ in range(3))
print("begins", flush=True)
with serve(Source(prefix=Path(prefix) if prefix else None, dsn=dsn or None)) as server:
    print(server.prefix, flush=True)
    exec(work)
    print("worked", flush=True)
    sys.stdin.read()
"""


class Owner:
    """A process that has a server; its guardian holds the same standard error and is gone at the end of that."""

    def __init__(self, place: Path, *, prefix: Path | None, dsn: str, work: str) -> None:
        self.place = place
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(place)},
        )
        assert self.process.stdin is not None
        self.process.stdin.write(f"{prefix or ''}\n{dsn}\n{work}\n")
        self.process.stdin.flush()
        assert self.line() == "begins"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def all_gone(self) -> str:
        """Wait until owner and guardian are gone; return what they wrote to standard error."""
        _, errors = self.process.communicate(timeout=50)
        return errors

    def traces(self) -> list[str]:
        """Files and processes that are still there."""
        words = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
        return [str(path) for path in self.place.iterdir()] + [line for line in words if str(self.place) in line]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a short name that everyone may enter, unlike ``tmp_path``."""
    directory = Path(tempfile.mkdtemp(prefix="place-", dir=hosting.place(None, programs=True)))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def start_owner(place: Path) -> Iterator[Callable[..., Owner]]:
    """Start owners whose servers stand in ``place``; none outlives the test."""
    started: list[Owner] = []

    def start(*, prefix: Path | None = None, dsn: str = "", work: str = "") -> Owner:
        started.append(Owner(place, prefix=prefix, dsn=dsn, work=work))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate(timeout=50)
