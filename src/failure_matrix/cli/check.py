"""``matrix check``: everything that can be said without a database."""

from __future__ import annotations

from failure_matrix.cli import options, terminal


def check(
    catalogue: options.Catalogue = options.CATALOGUE,
    form: options.Output = options.Format.TEXT,
) -> int:
    """Say everything about the catalogue that needs no database."""
    from failure_matrix.cli import findings, reading

    found = reading.findings(catalogue)
    terminal.write(findings.render(found, form))
    return int(bool(findings.errors_of(found)))
