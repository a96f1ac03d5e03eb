"""Pages as HTML: a block's own template where it has one, else its Markdown through markdown-it-py."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup
from pygments.lexers import PostgresLexer
from pygments.token import Comment, Keyword, Number, String, _TokenType

from failure_matrix.evidence.records import Verdict
from failure_matrix.site.diagrams import Graph
from failure_matrix.site.markdown import quoted
from failure_matrix.site.svg import Drawing, inline
from failure_matrix.site.tables import TableRow
from failure_matrix.site.templates import compile_all, environment
from failure_matrix.site.words import Badge, Code, Link, Part, Phrase, Quiet, Strong, Target, clip, visible

_LEXER = PostgresLexer(stripnl=False, ensurenl=False)
_CLASSES = ((Comment, "comment"), (String, "string"), (Number, "number"), (Keyword, "word"))
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"})


def escaped(text: str) -> str:
    """Text that HTML shows as it is, in an element or a quoted attribute."""
    return visible(text).translate(_ESCAPES)


@lru_cache(maxsize=4096)
def sql(text: str) -> Markup:
    """SQL with its words in classes."""
    pieces = []
    for kind, piece in _LEXER.get_tokens(visible(text)):
        found, shown = _class(kind), piece.translate(_ESCAPES)
        pieces.append(f'<span class="sql-{found}">{shown}</span>' if found else shown)
    return Markup("".join(pieces))


@lru_cache
def _class(kind: _TokenType) -> str:
    return next((name for parent, name in _CLASSES if parent in kind.split()), "")


def slug(text: str) -> str:
    """The id that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


class Html:
    """Renders blocks and whole pages; links are relative to the page at hand."""

    def __init__(
        self, templates: Path | None, drawings: Mapping[str, Drawing], node_page: Callable[[str], str | None]
    ) -> None:
        self._environment = environment(templates, self._finalize)
        self._environment.filters.update(sql=sql, clip=clip, cells=self._cells)
        self._environment.globals.update(href=self.href, url=self.url, picture=self._picture, verdicts=tuple(Verdict))
        self._drawings = drawings
        self._node_page = node_page
        self._markdown = _markdown()
        self._own: dict[str, jinja2.Template | None] = {}
        self._up = ""
        self._parts: dict[str, dict[Part, str]] = {}  # by depth of the page: the same links stand on many
        self._taken: set[str] = set()

    def read(self) -> None:
        """Compile every template. Raises jinja2.TemplateError."""
        compile_all(self._environment, "html")

    def turn_to(self, page: str) -> None:
        """Make links relative to this page from now on."""
        self._up = "../" * page.count("/")
        self._taken = set()

    def block(self, template: str, text: str, anchor: str, **context: Any) -> Markup:
        """One block: by its own template, or from its Markdown ``text``. ``anchor`` is the id of its first heading."""
        own = self._template(template)
        if own is not None:
            return Markup(own.render(context))
        return Markup(self._markdown.render(text, {"taken": self._taken, "anchor": anchor}))

    def page(self, **context: Any) -> str:
        """The whole page around its blocks."""
        return self._environment.get_template("html/shell.html.j2").render(context)

    def _template(self, name: str) -> jinja2.Template | None:
        if name not in self._own:
            try:
                self._own[name] = self._environment.get_template(f"html/{name}.html.j2")
            except jinja2.TemplateNotFound:
                self._own[name] = None
        return self._own[name]

    def url(self, path: str) -> Markup:
        """A file of the site, relative to the page at hand."""
        return Markup(self._up + quoted(path))

    def href(self, to: Target) -> Markup:
        """A page and an id on it, relative to the page at hand."""
        return Markup(self._to(to))

    def _to(self, to: Target) -> str:
        anchor = f"#{quoted(to.anchor)}" if to.anchor else ""
        return f"{self._up}{quoted(to.page)}.html{anchor}" if to.page else anchor

    def _picture(self, graph: Graph) -> Markup:
        def page(number: int) -> str | None:
            found = self._node_page(graph.nodes[number].id)
            return self._to(Target(found)) if found else None

        return Markup(inline(self._drawings[graph.name], visible(graph.caption), page))

    def _finalize(self, found: object) -> object:
        match found:
            case Markup():
                return found
            case Phrase():
                return Markup(self._phrase(found))
            case tuple():
                return Markup("<br>".join(map(self._phrase, found)))
            case str():
                return visible(found)
            case _:
                return found

    def _cells(self, row: TableRow, columns: tuple[str, ...]) -> Markup:
        """The cells of a row: the first heads it, the others say which column they are of."""
        first, *others = ("<br>".join(map(self._phrase, cell)) for cell in row.cells)
        labels = map(escaped, columns[1:])
        found = (f'<td data-label="{label}">{cell}</td>' for label, cell in zip(labels, others, strict=True))
        return Markup(f'<th scope="row">{first}</th>{"".join(found)}')

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
                return escaped(part)
            case Code():
                return f"<code>{escaped(part.text)}</code>"
            case Strong():
                return f"<strong>{escaped(part.text)}</strong>"
            case Quiet():
                return f'<span class="quiet">{escaped(part.text)}</span>'
            case Link():
                return f'<a href="{self._to(part.to)}">{escaped(part.text)}</a>'
            case Badge():
                return badge(part)


def badge(found: Badge) -> str:
    """A verdict: its shape, its word, and its note beside it."""
    icon = f'<svg class="icon" width="14" height="14" aria-hidden="true"><use href="#icon.{found.verdict}"/></svg>'
    note = f' <span class="note">{escaped(found.note)}</span>' if found.note else ""
    return f'<span class="badge v-{found.verdict}">{icon}{found.verdict}</span>{note}'


def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    made.core.ruler.push("headings", _name_headings)
    made.core.ruler.push("links", _turn_links)
    made.add_render_rule("fence", _fence)
    return made


def _name_headings(state: Any) -> None:
    """Give each heading the id that a code host gives it, or the one that is asked for; none twice on a page."""
    taken: set[str] = state.env["taken"]
    for token, following in zip(state.tokens, state.tokens[1:], strict=False):
        if token.type == "heading_open":
            words = "".join(
                child.content for child in following.children or () if child.type in ("text", "code_inline")
            )
            base = state.env.pop("anchor", "") or slug(words)
            name, number = base, 0
            while name in taken:
                number += 1
                name = f"{base}-{number}"
            taken.add(name)
            token.attrSet("id", name)


def _turn_links(state: Any) -> None:
    """Point links at the HTML form of a page."""
    for child in _children(state.tokens):
        if child.type == "link_open":
            href = str(child.attrGet("href") or "")
            if href.endswith(".md") and "//" not in href:
                child.attrSet("href", href[:-3] + ".html")


def _children(tokens: Iterable[Token]) -> Iterable[Token]:
    for token in tokens:
        yield from token.children or ()


def _fence(
    _: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: MutableMapping[str, Any]
) -> str:
    return f'<pre class="sql"><code>{sql(tokens[index].content)}</code></pre>\n'
