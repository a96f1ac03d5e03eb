"""One verification, from a server that starts to evidence that is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.cli.terminal import Progress
from failure_matrix.database import cluster
from failure_matrix.database.answers import ServerError
from failure_matrix.evidence import files
from failure_matrix.evidence.records import Evidence

refuse, refuse_place = files.refuse, files.refuse_place
_LOST = ("08", "57P")  # connection exceptions, and what a server says that stops or ends a backend


def source(dsn: str | None, prefix: Path | None) -> cluster.Source:
    """Say where the server comes from; CouldNot when that is said twice."""
    if dsn and prefix:
        raise CouldNot("choose a server: --dsn and --postgres-prefix are both given", "Give one of them.")
    return cluster.Source(dsn=dsn or None, prefix=prefix)


def prove(
    catalogue: Catalogue,
    server_source: cluster.Source,
    *,
    only: tuple[str, ...] = (),
    quick: bool = False,
    jobs: int = 1,
    fresh: Path | None = None,
    kept: Path | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Evidence:
    """Verify on a temporary database and give the evidence, written to ``fresh``, else to ``kept`` if there is one.

    ``meanwhile`` is done while the server starts.
    """
    with Progress() as progress:
        progress("starting PostgreSQL")
        with cluster.serve(server_source, meanwhile=partial(_load_and, meanwhile)) as server:
            from failure_matrix.verify import verify

            try:
                evidence = verify(catalogue, server, only=only, quick=quick, jobs=jobs, progress=progress)
            except ServerError as exc:
                raise _gone(exc) from exc
            path = fresh or kept
            if path:
                files.write(evidence, path, fresh=fresh is not None, forget=server.forget_on_death)
    return evidence


def _load_and(more: Callable[[], object]) -> None:
    """Load what verifies, which takes as long as a third of the start of a server, and do more."""
    import_module("failure_matrix.verify")
    more()


def _gone(error: ServerError) -> Exception:
    """Say that a connection of ours was lost; any other error that comes here is a bug, and stays one."""
    if not error.sqlstate.startswith(_LOST):
        return error
    return CouldNot(
        f"go on: PostgreSQL ended a connection that is no session's ({error})",
        "did the server stop, or does SQL of the catalogue end backends? If neither, run it again.",
    )
