"""What tests of several parts share: one temporary server for the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from failure_matrix.database.cluster import Server, Source, serve


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server that tests use: from MATRIX_POSTGRES_PREFIX where that is set, else the embedded one."""
    prefix = os.environ.get("MATRIX_POSTGRES_PREFIX")
    with serve(Source(prefix=Path(prefix) if prefix else None)) as running:
        yield running
