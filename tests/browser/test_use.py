"""What a reader does: find the row, copy the query, go by keyboard, print, live without JavaScript."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.conftest import PAGES, Reader
from tests.site import builders

from failure_matrix.site.book import Book
from failure_matrix.site.probes import subject_probe

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def rows(page: Page) -> list[str]:
    """The rows of the matrix that can be seen."""
    found = page.query_selector_all("tr.row")
    return [row.get_attribute("id") or "" for row in found if row.is_visible()]


ALL = list(builders.catalogue().states)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("", ALL),
        ("running", ["leased", "taken-over", "expired"]),
        ("running lease passed", ["expired"]),
        ("PASSED   running", ["expired"]),
        ("stuck", ["expired"]),  # also_called
        ("worker is gone", ["expired"]),
        ("stolen", ["taken-over"]),
        ("broken", ["unavailable-artifact"]),
        ("collect", ["orphan-candidate"]),
        ("no such words", []),
    ],
)
def test_the_filter_finds_the_row_and_says_how_many(reader: Reader, words: str, wanted: list[str]) -> None:
    page = reader.open("index")
    page.get_by_label("Filter rows").fill(words)
    assert rows(page) == wanted
    status = page.get_by_role("status").inner_text()
    assert status == (f"{len(wanted)} of {len(ALL)} rows" if words else "")
    groups = [each.is_visible() for each in page.query_selector_all("tr.group")]
    assert groups == [any(id != "orphan-candidate" for id in wanted), "orphan-candidate" in wanted]


def test_a_link_to_a_row_that_is_filtered_out_finds_it(reader: Reader) -> None:
    page = reader.open("index")
    page.get_by_label("Filter rows").fill("cancelled")
    page.evaluate("location.hash = '#leased'")
    page.wait_for_function("!document.getElementById('leased').hidden")
    assert rows(page) == ALL


def test_the_jump_list_on_a_phone_follows_the_filter(reader: Reader) -> None:
    page = reader.open("index")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.locator(".jump li").count() == len(ALL)
    page.get_by_label("Filter rows").fill("stuck")
    visible = [each.inner_text() for each in page.query_selector_all(".jump li") if each.is_visible()]
    assert [text.split("\n")[0].split(" ")[0] for text in visible] == ["Expired"]


def test_copy_gives_the_query_that_psql_runs(browser: Browser, site: Path) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"file://{site}/index.html")
    page.get_by_role("button", name="Copy: Which state is this job in?").click()
    page.get_by_role("button", name="Copied. Copy: Which state is this job in?").wait_for()
    page.evaluate("document.body.append(document.createElement('textarea'))")
    page.locator("textarea").last.focus()
    page.keyboard.press("Control+V")
    book = Book(catalogue=builders.catalogue(), evidence=builders.evidence(), explain=True)
    assert page.locator("textarea").last.input_value() == subject_probe(book, "job").sql
    context.close()


def test_the_first_stop_of_the_keyboard_skips_to_the_content(reader: Reader) -> None:
    page = reader.open("states/leased")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.locator(".skip").bounding_box()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content.main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('nav').getAttribute('aria-label')") == "Breadcrumb"


def test_everything_that_acts_is_reached_by_keyboard(reader: Reader) -> None:
    page = reader.open("index")
    wanted = page.evaluate(
        "[...document.querySelectorAll('a, button, input, summary')].filter(e => e.checkVisibility()).length"
    )
    seen = set()
    for _ in range(wanted + 2):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert len(seen - {-1}) >= wanted


def test_a_broken_row_unfolds_by_keyboard(reader: Reader) -> None:
    page = reader.open("index")
    summary = page.locator("#unavailable-artifact summary")
    assert not page.locator("#unavailable-artifact details div").first.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("#unavailable-artifact details div").first.is_visible()


def test_print_keeps_every_row_and_repeats_the_header(reader: Reader) -> None:
    page = reader.open("index")
    page.get_by_label("Filter rows").fill("orphan")
    page.emulate_media(media="print")
    assert rows(page) == ALL
    assert (
        page.evaluate("getComputedStyle(document.querySelector('table.matrix thead')).display") == "table-header-group"
    )
    assert not page.locator(".filter").is_visible()
    assert not page.locator(".top").is_visible()


def test_a_narrow_sheet_is_a_table_too(reader: Reader) -> None:
    page = reader.open("index")
    page.set_viewport_size({"width": 700, "height": 900})
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('tr.row')).display") == "table-row"


def test_without_javascript_everything_stays_but_filter_and_copy(browser: Browser, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{site}/index.html")
    assert rows(page) == ALL
    assert not page.locator(".filter").is_visible()
    assert not any(each.is_visible() for each in page.query_selector_all("button"))
    page.locator("#unavailable-artifact summary").click()
    assert page.locator("#unavailable-artifact details div").first.is_visible()
    context.close()


def test_every_page_opens_without_a_complaint(reader: Reader) -> None:
    for path in PAGES:
        page = reader.open(path)
        assert page.title()
        assert page.locator("h1").count() == 1, path


def test_a_link_into_a_scenario_leads_to_its_step(reader: Reader) -> None:
    page = reader.open("states/taken-over")
    page.get_by_role("link", name="takeover-publish, step 6").first.click()
    assert page.url.endswith("/scenarios/takeover-publish.html#step-6")
    assert page.locator("#step-6").bounding_box()


@pytest.mark.parametrize("width", [390, 1400])
def test_the_row_for_a_symptom_is_on_the_first_screen_once_its_words_are_typed(reader: Reader, width: int) -> None:
    """Job says running, worker is gone."""
    page = reader.open("index")
    page.set_viewport_size({"width": width, "height": 844})
    page.get_by_label("Filter rows").fill("running gone")
    where = page.locator(".jump a" if width < 800 else "#expired").filter(has_text="Expired").first.bounding_box()
    assert where
    assert where["y"] + where["height"] < 844
