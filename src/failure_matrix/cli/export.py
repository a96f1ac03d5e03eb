"""``matrix export``: what the catalogue says, in the words of other tools."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from failure_matrix.cli import options, terminal

if TYPE_CHECKING:
    from failure_matrix.export.spec import Spec

SPECS = Path("specs")


class Kind(StrEnum):
    SPEC = "spec"
    SCHEMA = "schema"
    DOT = "dot"
    MERMAID = "mermaid"


def export(
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            help="spec: scenarios for PostgreSQL's isolationtester, a file each · schema: JSON Schema of a catalogue's"
            " files, for editors · dot, mermaid: states and moves. All but spec are printed.",
        ),
    ],
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="SCENARIO", help="Only these; for spec.")] = None,
    catalogue: options.Catalogue = options.CATALOGUE,
    into: Annotated[
        Path, typer.Option("--into", envvar="MATRIX_INTO", metavar="DIR", help="Where the .spec files go.")
    ] = SPECS,
) -> int:
    """Write the catalogue down for other tools: isolationtester, editors, Graphviz, Mermaid."""
    from failure_matrix.cli import reading

    match kind:
        case Kind.SPEC:
            _specs(catalogue, scenarios or [], into)
        case Kind.SCHEMA:
            import json

            from failure_matrix.export.schema import schema

            terminal.write(json.dumps(schema(), indent=2).splitlines())
        case Kind.DOT:
            from failure_matrix.export.dot import dot

            _print(dot(reading.sound(catalogue)))
        case Kind.MERMAID:
            from failure_matrix.export.mermaid import mermaid

            _print(mermaid(reading.sound(catalogue)))
    return 0


def _print(text: str) -> None:
    terminal.write(terminal.harmless(line) for line in text.splitlines())


def _specs(directory: Path, scenarios: list[str], into: Path) -> None:
    from failure_matrix.cli import reading
    from failure_matrix.export.spec import spec

    catalogue = reading.sound(directory)
    if unknown := [id for id in scenarios if id not in catalogue.scenarios]:
        raise typer.BadParameter(f"the catalogue has no scenario '{unknown[0]}'", param_hint="SCENARIO")
    for each in [spec(catalogue, id) for id in scenarios or catalogue.scenarios]:
        _write(each, into)
        terminal.write([terminal.harmless(str(into / f"{each.scenario}.spec"))])
        terminal.say(*(f"{each.scenario}: left out: {line}" for line in each.left_out))


def _write(spec: Spec, into: Path) -> None:
    from failure_matrix.catalogue.findings import CouldNot

    path = into / f"{spec.scenario}.spec"
    new = path.with_suffix(".spec.new")
    try:
        into.mkdir(parents=True, exist_ok=True)
        new.write_text(spec.text, encoding="utf-8", newline="\n")
        new.replace(path)
    except OSError as exc:
        raise CouldNot(f"write '{path}': {exc.strerror}", "Name another directory with --into.") from exc
