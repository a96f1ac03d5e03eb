"""A table, once for Markdown and HTML."""

from __future__ import annotations

from dataclasses import dataclass

from failure_matrix.evidence.records import Verdict
from failure_matrix.site.words import Cell, Phrase


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One row; ``verdict`` tints it, ``anchor`` is its id in HTML."""

    cells: tuple[Cell, ...]
    anchor: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with its name for screen readers; the first cell of a row heads it."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    width: int = 400  # characters of a cell in Markdown


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, a paragraph, and a table where there is one."""

    title: str
    anchor: str
    text: Phrase
    table: Table | None = None
