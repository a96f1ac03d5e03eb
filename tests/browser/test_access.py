"""Every kind of page for every reader: no fault that axe-core finds, nothing cut off, nothing by colour alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.conftest import KINDS, PAGES, WIDTHS, Reader

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Scheme = Literal["light", "dark", "forced"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark", "forced")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def window(browser: Browser, width: int, scheme: Scheme) -> Page:
    dark = "dark" if scheme == "dark" else "light"
    forced = "active" if scheme == "forced" else "none"
    return browser.new_page(viewport={"width": width, "height": 900}, color_scheme=dark, forced_colors=forced)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", KINDS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_at_any_width(browser: Browser, site: Path, axe: str, scheme: Scheme, path: str) -> None:
    page = window(browser, WIDTHS[0], scheme)
    page.goto(f"file://{site}/{path}.html")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.evaluate(axe)
    found: list[str] = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
        result: dict[str, Any] = page.evaluate("options => axe.run(options)", options)
        found += [
            f"{width} px: {each['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
            for each in result["violations"]
            for node in each["nodes"][:2]
        ]
    page.close()
    assert found == []


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_scrolls_sideways(browser: Browser, site: Path, width: int) -> None:
    page = window(browser, width, "light")
    wide = []
    for path in PAGES:
        page.goto(f"file://{site}/{path}.html")
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(path)
    page.close()
    assert wide == []


def test_every_verdict_has_its_word_and_its_shape(reader: Reader) -> None:
    for path in PAGES:
        page = reader.open(path)
        for badge in page.query_selector_all(".badge"):
            verdict = (badge.get_attribute("class") or "").split("v-")[1]
            assert verdict in badge.inner_text(), path
            icon = badge.query_selector("svg")
            box = icon.bounding_box() if icon else None
            assert box is None or box["width"] >= 12, path
            assert icon, path


def test_verdicts_differ_without_colour(browser: Browser, site: Path) -> None:
    page = window(browser, 1400, "forced")
    page.goto(f"file://{site}/index.html")
    looks = {
        verdict: page.evaluate(
            "name => { const s = getComputedStyle(document.querySelector(`.counts .v-${name}`));"
            " return `${s.borderTopStyle} ${s.borderTopWidth}`; }",
            verdict,
        )
        for verdict in ("verified", "waived", "unreached", "stale", "incomplete", "broken")
    }
    page.close()
    assert looks["verified"].startswith("none")
    assert looks["waived"].startswith("dotted")
    assert looks["unreached"].startswith("dashed")
    assert looks["incomplete"].startswith("double")
    assert looks["broken"].startswith("solid")


def test_the_scheme_of_the_reader_is_kept(browser: Browser, site: Path) -> None:
    grounds = {}
    for scheme in SCHEMES[:2]:
        page = window(browser, 1400, scheme)
        page.goto(f"file://{site}/index.html")
        grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.close()
    assert grounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}


INSIDE = """
() => [...document.querySelectorAll('svg.diagram')].flatMap(svg => {
  const faults = [];
  const whole = svg.getBoundingClientRect();
  for (const text of svg.querySelectorAll('text')) {
    const size = parseFloat(getComputedStyle(text).fontSize) * whole.width / svg.viewBox.baseVal.width;
    if (size < 12) faults.push(`${text.textContent}: ${size} px`);
    const box = text.getBoundingClientRect();
    const node = text.closest('.node');
    const around = (node ? node.querySelector('path').getBoundingClientRect() : whole);
    const beside = box.left < around.left - .5 || box.right > around.right + .5;
    const above = box.top < around.top - .5 || box.bottom > around.bottom + .5;
    if (beside || above)
      faults.push(`${text.textContent}: outside`);
  }
  return faults;
})
"""


@pytest.mark.parametrize("width", [320, 1400])
def test_the_text_of_a_diagram_is_large_enough_and_inside_its_node(browser: Browser, site: Path, width: int) -> None:
    page = window(browser, width, "light")
    found = []
    for path in ("moves", "states/leased", "states/unavailable-artifact"):
        page.goto(f"file://{site}/{path}.html")
        assert page.query_selector("svg.diagram text")
        found += page.evaluate(INSIDE)
    for picture in sorted((site / "diagrams").iterdir()):
        page.goto(f"file://{picture}")
        found += page.evaluate(INSIDE)
    page.close()
    assert found == []


def test_header_cells_are_headers(reader: Reader) -> None:
    for path in PAGES:
        page = reader.open(path)
        for table in page.query_selector_all("table"):
            assert table.query_selector("caption"), path
            assert all(cell.get_attribute("scope") == "col" for cell in table.query_selector_all("thead th")), path
            for row in table.query_selector_all("tbody tr:not(.notrun)"):
                assert row.query_selector("th[scope]"), path
