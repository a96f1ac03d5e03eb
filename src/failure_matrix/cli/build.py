"""``matrix build``: verify, render, publish."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
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
    from failure_matrix.cli import reading

    sound = reading.sound(catalogue)
    if evidence:
        seen = _read(evidence, sound)
    else:
        from failure_matrix.cli import proof

        ready = partial(_ready, None if check else site, templates, dot)
        seen = proof.prove(sound, proof.source(dsn, prefix), quick=quick, jobs=jobs, meanwhile=ready)

    from failure_matrix import site as pages
    from failure_matrix.cli import publication

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

    return staleness.against(files.read(path), catalogue, datetime.now(UTC).date())


def _ready(site: Path | None, templates: Path | None, dot: Path | None) -> None:
    """Find out now what could stop the pages after a long verification."""
    from failure_matrix import site as pages

    if site is not None:
        pages.refuse(site)
    pages.ready(templates=templates, dot=dot)
