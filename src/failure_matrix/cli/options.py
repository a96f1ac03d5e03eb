"""The options that several commands share, each also as ``MATRIX_…`` in the environment."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

CATALOGUE = Path("matrix")
SITE = Path("site")
EVIDENCE = Path(".matrix/evidence.json")  # where verify leaves its evidence when nothing else is said


JOBS = min(os.cpu_count() or 1, 4)


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    JUNIT = "junit"


Catalogue = Annotated[
    Path, typer.Option("--catalogue", envvar="MATRIX_CATALOGUE", metavar="DIR", help="The catalogue.")
]
Site = Annotated[Path, typer.Option("--site", envvar="MATRIX_SITE", metavar="DIR", help="The site.")]
Templates = Annotated[
    Path | None,
    typer.Option(
        "--templates", envvar="MATRIX_TEMPLATES", metavar="DIR", help="Templates that replace ours, one by one."
    ),
]
Dot = Annotated[
    Path | None,
    typer.Option(
        "--dot", envvar="MATRIX_DOT", metavar="FILE", help="A Graphviz command instead of the bundled engine."
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", envvar="MATRIX_QUICK", help="Leave sweep, guards and orders out; incomplete then.")
]
Jobs = Annotated[
    int, typer.Option("--jobs", envvar="MATRIX_JOBS", min=1, metavar="N", help="Databases that are used at once.")
]
Require = Annotated[
    int | None,
    typer.Option(
        "--require",
        envvar="MATRIX_REQUIRE",
        min=0,
        max=100,
        metavar="PERCENT",
        help="Coverage of every kind that is asked for, instead of the catalogue's.",
    ),
]
Output = Annotated[Format, typer.Option("--format", envvar="MATRIX_FORMAT", help="How the result is printed.")]
Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        envvar="MATRIX_DSN",
        metavar="DSN",
        help="A running server; only databases of our own are made there, and dropped.",
    ),
]
Prefix = Annotated[
    Path | None,
    typer.Option(
        "--postgres-prefix",
        envvar="MATRIX_POSTGRES_PREFIX",
        metavar="DIR",
        help="A PostgreSQL installation with bin/initdb; without it the server that came with the package.",
    ),
]
