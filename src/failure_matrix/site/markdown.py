"""Pages as Markdown. Every value is escaped as text; markup comes from templates and from marked phrases only."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from failure_matrix.evidence.records import Verdict
from failure_matrix.site.tables import TableRow
from failure_matrix.site.templates import compile_all, environment
from failure_matrix.site.words import (
    Badge,
    Cell,
    Code,
    Link,
    Part,
    Phrase,
    Quiet,
    Strong,
    Target,
    clip,
    shortened,
    visible,
)

SYMBOLS: dict[Verdict, str] = {
    Verdict.VERIFIED: "✓",
    Verdict.WAIVED: "⚑",
    Verdict.UNREACHED: "○",
    Verdict.STALE: "◷",
    Verdict.INCOMPLETE: "◐",
    Verdict.BROKEN: "✖",
}

# What CommonMark, GFM tables and autolinks, and code hosts' own additions (math, emoji) would take for markup.
# An underscore between letters and digits is none.
_MARKUP = re.compile(
    r"""[\\`*\[\]<>|~$]
      | (?<![A-Za-z0-9])_ | _(?![A-Za-z0-9])
      | &(?=[A-Za-z0-9\#])
      | :(?=//) | (?<=mailto):|(?<=xmpp): | :(?=[\w+-]+:)
      | (?<=www)\.
      | (?<=[\w.+-])@(?=\w)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_START = re.compile(r"^(?:[-+=#!]|\d{1,9}(?=[.)]))")
quoted = lru_cache(maxsize=1 << 16)(quote)
_BAR = re.compile(r"(?<!\\)\|")
_TICKS = re.compile(r"`+")


@lru_cache(maxsize=1 << 16)  # the same titles stand on many pages
def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    shown = " ".join(visible(text).split())
    shown = _MARKUP.sub(lambda match: "\\" + match.group(), shown)
    start = _START.match(shown)
    if start:
        at = start.end() if start.group()[0].isdigit() else 0
        shown = f"{shown[:at]}\\{shown[at:]}"
    return shown


def code(text: str) -> str:
    """A code span; its fence is longer than any run of backticks inside."""
    shown = " ".join(visible(text).split()) or " "
    ticks = "`" * (max((len(run) for run in _TICKS.findall(shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fence(text: str) -> Markup:
    """A block of SQL; its fence is longer than any run of backticks inside."""
    ticks = "`" * max(3, max((len(run) for run in _TICKS.findall(text)), default=0) + 1)
    return Markup(f"{ticks}sql\n{visible(text)}\n{ticks}")


class Markdown:
    """Renders blocks for one page after the other; links are relative to the page at hand."""

    def __init__(self, templates: Path | None) -> None:
        self._environment = environment(templates, self._finalize)
        self._environment.filters.update(cell=self._cell, cells=self._cells, fence=fence)
        self._environment.globals.update(url=self.url)
        self._up = ""
        self._parts: dict[str, dict[Part, str]] = {}  # by depth of the page: the same links stand on many

    def read(self) -> None:
        """Compile every template. Raises jinja2.TemplateError."""
        compile_all(self._environment, "markdown")

    def turn_to(self, page: str) -> None:
        """Make links relative to this page from now on."""
        self._up = "../" * page.count("/")

    def render(self, template: str, **context: Any) -> str:
        """The text of one block, without white space around it."""
        return self._environment.get_template(f"markdown/{template}.md.j2").render(context).strip()

    def url(self, path: str) -> Markup:
        """A file of the site, relative to the page at hand."""
        return Markup(self._up + quoted(path))

    def _finalize(self, found: object) -> object:
        match found:
            case Markup():
                return found
            case Phrase():
                return Markup(self._phrase(found))
            case tuple():
                return Markup("; ".join(map(self._phrase, found)))
            case _:
                return Markup(escaped(str(found)))

    def _phrase(self, phrase: Phrase) -> str:
        known = self._parts.setdefault(self._up, {})
        pieces = []
        for part in phrase.parts:
            if part not in known:
                known[part] = self._part(part)
            pieces.append(known[part])
        return "".join(pieces)

    def _part(self, part: Part) -> str:
        match part:
            case str():
                return _spaced(part)
            case Code():
                return code(part.text)
            case Strong():
                return (
                    f"**{escaped(part.text)}**{' ' if part.text.endswith(' ') else ''}"
                    if part.text.strip()
                    else part.text
                )
            case Quiet():
                return _spaced(part.text)
            case Link():
                return self._link(part.text, part.to)
            case Badge():
                return f"{SYMBOLS[part.verdict]} {part.verdict}" + (f" {escaped(part.note)}" if part.note else "")

    def _link(self, text: str, to: Target) -> str:
        """A link to a page; ids exist in its HTML form only."""
        return f"[{escaped(text)}]({self.url(f'{to.page}.md')})" if to.page else escaped(text)

    def _cells(self, row: TableRow, width: int) -> Markup:
        """The cells of a row, between their bars."""
        return Markup(" | ".join(self._cell(cell, width) for cell in row.cells))

    def _cell(self, found: str | Phrase | Cell, width: int) -> Markup:
        """Something on one line of a table, cut to ``width`` characters."""
        if isinstance(found, str):
            return Markup(escaped(clip(found, width)))
        lines = found if isinstance(found, tuple) else (found,)
        shown = "; ".join(self._phrase(shortened(each, width)) for each in lines)
        # Inside a code span nothing has escaped the bar yet; a table asks for it there too.
        return Markup(_BAR.sub(r"\\|", shown) if "|" in shown else shown)


def _spaced(text: str) -> str:
    """Escaped text that keeps one blank at either end, where it joins its neighbours."""
    if not text.strip():
        return " " if text else ""
    before = " " if text[0].isspace() else ""
    after = " " if text[-1].isspace() else ""
    return before + escaped(text) + after
