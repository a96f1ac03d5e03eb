"""The command line. Where ``matrix`` begins: ^C is told in one line, even before anything is loaded."""

from __future__ import annotations

import os
import sys

_INTERRUPTED = 130


def run() -> None:
    """Run ``matrix`` with this process's arguments, and leave with its exit code."""
    try:
        _open_what_is_closed()
        from failure_matrix.cli.main import run as run_main

        run_main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted. No verdict.\n")
        sys.exit(_INTERRUPTED)


def _open_what_is_closed() -> None:
    """Give a closed standard stream to nobody, so that nothing else takes its number and is written into."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for all our life
