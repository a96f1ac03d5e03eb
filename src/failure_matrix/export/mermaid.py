"""States and moves as a Mermaid state diagram, which code hosts draw."""

from __future__ import annotations

from collections.abc import Iterator

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.export.moves import arrows

_PLAIN = frozenset(" -_.,()")


def mermaid(catalogue: Catalogue) -> str:
    """The whole catalogue as one diagram, a composite state for each subject."""
    return "\n".join(_lines(catalogue)) + "\n"


def _lines(catalogue: Catalogue) -> Iterator[str]:
    yield "stateDiagram-v2"
    moves = arrows(catalogue)
    for subject in catalogue.subjects:
        yield f"  state {_text(subject)} as subject_{_name(subject)} {{"
        for id, state in catalogue.states_of(subject).items():
            yield f"    state {_text(state.title)} as {_name(id)}"
        for arrow in moves:
            if arrow.subject == subject:
                start, end = ("[*]" if state is None else _name(state) for state in (arrow.start, arrow.end))
                yield f"    {start} --> {end} : {', '.join(arrow.by)}"
        yield "  }"


def _name(id: str) -> str:
    """An id as Mermaid takes it: no id has an underscore, so none is taken twice. Words of its own get one too."""
    return "s_" + id.replace("-", "_")


def _text(text: str) -> str:
    """Any text, with every character that means something written as its number."""
    plain = " ".join(text.split())
    return '"' + "".join(each if each.isalnum() or each in _PLAIN else f"#{ord(each)};" for each in plain) + '"'
