"""The site as a whole: its files, its bytes, its links, its diagrams."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath

import pytest
from tests.site import builders

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import Evidence
from failure_matrix.site import render
from failure_matrix.site.book import Book
from failure_matrix.site.diagrams import neighbourhood, overview

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site() -> dict[str, bytes]:
    return render(builders.catalogue(), builders.evidence())


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found[name] or "" for name in ("href", "src") if name in found]


def test_the_files_of_a_site(site: dict[str, bytes]) -> None:
    states, scenarios = builders.catalogue().states, builders.catalogue().scenarios
    pages = ["index", "moves", "scenarios", "coverage", "owners", "verdicts"]
    pages += [f"states/{id}" for id in states] + [f"scenarios/{id}" for id in scenarios]
    wanted = {f"{page}.{ending}" for page in pages for ending in ("md", "html")}
    wanted |= {"evidence.json", "style.css", "matrix.js", "diagrams/moves-job.svg", "diagrams/moves-candidate.svg"}
    assert wanted | {f"diagrams/state-{id}.svg" for id in states} == set(site)


def test_the_same_input_gives_the_same_bytes(site: dict[str, bytes]) -> None:
    program = (
        "import hashlib; from tests.site import builders; from failure_matrix.site import render;"
        "made = render(builders.catalogue(), builders.evidence());"
        "print(hashlib.sha256(b'\\0'.join(path.encode() + b'\\0' + data for path, data in made.items())).hexdigest())"
    )
    digests = set()
    for seed in ("1", "2"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "TZ": f"UTC-{seed}",
            "LC_ALL": "C",
            "PYTHONPATH": str(ROOT),
        }
        run = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True, cwd=ROOT
        )
        digests.add(run.stdout)
    assert len(digests) == 1
    assert list(site) == sorted(site)


def test_every_link_and_fragment_resolves_and_no_id_is_twice(site: dict[str, bytes]) -> None:
    pages = {path: Page(data.decode()) for path, data in site.items() if path.endswith(".html")}
    number = 0
    for path, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), path
        for link in page.links:
            number += 1
            target, _, fragment = link.partition("#")
            file = normpath(join(dirname(path), target)) if target else path
            assert file in site, (path, link)
            assert not fragment or fragment in pages[file].ids, (path, link)
    assert number > 500


def test_html_says_when_it_was_verified_once(site: dict[str, bytes]) -> None:
    for path, data in site.items():
        if path.endswith(".html"):
            assert data.decode().count("2026-11-28 21:04 UTC") == 1, path


def test_markdown_and_html_name_the_same_states(site: dict[str, bytes]) -> None:
    rows = re.findall(r'<tr id="([^"]+)" class="row', site["index.html"].decode())
    lines = re.findall(r"^\| \[[^\]]+\]\(states/([a-z-]+)\.md\)", site["index.md"].decode(), re.MULTILINE)
    assert rows == lines == list(builders.catalogue().states)


def test_a_catalogue_without_subjects_is_a_test_suite() -> None:
    made = Catalogue.model_validate(
        {
            "catalogue": {"title": "Locks"},
            "scenarios": {"one": {"title": "One", "steps": [{"in": "A", "sql": {"text": "SELECT 1"}}]}},
        }
    )
    plain = builders.plain(made, {}) | {"scenarios": []}
    site = render(made, Evidence.model_validate(plain | {"verdict": "unreached"}))
    assert "moves.html" not in site
    assert "owners.html" not in site
    assert b"Not run in this evidence" in site["scenarios/one.md"]
    assert b"Nothing here is proven" in site["index.md"]


def test_pages_name_explain_only_where_there_is_such_a_command(site: dict[str, bytes]) -> None:
    assert not any(b"matrix explain" in data for data in site.values())
    named = render(builders.catalogue(), builders.evidence(), explain=True)
    assert b"matrix explain job 42" in named["index.html"]
    assert b"    matrix explain job 42" in named["index.md"]


def svg(data: bytes) -> ET.Element:
    return ET.fromstring(data)  # noqa: S314 - it is what we have just written


def classes(element: ET.Element) -> list[set[str]]:
    return [set(each.get("class", "").split()) for each in element.iter("{http://www.w3.org/2000/svg}g")]


def test_a_diagram_carries_verdicts_as_classes_and_as_words(site: dict[str, bytes]) -> None:
    drawn = svg(site["diagrams/moves-job.svg"])
    words = " ".join(each.text or "" for each in drawn.iter("{http://www.w3.org/2000/svg}text"))
    for id, (verdict, _) in builders.MIXED.items():
        if id != "orphan-candidate":
            assert {"node", f"v-{verdict}"} in classes(drawn)
            assert verdict in words
    assert "publish-unchecked (wrong way, stale)" in words


def test_a_diagram_alone_is_opaque_and_holds_no_link(site: dict[str, bytes]) -> None:
    for path, data in site.items():
        if path.endswith(".svg"):
            text = data.decode()
            assert re.search(r'<rect class="ground" width="\d+" height="\d+"/>', text), path
            assert "<style>" in text
            assert "<a" not in text
            assert "prefers-color-scheme: dark" in text


def test_a_diagram_in_a_page_links_its_states(site: dict[str, bytes]) -> None:
    page = site["states/expired.html"].decode()
    assert re.search(r'<g class="node v-stale">\n<a href="../states/taken-over.html">', page) or (
        '<a href="../states/taken-over.html">\n<path' in page
    )


def graph_of(number: int) -> Book:
    """A ring of states."""
    states = {f"s{n}": {"subject": "job", "title": f"State {n}", "when": {"text": "true"}} for n in range(number)}
    moves = {f"s{n}": [f"s{(n + 1) % number}"] for n in range(number)}
    made = Catalogue.model_validate(
        {
            "catalogue": {"title": "Ring"},
            "subjects": {"job": {"key": {"id": "id"}, "from": {"text": "job"}}},
            "states": states,
            "actions": {"next": {"subject": "job", "title": "Next", "moves": moves}},
        }
    )
    return Book(catalogue=made, evidence=builders.evidence(made, {}, scenarios=[]), explain=False)


def test_many_states_are_drawn_without_words_on_lines_and_more_not_at_all() -> None:
    few, many = overview(graph_of(40), "job"), overview(graph_of(300), "job")
    assert few
    assert few.edges[0].label == ("next",)
    assert many
    assert many.edges[0].label == ()
    assert overview(graph_of(301), "job") is None


def test_a_neighbourhood_has_twelve_and_says_how_many_more() -> None:
    made = builders.changed(actions={"cancel": {"moves": {"ready": ["cancelled"] + [f"s{n}" for n in range(20)]}}})
    states = made.states | {f"s{n}": made.states["expired"] for n in range(20)}
    book = Book(catalogue=made.model_copy(update={"states": states}), evidence=builders.evidence(), explain=False)
    graph = neighbourhood(book, "ready")
    assert graph
    assert len(graph.nodes) == 1 + 12 + 1
    assert graph.nodes[-1].label == ("and 11 more",)


def test_a_wide_diagram_is_drawn_from_top_to_bottom(site: dict[str, bytes]) -> None:
    wide = render(graph_of(20).catalogue, graph_of(20).evidence)["diagrams/moves-job.svg"]
    size = re.search(rb'width="(\d+)" height="(\d+)"', wide)
    assert size
    assert int(size[1]) < int(size[2])
    size = re.search(rb'width="(\d+)" height="(\d+)"', site["diagrams/state-expired.svg"])
    assert size
    assert int(size[1]) > int(size[2])


def test_an_engine_that_is_none_says_so(tmp_path: Path) -> None:
    for text, said in (
        ("#!/bin/sh\nexit 3", "exited with 3"),
        ("#!/bin/sh\ncat >/dev/null", r"gave 0 pictures for \d+"),
    ):
        engine = tmp_path / "dot"
        engine.write_text(text)
        engine.chmod(0o755)
        with pytest.raises(CouldNot, match=said):
            render(builders.catalogue(), builders.evidence(), dot=engine)
    with pytest.raises(CouldNot, match="does not start"):
        render(builders.catalogue(), builders.evidence(), dot=tmp_path / "nowhere")
