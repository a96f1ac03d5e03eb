"""Hostile values stay text, wherever they come from, in Markdown, HTML and SVG; hidden columns appear nowhere."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.site import builders
from tests.site.test_markdown import GFM

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import Evidence
from failure_matrix.site import render

VALUES = {
    "markup": "<script>alert('pwned')</script><img src=x onerror=pwned><!-- ]]> -->",
    "attribute": "\" onmouseover=\"pwned\" x='pwned' &quot;",
    "entity": "&lt;b&gt;pwned &#x3c;script&#x3e;",
    "markdown": "[pwned](javascript:pwned) ![pwned](x) **b** <http://pwned> | `pwned` ```\n# pwned\n---\n- pwned",
    "jinja": "{{ 7 * 7 }} {% raw %} {# pwned #}",
    "dot": 'pwned\\n" ]; evil [label="<b>pwned</b>"]; // \\',
    "html-label": "<<b>pwned</b>>",
    "terminal": "\x1b[31mpwned\x1b]0;pwned\x07\x9b31m",
    "direction": "\u202epwned\u2066\u200f",
    "newlines": "pwned\r\npwned\n\n    pwned\u2028pwned",
    "psql": "'; \\! pwned\n\\set x pwned",
    "nothing": "\0\ufffe\ud800",
    "long": "pwned " * 1700,
    "one-word": "p" * 10_000,
}  # fmt: skip

# what our own pages are made of
ALLOWED = {
    *(
        "a",
        "b",
        "body",
        "br",
        "button",
        "caption",
        "circle",
        "code",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "em",
        "figcaption",
    ),
    *(
        "figure",
        "footer",
        "g",
        "h1",
        "h2",
        "h3",
        "head",
        "header",
        "hr",
        "html",
        "input",
        "label",
        "li",
        "link",
        "main",
        "meta",
    ),
    *("nav", "p", "path", "polygon", "pre", "script", "section", "small", "span", "strong", "summary", "svg", "symbol"),
    *("table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul", "use"),
}


def catalogue(text: str) -> Catalogue:
    """The catalogue with this text in every field that is free to hold it."""
    seen = [{"see": text, "proves": text, "does_not_prove": text, "sql": {"text": f"SELECT 1 -- {text}"}}]
    state = {
        "title": text,
        "about": text,
        "also_called": [text],
        "observe": seen,
        "do_not": [text, text],
        "mistaken_for": {"expired": text},
        "reverse": {"publish": text},
        "retention": {"keep": text, "cost": {"text": f"SELECT 1 -- {text}"}},
        "complete_when": text,
        "when": {"text": f"job.state = 'running' -- {text}"},
    }
    action = {
        "title": text,
        "about": text,
        "sql": {"text": f"UPDATE job SET x = 1 -- {text}"},
        "requires": {"text": text},
    }
    refusal = {"means": {"leased": text, "otherwise": text}}
    made = builders.changed(
        owners={"export-worker": {"title": text, "reach": text}},
        states={"leased": state},
        actions={"publish": action | {"refusal": refusal}, "publish-unchecked": {"title": text}},
        scenarios={"acquire-once": {"title": text, "shows": [text], "does_not_show": [text]}},
        waivers={"cancelled-later": {"because": text}},
        subjects={"candidate": {"title": text}},
    )
    settings = made.settings.model_copy(update={"title": text, "about": text})
    event = made.events["lease-expires"].model_copy(update={"title": text})
    invariant = made.invariants["one-job-a-candidate"].model_copy(update={"title": text})
    exercise = made.exercises["storage-full"].model_copy(update={"title": text, "question": text, "target": text})
    takeover = made.scenarios["takeover-publish"]
    session = takeover.sessions["A"].model_copy(update={"title": text})
    return made.model_copy(
        update={
            "settings": settings,
            "events": made.events | {"lease-expires": event},
            "invariants": {"one-job-a-candidate": invariant},
            "exercises": {"storage-full": exercise},
            "scenarios": made.scenarios
            | {"takeover-publish": takeover.model_copy(update={"sessions": {"A": session}})},
        }
    )


def evidence(made: Catalogue, text: str) -> Evidence:
    """Evidence with this text wherever a database, a person or a machine could have put it."""
    failure = {"kind": "rows", "message": text, "expected": text, "observed": text, "place": text}
    error = {"severity": "ERROR", "sqlstate": "23505", "message": text, "constraint": text}
    answer = {"columns": [text], "rows": [[text], [None]]}
    key = [{"subject": "job", "key": [text], "state": "leased"}]
    change = {"subject": "job", "key": [text], "from": "ready", "to": "leased", "by": [text], "late": True}
    steps: list[dict[str, Any]] = [
        builders.step(
            1, "A", "do", "acquire", rows=1, returns=answer, notices=[text], moves=[change], **{"with": {text: text}}
        ),
        builders.step(2, text, "sql", text=text, error=error, failures=[failure], verdict="broken", seen_by={"A": key}),
        builders.step(3, None, "event", text, text=text),
        builders.step(4, None, "at", text=text) | {"at": text},
    ]
    scenario = builders.acquire_once() | {
        "verdict": "broken",
        "because": text,
        "given": key,
        "steps": steps,
        "failures": [failure],
    }
    plain = builders.plain(made, dict.fromkeys(made.states, ("broken", text)))
    plain["scenarios"] = [scenario, builders.takeover_publish()]
    cell = builders.cell("leased", text, "refused", "broken", because=text)
    plain["cells"] = [cell, cell | {"state": text, "observed": "moved", "to": [text]}, cell | {"action": text}]
    guard = builders.GUARDS[0] | {"guard": text, "function": text, "because": text, "noticed_by": [text]}
    plain["guards"] = [guard, guard | {"noticed_by": [], "outcome": "missed", "verdict": "broken"}]
    plain["population"] = [
        builders.POPULATION[0] | {"because": text, "hits": {"ready": 1, text: 1}, "offending": {text: text}}
    ]
    plain["catalogue"]["fingerprint"] = text
    plain["run"] = {
        **builders.RUN,
        "started": text,
        "postgresql": text,
        "server": text,
        "commit": text,
        "version": text,
    }
    return Evidence.model_validate(plain)


class Reader(HTMLParser):
    """Collects what would act: elements, handlers, addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.handlers.append(name)
            if name in ("href", "src"):
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")


@pytest.fixture(scope="module", params=VALUES)
def site(request: pytest.FixtureRequest) -> dict[str, bytes]:
    text = VALUES[request.param]
    if request.param == "nothing":  # pydantic's JSON has no way to say a half surrogate
        text = text.replace("\ud800", "")
    made = catalogue(text)
    return render(made, evidence(made, text), explain=True)


@pytest.fixture(scope="module")
def harmless() -> dict[str, bytes]:
    made = catalogue("plain")
    return render(made, evidence(made, "plain"), explain=True)


def test_html_has_no_element_that_we_did_not_write(site: dict[str, bytes]) -> None:
    for path, data in site.items():
        if path.endswith(".html"):
            reader = Reader()
            reader.feed(data.decode())
            assert reader.tags <= ALLOWED, path
            assert not reader.handlers, path
            assert all(re.fullmatch(r"[A-Za-z0-9_./#%-]*", address) for address in reader.addresses), path
            assert len(reader.ids) == len(set(reader.ids)), path


def test_markdown_has_no_markup_that_we_did_not_write(site: dict[str, bytes]) -> None:
    for path, data in site.items():
        if not path.endswith(".md"):
            continue
        for token in GFM.parse(data.decode()):
            for each in (token, *(token.children or ())):
                assert each.type not in ("html_block", "html_inline"), path
                for name in ("href", "src"):
                    assert "pwned" not in str(each.attrGet(name) or ""), path
            if token.type == "inline":
                assert all(
                    child.type != "image" or "diagrams/" in str(child.attrGet("src")) for child in token.children or ()
                )


def test_the_structure_of_a_page_does_not_depend_on_values(site: dict[str, bytes], harmless: dict[str, bytes]) -> None:
    for path, data in site.items():
        if path.endswith(".md"):
            assert structure(data) == structure(harmless[path]), path


def structure(page: bytes) -> list[tuple[str, str]]:
    return [(token.type, token.tag) for token in GFM.parse(page.decode())]


def test_svg_is_well_formed_and_holds_text_only(site: dict[str, bytes]) -> None:
    number = 0
    for path, data in site.items():
        if path.endswith(".svg"):
            number += 1
            root = ET.fromstring(data)  # noqa: S314 - it is what we have just written
            names = {element.tag.rsplit("}", 1)[1] for element in root.iter()}
            assert names <= {"svg", "style", "rect", "g", "path", "polygon", "text"}, path
            assert not any(
                name.startswith("on") or "href" in name for element in root.iter() for name in element.attrib
            ), path
    assert number > 5


def test_nothing_hides_or_reorders(site: dict[str, bytes]) -> None:
    for path, data in site.items():
        if path != "evidence.json":
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", data.decode()), path


def test_no_file_name_comes_from_text(site: dict[str, bytes]) -> None:
    assert all(re.fullmatch(r"[a-z0-9/.-]+", path) for path in site)


def test_an_id_too_long_for_a_file_name_has_a_page() -> None:
    id = "a" * 10_000
    plain = builders.catalogue()
    made = plain.model_copy(update={"states": plain.states | {id: plain.states["leased"]}})
    paths = render(made, builders.evidence(made))
    assert all(len(name) < 128 for path in paths for name in path.split("/"))
    assert any(path.startswith("states/aaaa") for path in paths)


def test_hidden_columns_appear_nowhere() -> None:
    made = render(builders.catalogue(), builders.evidence())
    assert builders.catalogue().subjects["job"].hide == ("job.owner",)
    for path, data in made.items():
        shown = re.sub(r"UPDATE job.*?;?\n|SELECT owner.*", "", data.decode())
        assert "job.owner" not in shown, path
