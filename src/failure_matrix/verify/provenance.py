"""When, where and with which versions evidence was made: its ``run``, all that differs from one run to the next."""

from __future__ import annotations

import platform
import subprocess
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from failure_matrix.database.cluster import Server
from failure_matrix.evidence.records import Run


class Clock:
    """When a verification began, by the calendar and by a clock that never goes back."""

    def __init__(self) -> None:
        self.started = datetime.now(UTC)
        self._began = time.monotonic()

    def run(self, server: Server, catalogue: Path) -> Run:
        """The record of a run that ends now."""
        return Run(
            started=self.started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            seconds=round(time.monotonic() - self._began, 1),
            postgresql=server.version,
            server=server.kind,
            host=platform.platform(terse=True),
            commit=_commit(catalogue),
            version=version("failure-matrix"),
        )


def _commit(directory: Path) -> str | None:
    """The commit that the catalogue is checked out from, None outside of a git checkout or without git."""
    try:
        found = subprocess.run(
            ["git", "-C", str(directory), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
