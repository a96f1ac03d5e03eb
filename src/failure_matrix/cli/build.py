"""``matrix build``: verify, render, publish."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from failure_matrix.cli import options, terminal

if TYPE_CHECKING:
    from failure_matrix.catalogue.model import Catalogue
    from failure_matrix.evidence.records import Evidence


def build(
    catalogue: options.Catalogue = options.CATALOGUE,
    site: options.Site = options.SITE,
    evidence: Annotated[
        Path | None,
        typer.Option(envvar="MATRIX_EVIDENCE", metavar="FILE", help="Render this evidence; nothing is verified."),
    ] = None,
    templates: options.Templates = None,
    dot: options.Dot = None,
    quick: options.Quick = False,
    jobs: options.Jobs = options.JOBS,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; say what differs from the site.")] = False,
    dsn: options.Dsn = None,
    prefix: options.Prefix = None,
) -> int:
    """Verify, render and publish: all of the site, or nothing."""
    from failure_matrix import site as pages
    from failure_matrix.cli import publication, reading

    sound = reading.sound(catalogue)
    seen = _read(evidence, sound) if evidence else _prove(sound, dsn, prefix, quick, jobs)
    if check:
        differences = pages.check(sound, seen, site, templates=templates, dot=dot)
        terminal.write(publication.compared(differences, seen, site))
        return publication.code(seen, differences)
    published = pages.build(sound, seen, site, templates=templates, dot=dot, waiting=publication.waiting)
    terminal.write(publication.told(published, seen, site))
    return publication.code(seen)


def _read(path: Path, catalogue: Catalogue) -> Evidence:
    """Evidence of an earlier run, as it stands against the catalogue of now."""
    from failure_matrix.evidence import files, staleness

    return staleness.against(files.read(path), catalogue)


def _prove(catalogue: Catalogue, dsn: str | None, prefix: Path | None, quick: bool, jobs: int) -> Evidence:
    from failure_matrix.cli import proof

    return proof.prove(catalogue, proof.source(dsn, prefix), quick=quick, jobs=jobs)
