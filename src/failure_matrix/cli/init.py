"""``matrix init``: a small catalogue that verifies and builds at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from failure_matrix.cli import options, terminal

FILE = "queue.yaml"


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", envvar="MATRIX_CATALOGUE", help="Where the catalogue goes.")
    ] = options.CATALOGUE,
) -> int:
    """Write a small catalogue that verifies and builds at once."""
    from importlib.resources import files

    from failure_matrix.catalogue.findings import CouldNot

    path = directory / FILE
    starter = files("failure_matrix.cli").joinpath("starter.yaml").read_bytes()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise CouldNot(f"begin a catalogue in '{directory}': it is not empty", "Name another directory.")
        _write(path, starter)
    except OSError as exc:
        raise CouldNot(f"write '{path}': {exc.strerror}", "Name another directory.") from exc
    where = "" if directory == options.CATALOGUE else f" --catalogue {directory}"
    terminal.write(
        [
            f"{terminal.harmless(str(path))} is a small catalogue. Next:",
            terminal.harmless(f"  matrix verify{where}"),
            terminal.harmless(f"  matrix build{where}"),
        ]
    )
    return 0


def _write(path: Path, data: bytes) -> None:
    """Make the file, or leave none."""
    with path.open("xb") as file:
        try:
            file.write(data)
            file.flush()
        except OSError:
            path.unlink()
            raise
