"""The whole site as bytes, in memory: the same input gives the same bytes."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence import files
from failure_matrix.evidence.records import Evidence
from failure_matrix.site.book import Book, state_page
from failure_matrix.site.engine import Engine, bundled
from failure_matrix.site.html import Html
from failure_matrix.site.markdown import Markdown
from failure_matrix.site.pages import Page, navigation, pages
from failure_matrix.site.svg import Drawing, alone
from failure_matrix.site.templates import builtin, told
from failure_matrix.site.words import Phrase, join, say, visible


def render(
    catalogue: Catalogue,
    evidence: Evidence,
    *,
    templates: Path | None = None,
    dot: Path | None = None,
    explain: bool = False,
) -> dict[str, bytes]:
    """Make every file of the site: relative path -> bytes.

    templates: a directory whose templates replace the built-in ones of the same name. dot: a Graphviz command
    instead of the bundled one. explain: pages name the command ``matrix explain``. Raises CouldNot.
    """
    book = Book(catalogue=catalogue, evidence=evidence, explain=explain)
    with told(), _uncollected(), ThreadPoolExecutor(1) as pool:
        made = list(pages(book))
        engine = Engine(command=dot or bundled())
        drawings = pool.submit(engine.draw, [graph for page in made for graph in page.graphs])
        texts = _markdown(book, made, templates)
        found = {f"{path}.md": "\n\n".join(blocks).encode() + b"\n" for path, blocks in texts.items()}
        found |= _html(book, made, texts, templates, drawings.result())
        found |= _pictures(made, drawings.result(), templates)
    found["style.css"] = _static("style.css", templates) + _static("diagram.css", templates)
    found["matrix.js"] = _static("matrix.js", templates)
    found["evidence.json"] = files.text(evidence).encode()
    return dict(sorted(found.items()))


def ready(*, templates: Path | None = None, dot: Path | None = None) -> None:
    """Read all templates and find the engine: what is wrong there is told before long work. Raises CouldNot."""
    with told():
        Markdown(templates).read()
        Html(templates, {}, lambda _: None).read()
    Engine(command=dot or bundled()).find()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hold back the garbage collector: views are many and live to the end, so it only finds them again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _markdown(book: Book, made: list[Page], templates: Path | None) -> dict[str, list[str]]:
    """The blocks of each page: where it stands, what it says, what it rests on."""
    writer = Markdown(templates)
    texts: dict[str, list[str]] = {}
    feet: dict[int, str] = {}
    for page in made:
        writer.turn_to(page.path)
        above = join(page.crumbs or navigation(book)[1:], " / " if page.crumbs else " · ")
        blocks = [writer.render(block.template, view=block.view) for block in page.blocks]
        depth = page.path.count("/")
        feet[depth] = feet.get(depth) or writer.render("foot", evidence=book.evidence)
        texts[page.path] = [writer.render("words", view=above), *blocks, feet[depth]]
    return texts


def _html(
    book: Book,
    made: list[Page],
    texts: Mapping[str, list[str]],
    templates: Path | None,
    drawings: Mapping[str, Drawing],
) -> dict[str, bytes]:
    def node_page(id: str) -> str | None:
        return state_page(id) if id in book.catalogue.states else None

    writer = Html(templates, drawings, node_page)
    site, links = book.catalogue.settings.title, navigation(book)
    found = {}
    for page in made:
        writer.turn_to(page.path)
        blocks = [
            writer.block(block.template, text, block.anchor, view=block.view)
            for block, text in zip(page.blocks, texts[page.path][1:-1], strict=True)
        ]
        crumbs: Phrase = join(page.crumbs, " / ")
        text = writer.page(
            page=page, crumbs=crumbs, nav=links, site=say(site).text, blocks=blocks, evidence=book.evidence
        )
        found[f"{page.path}.html"] = text.encode() + b"\n"
    return found


def _pictures(made: list[Page], drawings: Mapping[str, Drawing], templates: Path | None) -> dict[str, bytes]:
    style = _static("diagram.css", templates).decode()
    return {
        f"diagrams/{graph.name}.svg": alone(drawings[graph.name], visible(graph.caption), style).encode()
        for page in made
        for graph in page.graphs
    }


def _static(name: str, templates: Path | None) -> bytes:
    """A file that is copied as it is."""
    own = templates / "static" / name if templates else None
    return (own if own and own.is_file() else builtin() / "static" / name).read_bytes()
