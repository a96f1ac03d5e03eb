"""What the documentation says is what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import typer.main

from failure_matrix.catalogue import model
from failure_matrix.cli import main, report
from failure_matrix.cli.main import app
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.records import Evidence, Failure, Verdict
from failure_matrix.verify import verify

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
)


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _block(page: str, mark: str) -> str:
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w*\n(.*?)```", _read(page), re.DOTALL)
    assert found, f"{page} has no block marked {mark!r}"
    return found[1]


def test_the_readmes_example_is_the_file() -> None:
    assert _block("README.md", "file: examples/smallest/matrix.yaml") == _read("examples/smallest/matrix.yaml")


def test_the_readmes_output_is_what_is_printed(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = _read("examples/smallest/matrix.yaml")
    broken = whole.replace(" AND state = 'ready'\n", "\n")
    assert broken != whole
    Path("matrix").mkdir()
    Path("matrix", "matrix.yaml").write_text(broken, encoding="utf-8")
    from failure_matrix.catalogue.load import load  # noqa: PLC0415 - paths are relative to where we are now

    catalogue = load(Path("matrix"))
    printed = report.report(verify(catalogue, server), 80, catalogue=catalogue)
    told = "".join(f"{line}\n" for line in printed)
    assert f"\n\n{_block('README.md', 'output: examples/smallest without its guard')}\n" in told


def test_the_readme_lists_every_command() -> None:
    told = re.findall(r"^\| `matrix (\w+)", _read("README.md"), re.MULTILINE)
    assert sorted(told) == sorted(command.name or "" for command in app.registered_commands)


def test_every_option_that_the_readme_names_exists() -> None:
    group = typer.main.get_command(app)
    options = {name for command in group.commands.values() for each in command.params for name in each.opts}  # type: ignore[attr-defined]
    told = set(re.findall(r"`(--[a-z-]+)", _read("README.md")))
    assert told
    assert told <= options


def test_the_readmes_exit_codes_are_ours() -> None:
    told = set(map(int, re.findall(r"^\| (\d+) \|", _read("README.md"), re.MULTILINE)))
    assert told == {0, main.WRONG, main.COULD_NOT, main.BUG, main.INTERRUPTED}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```", "", _read(page), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, fragment = target.partition("#")
        if "://" in target:
            continue
        there = ((ROOT / page).parent / path) if path else ROOT / page
        assert there.exists(), f"{page} links {target}"
        if fragment:
            headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert fragment in slugs, f"{page} links {target}"


NOUNS = (
    model.Settings, model.Owner, model.Store, model.Subject, model.Observation, model.State, model.Action, model.Event,
    model.Refusal, model.Looks, model.StoreEffect, model.SessionSetup, model.Step, model.Scenario, model.Invariant,
    model.Exercise, model.Waiver, model.Catalogue,
)  # fmt: skip


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_the_language_page_names_every_key(noun: type[model.Noun]) -> None:
    page = _read("docs/language.md")
    keys = {info.alias or name for name, info in noun.model_fields.items() if not info.exclude}
    assert {key for key in keys if not re.search(rf"\b{key}\b", page)} == set()


def test_the_language_page_names_every_spelling_of_parameters() -> None:
    page = _read("docs/language.md")
    assert [style for style in get_args(model.ParameterStyle) if f"`{style}`" not in page] == []


def test_the_evidence_page_names_every_key_and_verdict() -> None:
    page = _read("docs/evidence.md")
    keys = set(Evidence.model_fields) - {"format"} | set(Failure.model_fields) & {"kind"}
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []
    assert [word for word in Verdict if f"| {word} |" not in page] == []
