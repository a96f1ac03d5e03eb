"""``matrix verify``: run the scenarios on a temporary database and write down what was seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from failure_matrix.cli import options, terminal


def verify(
    scenarios: Annotated[
        list[str] | None, typer.Argument(metavar="SCENARIO", help="Only these, and what they begin after.")
    ] = None,
    catalogue: options.Catalogue = options.CATALOGUE,
    evidence: Annotated[
        Path, typer.Option(envvar="MATRIX_EVIDENCE", metavar="FILE", help="Where the evidence goes, replacing it.")
    ] = options.EVIDENCE,
    output: Annotated[
        Path | None, typer.Option(envvar="MATRIX_OUTPUT", metavar="FILE", help="A fresh file for it instead.")
    ] = None,
    quick: options.Quick = False,
    jobs: options.Jobs = options.JOBS,
    require: options.Require = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Every step too, with what it left behind.")] = False,
    form: options.Output = options.Format.TEXT,
    dsn: options.Dsn = None,
    prefix: options.Prefix = None,
) -> int:
    """Run the scenarios on a temporary database; write evidence."""
    from failure_matrix.cli import items, proof, reading, report, transcript

    if output:
        proof.refuse(output)
    proof.refuse_place(output or evidence)
    sound = reading.sound(catalogue)
    server, only = proof.source(dsn, prefix), tuple(scenarios or ())
    seen = proof.prove(sound, server, only=only, quick=quick, jobs=jobs, fresh=output, kept=evidence)
    if verbose and form is options.Format.TEXT:
        terminal.write([*transcript.transcript(seen, terminal.width()), ""])
    short = report.short(seen, sound, require)
    written = str(output or evidence)
    terminal.write(report.render(seen, form, terminal.width(), catalogue=sound, written=written, short=short))
    return report.code(items.verdict(seen, sound), short)
