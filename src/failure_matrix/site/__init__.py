"""The site: a catalogue and what was seen of it, as Markdown, HTML and SVG, published whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import Evidence
from failure_matrix.site.compare import Difference, compare, published_run
from failure_matrix.site.publication import Published, publish, refuse
from failure_matrix.site.rendering import ready, render

__all__ = ["Difference", "Published", "build", "check", "ready", "refuse", "render"]


def build(
    catalogue: Catalogue,
    evidence: Evidence,
    site: Path,
    *,
    templates: Path | None = None,
    dot: Path | None = None,
    explain: bool = False,
    waiting: Callable[[], None] = lambda: None,
) -> Published:
    """Render the site and put it at ``site`` in one instant; see ``render`` and ``publish``. Raises CouldNot."""
    files = render(catalogue, evidence, templates=templates, dot=dot, explain=explain)
    return publish(files, site, waiting=waiting)


def check(
    catalogue: Catalogue,
    evidence: Evidence,
    site: Path,
    *,
    templates: Path | None = None,
    dot: Path | None = None,
    explain: bool = False,
) -> tuple[Difference, ...]:
    """Compare the site that would be built with the one at ``site``, its times taken over. Writes nothing."""
    run = published_run(site)
    if run is not None:
        evidence = evidence.model_copy(update={"run": run})
    return compare(render(catalogue, evidence, templates=templates, dot=dot, explain=explain), site)
