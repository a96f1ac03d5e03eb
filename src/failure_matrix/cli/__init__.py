"""The command line. Where ``matrix`` begins: ^C is told in one line, even before anything is loaded."""

from __future__ import annotations

import sys


def run() -> None:
    """Run ``matrix`` with this process's arguments, and leave with its exit code."""
    try:
        from failure_matrix.cli.main import run as run_main

        run_main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted. No verdict.\n")
        sys.exit(130)
