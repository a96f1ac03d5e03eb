"""Which version of what is running, for the evidence's ``run``."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path


def ours() -> str:
    return version("failure-matrix")


def commit(directory: Path) -> str | None:
    """The commit that the catalogue is checked out from, None outside of a git checkout or without git."""
    try:
        found = subprocess.run(
            ["git", "-C", str(directory), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
