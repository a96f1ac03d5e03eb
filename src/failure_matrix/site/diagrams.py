"""Pictures of the moves: what is drawn, as DOT. ``engine`` lays it out, ``svg`` makes it fit a page.

Colours are in CSS only: a node or an edge carries its verdict as a class, and as a word in its label.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import graphviz

from failure_matrix.catalogue.model import ABSENT
from failure_matrix.evidence.records import Verdict
from failure_matrix.site.book import Book, Move, file_name
from failure_matrix.site.words import clip, prose, visible

# Layout takes time that grows faster than the graph. Up to the first pair a picture is drawn with all its words,
# up to the second quickly and without those of its edges, past it not at all: each state's page has its own.
MOST_NAMED = (40, 80)  # nodes, edges
MOST_DRAWN = (300, 600)
MOST_NEIGHBOURS = 12
MOST_LINES = 4  # of an edge's label

Direction = Literal["LR", "TB"]

# Measured larger than CSS shows it, so that a browser's own, wider font still fits its node.
NODE_SIZE, EDGE_SIZE = "16", "15"


@dataclass(frozen=True, kw_only=True)
class Node:
    id: str
    label: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Edge:
    from_: str
    to: str
    label: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Graph:
    """One picture; ``name`` is that of its file."""

    name: str
    caption: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    quick: bool = False  # laid out in few rounds, with straight lines


def overview(book: Book, subject: str) -> Graph | None:
    """All states and moves of a subject; None where it has no moves, or too much for a picture."""
    states = tuple(book.states_of[subject])
    moves = [move for id in states for move in book.moves_from.get(id, ()) if _known(book, move.to)]
    moves += [move for move in book.moves_from.get(ABSENT, ()) if move.to in book.states_of[subject]]
    absent = (ABSENT,) if any(ABSENT in (move.from_, move.to) for move in moves) else ()
    nodes = tuple(_node(book, id) for id in (*states, *absent))
    edges = _edges(book, moves)
    if not edges or not _within(MOST_DRAWN, nodes, edges):
        return None
    named = _within(MOST_NAMED, nodes, edges)
    return Graph(
        name=f"moves-{file_name(subject)}",
        caption=f"States and moves of {clip(subject, 60)}",
        nodes=nodes,
        edges=edges if named else tuple(replace(edge, label=()) for edge in edges),
        quick=not named,
    )


def _within(most: tuple[int, int], nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> bool:
    return len(nodes) <= most[0] and len(edges) <= most[1]


def neighbourhood(book: Book, id: str) -> Graph | None:
    """A state and what is one move away; None where nothing is."""
    found = (*book.moves_to.get(id, ()), *book.moves_from.get(id, ()))
    moves = list(dict.fromkeys(move for move in found if _known(book, move.from_) and _known(book, move.to)))
    if not moves:
        return None
    others = list(dict.fromkeys(end for move in moves for end in (move.from_, move.to) if end != id))
    kept, rest = others[:MOST_NEIGHBOURS], others[MOST_NEIGHBOURS:]
    shown = {id, *kept}
    nodes = [_node(book, id, centre=True), *(_node(book, other) for other in kept)]
    edges = list(_edges(book, (move for move in moves if move.from_ in shown and move.to in shown)))
    if rest:
        nodes.append(Node(id="and more", label=(f"and {len(rest)} more",), classes=("more",)))
        edges.append(Edge(from_=id, to="and more", label=(), classes=("more",)))
    return Graph(
        name=f"state-{file_name(id)}",
        caption=f"One move away from {clip(prose(book.catalogue.states[id].title), 60)}",
        nodes=tuple(nodes),
        edges=tuple(edges),
    )


def _known(book: Book, id: str) -> bool:
    return id in book.catalogue.states or id == ABSENT


def _node(book: Book, id: str, *, centre: bool = False) -> Node:
    if id == ABSENT:
        return Node(id=id, label=("no row",), classes=("absent",))
    state = book.catalogue.states[id]
    verdict = book.state(id).verdict
    title = textwrap.wrap(clip(prose(state.title), 54), 20) or [id]
    word = ", illegal" if state.illegal else ", final" if state.final else ""
    classes = (f"v-{verdict}", *(("centre",) if centre else ()))
    return Node(id=id, label=(*title, f"{verdict}{word}"), classes=classes)


def _edges(book: Book, moves: Iterable[Move]) -> tuple[Edge, ...]:
    """One edge for all moves between two states: the worst verdict draws it, every line says its own."""
    between: dict[tuple[str, str], list[Move]] = {}
    for move in moves:
        between.setdefault((move.from_, move.to), []).append(move)
    found = []
    for (from_, to), parallel in between.items():
        lines = [_move_label(book, move) for move in parallel[:MOST_LINES]]
        if len(parallel) > len(lines):
            lines.append(f"and {len(parallel) - len(lines)} more")
        worst = max((move.verdict for move in parallel), key=lambda verdict: verdict.badness)
        found.append(Edge(from_=from_, to=to, label=tuple(lines), classes=(f"v-{worst}",)))
    return tuple(found)


def _move_label(book: Book, move: Move) -> str:
    action = book.catalogue.actions.get(move.by)
    words = [*(["wrong way"] if action and action.instead_of else ())]
    words += [] if move.verdict is Verdict.VERIFIED else [str(move.verdict)]
    return clip(visible(move.by), 28) + (f" ({', '.join(words)})" if words else "")


def dot(graph: Graph, direction: Direction) -> str:
    """DOT for one picture. Nodes are numbered: no name from a catalogue is ever a name here."""
    font = {"fontname": "Helvetica"}
    rounds = {"nslimit": "1", "nslimit1": "1", "mclimit": "0.3", "splines": "line"} if graph.quick else {}
    made = graphviz.Digraph(
        graph_attr={"rankdir": direction, "bgcolor": "transparent", "nodesep": "0.35", "ranksep": "0.5", **rounds},
        node_attr={"shape": "box", "style": "rounded", "fontsize": NODE_SIZE, "margin": "0.18,0.09", **font},
        edge_attr={"fontsize": EDGE_SIZE, **font},
    )
    names = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        attributes = {"class": " ".join(node.classes), "URL": f"#{names[node.id]}", "tooltip": " "}
        made.node(names[node.id], label=_label(node.label), **attributes)
    for edge in graph.edges:
        made.edge(names[edge.from_], names[edge.to], label=_label(edge.label), **{"class": " ".join(edge.classes)})
    return str(made.source)


def _label(lines: tuple[str, ...]) -> str:
    """Lines of text: a backslash is a backslash, an ampersand no entity, and nothing is an HTML label."""
    return str(graphviz.nohtml("\\n".join(line.replace("\\", "\\\\").replace("&", "&amp;") for line in lines)))
