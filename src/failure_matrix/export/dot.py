"""States and moves in Graphviz's DOT, a cluster for each subject."""

from __future__ import annotations

from collections.abc import Iterator

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.export.moves import arrows


def dot(catalogue: Catalogue) -> str:
    """The whole catalogue as one graph."""
    return "\n".join(_lines(catalogue)) + "\n"


def _lines(catalogue: Catalogue) -> Iterator[str]:
    yield f"digraph {_quoted(catalogue.settings.title)} {{"
    yield "  rankdir=LR;"
    yield '  node [shape=box, style=rounded, fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif"];'
    moves = arrows(catalogue)
    for subject in catalogue.subjects:
        yield f"  subgraph {_quoted(f'cluster {subject}')} {{"
        yield f"    label={_quoted(subject)};"
        for id, state in catalogue.states_of(subject).items():
            final = ", peripheries=2" if state.final else ""
            yield f"    {_quoted(id)} [label={_quoted(state.title)}{final}];"
        own = [arrow for arrow in moves if arrow.subject == subject]
        if any(arrow.start is None or arrow.end is None for arrow in own):
            yield f"    {_quoted(f'no {subject}')} [shape=point];"
        yield "  }"
        for arrow in own:
            start, end = (_quoted(f"no {subject}" if state is None else state) for state in (arrow.start, arrow.end))
            yield f"  {start} -> {end} [label={_quoted(', '.join(arrow.by))}];"
    yield "}"


def _quoted(text: str) -> str:
    plain = " ".join(text.split())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
