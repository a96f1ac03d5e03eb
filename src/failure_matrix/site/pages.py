"""The site as a list of pages, and a page as a list of blocks.

A block is a template's name and the view it shows. Its Markdown comes from ``markdown/<name>.md.j2``; its HTML from
``html/<name>.html.j2`` where there is one, else from its Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from failure_matrix.site.book import (
    COVERAGE,
    MATRIX,
    MOVES,
    OWNERS,
    SCENARIOS,
    TRIALS,
    VERDICTS,
    Book,
    scenario_page,
    state_page,
)
from failure_matrix.site.diagrams import Graph
from failure_matrix.site.probes import Probe
from failure_matrix.site.tables import Section, Table
from failure_matrix.site.views.lists import coverage, owners, scenario_lists, verdict_words
from failure_matrix.site.views.matrix import matrix
from failure_matrix.site.views.moves import moves
from failure_matrix.site.views.scenario import scenario
from failure_matrix.site.views.state import StateView, state
from failure_matrix.site.views.trials import TrialsView, trials
from failure_matrix.site.words import Link, Part, Target, prose


@dataclass(frozen=True, kw_only=True)
class Block:
    template: str
    view: object
    anchor: str = ""  # id of its first heading in HTML, where that is not its words


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page; ``path`` has no ending. ``crumbs`` lead to it, from the matrix on."""

    path: str
    title: str
    nav: str  # the page of the navigation that it belongs to
    crumbs: tuple[Part, ...]
    blocks: tuple[Block, ...]
    graphs: tuple[Graph, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Heading:
    text: str
    level: int = 2


def navigation(book: Book) -> tuple[Link, ...]:
    """The pages that every page names."""
    found = [Link("Matrix", Target(MATRIX))]
    if book.evidence.cells:
        found.append(Link("State × action", Target(TRIALS)))
    if book.moves:
        found.append(Link("Moves", Target(MOVES)))
    if book.catalogue.scenarios:
        found.append(Link("Scenarios", Target(SCENARIOS)))
    found.append(Link("Coverage & limits", Target(COVERAGE)))
    if book.catalogue.owners:
        found.append(Link("Owners", Target(OWNERS)))
    found.append(Link("Verdicts", Target(VERDICTS)))
    return tuple(found)


def pages(book: Book) -> Iterator[Page]:
    """Every page of the site, each made when it is asked for."""
    home = Link(prose(book.catalogue.settings.title), Target(MATRIX))
    view = matrix(book)
    yield Page(path=MATRIX, title=view.title, nav=MATRIX, crumbs=(), blocks=(Block(template="matrix", view=view),))
    if tried := trials(book):
        yield _trials(tried, home)
    if book.moves:
        yield _moves(book, home)
    if book.catalogue.scenarios:
        yield _listing(SCENARIOS, scenario_lists(book), home, "Scenarios")
    yield _listing(COVERAGE, coverage(book), home, "Coverage and limits")
    if section := owners(book):
        yield _listing(OWNERS, (section,), home, "Owners")
    yield _listing(VERDICTS, (verdict_words(),), home, "What the verdicts mean")
    for id in book.catalogue.states:
        yield _state(id, state(book, id), home)
    for id in book.catalogue.scenarios:
        yield _scenario(book, id, home)


def _listing(path: str, sections: tuple[Section, ...], home: Link, title: str) -> Page:
    blocks = [Block(template="heading", view=Heading(text=title, level=1))]
    for section in sections:
        if section.title != title:
            blocks.append(Block(template="heading", view=Heading(text=section.title), anchor=section.anchor))
        if section.text:
            blocks.append(Block(template="words", view=section.text))
        if section.table:
            blocks.append(Block(template="table", view=section.table))
    return Page(path=path, title=title, nav=path, crumbs=(home, title), blocks=tuple(blocks))


def _trials(view: TrialsView, home: Link) -> Page:
    blocks = [
        Block(template="heading", view=Heading(text="State × action", level=1)),
        Block(template="words", view=view.summary),
    ]
    if view.exceptions:
        blocks.append(Block(template="heading", view=Heading(text="Look at these first"), anchor="exceptions"))
        blocks += _tables(view.exceptions)
    for action in view.actions:
        blocks.append(Block(template="heading", view=Heading(text=action.title), anchor=action.id))
        blocks.append(Block(template="words", view=action.summary))
        blocks += _tables(action.table)
        for name, table in (("Guards", action.guards), ("Assignments", action.assignments)):
            if table:
                heading = Heading(text=f"{name} of {action.title}", level=3)
                blocks.append(
                    Block(template="heading", view=heading, anchor=f"{action.id}.{name.lower()}" if action.id else "")
                )
                blocks += _tables(table)
    if view.callers:
        blocks.append(Block(template="heading", view=Heading(text="Callers"), anchor="callers"))
        blocks += _tables(view.callers)
    crumbs = (home, "State × action")
    return Page(path=TRIALS, title="State × action", nav=TRIALS, crumbs=crumbs, blocks=tuple(blocks))


def _moves(book: Book, home: Link) -> Page:
    view = moves(book)
    blocks = [
        Block(template="heading", view=Heading(text="Moves", level=1)),
        Block(template="words", view=view.summary),
    ]
    for each in view.subjects:
        if len(view.subjects) > 1:
            blocks.append(Block(template="heading", view=Heading(text=each.subject)))
        blocks.append(Block(template="table", view=each.table))
        blocks += [Block(template="picture", view=each.graph)] if each.graph else []
        blocks += [Block(template="words", view=each.undrawn)] if each.undrawn else []
    graphs = tuple(each.graph for each in view.subjects if each.graph)
    return Page(path=MOVES, title="Moves", nav=MOVES, crumbs=(home, "Moves"), blocks=tuple(blocks), graphs=graphs)


def _state(id: str, view: StateView, home: Link) -> Page:
    blocks = [Block(template="state-head", view=view.head), Block(template="state-acts", view=view.acts), *_signs(view)]
    graph = view.moves.graph if view.moves else None
    if view.moves:
        blocks.append(Block(template="heading", view=Heading(text="One move away")))
        blocks.append(Block(template="table", view=view.moves.table))
    if graph:
        blocks.append(Block(template="picture", view=graph))
    for action in view.actions:
        blocks.append(Block(template="action", view=action, anchor=action.permit.anchor))
        blocks += _titled("What guards it", action.guards)
        blocks += _titled("If it was refused", action.means)
    blocks.append(Block(template="source", view=view.source))
    return Page(
        path=state_page(id),
        title=view.head.title,
        nav=MATRIX,
        crumbs=(home, view.head.crumb, view.head.title),
        blocks=tuple(blocks),
        graphs=(graph,) if graph else (),
    )


def _signs(view: StateView) -> Iterator[Block]:
    signs = view.signs
    yield Block(template="heading", view=Heading(text="Is it this one?"))
    if signs.unseen:
        yield Block(template="words", view=signs.unseen)
    yield from _tables(signs.observations)
    probes: tuple[Probe, ...] = (*((signs.probe,) if signs.probe else ()), *signs.queries)
    yield from (Block(template="probe", view=probe) for probe in probes)
    if signs.look_alikes:
        yield Block(template="heading", view=Heading(text="Often mistaken for"))
        yield from _tables(signs.look_alikes)
    if signs.refusals:
        yield Block(template="heading", view=Heading(text="If something was refused"))
        yield from _tables(signs.refusals)
        yield from (Block(template="probe", view=probe) for probe in signs.asks)


def _titled(title: str, table: Table | None) -> list[Block]:
    """A table under a heading of its own."""
    heading = Block(template="heading", view=Heading(text=title, level=3))
    return [heading, *_tables(table)] if table else []


def _tables(table: Table | None) -> list[Block]:
    return [Block(template="table", view=table)] if table else []


def _scenario(book: Book, id: str, home: Link) -> Page:
    view = scenario(book, id)
    blocks = [Block(template="scenario-head", view=view.head)]
    if view.transcript:
        blocks.append(Block(template="transcript", view=view.transcript))
    for order in view.orders:
        blocks.append(Block(template="heading", view=Heading(text=order.title), anchor=order.anchor))
        blocks.append(Block(template="words", view=order.text))
        blocks.append(Block(template="transcript", view=order.transcript))
    if view.replay:
        blocks.append(Block(template="replay", view=view.replay))
        blocks += [Block(template="probe", view=block) for block in view.replay.blocks]
    crumbs = (home, Link("Scenarios", Target(SCENARIOS)), id)
    return Page(path=scenario_page(id), title=view.head.title, nav=SCENARIOS, crumbs=crumbs, blocks=tuple(blocks))
