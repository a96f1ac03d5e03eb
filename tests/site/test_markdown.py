"""The Markdown twin: text stays text, tables are whole, links lead somewhere on a code host."""

from __future__ import annotations

import html
import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.site import builders

from failure_matrix.site import render
from failure_matrix.site.markdown import code, escaped, fence
from failure_matrix.site.words import visible

GFM = MarkdownIt("gfm-like", {"html": True, "linkify": False})
TAG = re.compile(r"<[^>]+>")


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    made = render(builders.catalogue(), builders.evidence())
    return {path: data.decode() for path, data in made.items() if path.endswith(".md")}


def shown(markdown: str) -> str:
    """What a reader sees of one paragraph; an element other than the paragraph's is markup that got through."""
    page = GFM.render(markdown)
    assert set(TAG.findall(page)) <= {"<p>", "</p>"}, page
    return html.unescape(TAG.sub("", page)).strip()


@pytest.mark.parametrize(
    "text",
    [
        "*bold* _it_ `code` ~~gone~~",
        "# heading",
        "- item",
        "+ item",
        "1. one",
        "12) twelve",
        "> quote",
        "---",
        "===",
        "[a](http://b)",
        "![a](b)",
        "<b>bold</b> <script>alert(1)</script>",
        "&lt; &#60; &amp; & co",
        "a | b",
        "a \\| b",
        "$x$ and $$y$$",
        "lease_until, _x_ and __init__",
        ":smile: at 12:30",
        "C:\\path\\",
        "<http://example.org> and <!-- -->",
        "[x]: http://example.org",
        "{{ braces }} {% raw %}",
    ],
)
def test_markup_in_a_value_is_text(text: str) -> None:
    assert shown(escaped(text)) == text
    assert shown(f"before {escaped(text)} after") == f"before {text} after"


@given(st.text(min_size=1))
def test_any_value_is_text(text: str) -> None:
    wanted = " ".join(visible(text).split())
    assert shown(f"x {escaped(text)} x").split() == f"x {wanted} x".split()


@given(st.text(alphabet="*_`[]()<>#+-.!|~&:@$\\ \n1ab", min_size=1, max_size=12))
def test_any_markup_is_text(text: str) -> None:
    assert shown(f"{escaped(text)} x").split() == f"{text} x".split()


def test_what_would_become_a_link_by_itself_does_not() -> None:
    linking = MarkdownIt("commonmark", {"linkify": False})
    for text in ("http://example.org", "www.example.org", "me@example.org", "mailto:me@example.org"):
        assert "\\" in escaped(text)
        assert "<a" not in linking.render(escaped(text))


@given(st.text(min_size=1))
def test_any_code_is_code(text: str) -> None:
    page = GFM.render(f"x {code(text)} x")
    found = re.fullmatch(r"<p>x <code>(.*)</code> x</p>\n", page, re.DOTALL)
    assert found, page
    assert html.unescape(found[1]).split() == visible(text).split()


@given(st.text())
def test_any_sql_stays_in_its_fence(text: str) -> None:
    page = GFM.render(f"{fence(text)}\n\nafter")
    assert page.count("<pre>") == 1
    assert page.endswith("</pre>\n<p>after</p>\n")


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a page as rows of cells, as a table's own reader parts them."""
    found: list[list[list[str]]] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if fenced or not line.startswith("|"):
            if found and found[-1]:
                found.append([])
            continue
        found = found or [[]]
        found[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return [table for table in found if table]


def test_every_row_of_a_table_has_its_columns(site: dict[str, str]) -> None:
    number = 0
    for path, text in site.items():
        for table in tables(text):
            number += 1
            assert {len(row) for row in table} == {len(table[0])}, (path, table)
            assert all(set(cell) == {"-"} for cell in table[1]), path
    assert number > 20


def test_the_matrix_has_five_columns_of_forty_characters(site: dict[str, str]) -> None:
    rows = [row for table in tables(site["index.md"]) for row in table if len(row) == 5]
    assert rows[0] == ["State", "You see", "You may", "Do not", "Verdict"]
    for row in rows:
        for cell in row:
            assert len(re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell).replace("\\", "")) <= 40, cell


def test_no_page_holds_html(site: dict[str, str]) -> None:
    for path, text in site.items():
        for token in GFM.parse(text):
            kinds = {token.type, *(child.type for child in token.children or ())}
            assert not kinds & {"html_block", "html_inline"}, path


def headings(text: str) -> set[str]:
    return {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    }


def test_every_link_leads_somewhere_on_a_code_host() -> None:
    made = render(builders.catalogue(), builders.evidence())
    number = 0
    for path, data in made.items():
        if not path.endswith(".md"):
            continue
        for child in (child for token in GFM.parse(data.decode()) for child in token.children or ()):
            href = str(child.attrGet("href") or child.attrGet("src") or "")
            if child.type not in ("link_open", "image"):
                continue
            number += 1
            target, _, fragment = href.partition("#")
            file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            assert file in made, (path, href)
            assert not fragment or fragment in headings(made[file].decode()), (path, href)
    assert number > 100


def test_fingerprints_are_carried_and_times_are_not(site: dict[str, str]) -> None:
    for path, text in site.items():
        assert "Catalogue `3f9a1c2e77b04d15`, PostgreSQL 18" in text, path
        assert "2026-11-28" not in text, path
        assert "18.6" not in text, path


def test_the_other_pages_are_linked_from_the_first(site: dict[str, str]) -> None:
    for path in ("moves", "scenarios", "coverage", "owners", "verdicts"):
        assert f"]({path}.md)" in site["index.md"]
