"""A real browser on a site as it is published: from files, without a server."""

from __future__ import annotations

import importlib.util
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.site import builders

from failure_matrix.site import build

CHROMIUM = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")

KINDS = (
    "index",
    "actions",
    "moves",
    "scenarios",
    "coverage",
    "owners",
    "verdicts",
    "scenarios/takeover-publish",
    "states/taken-over",
    "states/unavailable-artifact",
)
# a page of each kind, and of the states one in each verdict
PAGES = (
    *KINDS,
    "scenarios/acquire-once",
    *(
        f"states/{id}"
        for id in ("uncommitted-materialization", "leased", *builders.MIXED)
        if f"states/{id}" not in KINDS
    ),
)
WIDTHS = (320, 390, 768, 1024, 1400)


def missing(what: str) -> None:
    """Say loudly what is not there; in CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(f"could not test in a browser: {what}")
    pytest.skip(f"NOT TESTED IN A BROWSER: {what}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        missing("there is no Chromium (Debian, Ubuntu: apt-get install chromium)")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    spec = importlib.util.find_spec("axe_playwright_python")
    places = spec.submodule_search_locations if spec else None
    if not places:
        missing("there is no axe-core (python -m pip install axe-playwright-python)")
    assert places
    return (Path(next(iter(places))) / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site in which each verdict occurs."""
    path = tmp_path_factory.mktemp("browser") / "site"
    build(builders.catalogue(), builders.tried(), path, explain=True)
    return path


class Reader:
    """Opens pages of the site in one window; what the page complains of is a failure."""

    def __init__(self, page: Page, site: Path) -> None:
        self.page = page
        self._site = site
        self.complaints: list[str] = []
        page.on("console", lambda said: self.complaints.append(said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.complaints.append(request.url))

    def open(self, path: str, fragment: str = "") -> Page:
        self.page.goto(f"file://{self._site}/{path}.html{fragment}")
        return self.page


@pytest.fixture
def reader(browser: Browser, site: Path) -> Iterator[Reader]:
    with warnings.catch_warnings():
        page = browser.new_page(viewport={"width": 1400, "height": 900})
    found = Reader(page, site)
    yield found
    page.close()
    assert found.complaints == []
