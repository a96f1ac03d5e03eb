"""Permission weakens, prohibition does not: on every page, in both formats, in each verdict."""

from __future__ import annotations

import re

import pytest
from tests.site import builders

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import Evidence, Verdict, Witness
from failure_matrix.site import render
from failure_matrix.site.markdown import SYMBOLS

REASONS = {
    "waived": ("until 2027-01-31", "Waived until 2027-01-31, not proven:", "waived until 2027-01-31"),
    "unreached": ("never demonstrated", "Declared; never demonstrated:", "never demonstrated"),
    "stale": ("proven on an older schema", "Declared; proven on an older schema:", "proven on an older schema"),
    "incomplete": ("12 of 20 orders", "Proven in 12 of 20 orders only:", "12 of 20 orders only"),
}


def with_state(verdict: str, because: str | None = None) -> tuple[Catalogue, Evidence]:
    """One state, ``leased``, in a verdict; all others verified."""
    waivers = {"w": {"of": "state leased", "owner": "operator", "because": "no time", "until": "2027-01-31"}}
    made = builders.changed(waivers=waivers)
    because = because or {"incomplete": "12 of 20 orders ran", "stale": "changed since: schema job"}.get(verdict)
    return made, builders.evidence(made, {"leased": (verdict, because)})


def pages(verdict: str, because: str | None = None) -> dict[str, str]:
    return {path: data.decode() for path, data in render(*with_state(verdict, because)).items()}


def html_row(text: str, id: str) -> str:
    found = re.search(rf'<tr id="{id}" .*?</tr>', text, re.DOTALL)
    assert found
    return found.group()


def html_cell(row: str, label: str) -> str:
    found = re.search(rf'<td data-label="{label}".*?</td>', row, re.DOTALL)
    assert found
    return found.group()


def markdown_row(text: str, title: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| [{title}]"))
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("verdict", REASONS)
def test_a_row_that_is_not_verified_says_why_before_what_it_permits(verdict: str) -> None:
    note, lead, brief = REASONS[verdict]
    found = pages(verdict)
    cell = html_cell(html_row(found["index.html"], "leased"), "You may")
    assert cell.index(lead) < cell.index("Heartbeat")
    assert note in html_row(found["index.html"], "leased")
    _, _, may, _, shown = markdown_row(found["index.md"], "Leased")
    assert may.startswith(f"{brief}: ")
    assert shown.startswith(f"{SYMBOLS[Verdict(verdict)]} {verdict}")
    for path in ("states/leased.md", "states/leased.html"):
        text = found[path]
        assert text.index(lead) < text.index("Heartbeat"), path


def test_a_broken_row_says_not_to_act_and_folds_its_actions() -> None:
    found = pages("broken", "somebody moved it")
    cell = html_cell(html_row(found["index.html"], "leased"), "You may")
    assert cell.index("Do not act on this row.") < cell.index("<details>") < cell.index("Heartbeat")
    assert markdown_row(found["index.md"], "Leased")[2] == "Do not act on this row."
    text = found["states/leased.md"]
    assert text.index("Do not act on this row") < text.index("Declared, not proven") < text.index("Heartbeat")


@pytest.mark.parametrize("verdict", [*REASONS, "broken", "verified"])
def test_what_is_forbidden_stands_whatever_the_verdict(verdict: str) -> None:
    found = pages(verdict)
    assert "Start a second worker." in html_cell(html_row(found["index.html"], "leased"), "Do not")
    assert markdown_row(found["index.md"], "Leased")[3] == "Start a second worker."
    for path in ("states/leased.md", "states/leased.html"):
        assert "Start a second worker." in found[path]


def test_a_verified_row_is_plain() -> None:
    found = pages("verified")
    row = html_row(found["index.html"], "leased")
    assert "lead" not in row
    assert markdown_row(found["index.md"], "Leased")[2:] == [
        "Heartbeat, Publish, Cancel",
        "Start a second worker.",
        "✓ verified",
    ]


def test_stale_says_what_changed() -> None:
    made = builders.changed(states={"leased": {"when": {"text": "job.state = 'running' AND job.lease_until > :now"}}})
    evidence = builders.evidence(builders.catalogue(), {"leased": ("stale", "changed since: state leased, schema job")})
    text = render(made, evidence)["states/leased.md"].decode()
    assert "Last proven on an older catalogue" in text
    assert "Changed since: state leased, schema job." in text


def test_what_was_seen_but_for_a_part_is_not_called_never_demonstrated() -> None:
    evidence = builders.evidence(
        builders.catalogue(), {"leased": ("unreached", "the move by cancel to cancelled: none")}
    )
    states = tuple(
        each.model_copy(update={"witnesses": (Witness(scenario="acquire-once", step=1),)})
        if each.id == "leased"
        else each
        for each in evidence.states
    )
    text = render(builders.catalogue(), evidence.model_copy(update={"states": states}))["states/leased.md"].decode()
    assert "Not all of it was shown. The move by cancel to cancelled: none." in text
    assert "Never" not in text[: text.index("## One move away")]


def test_all_that_is_not_proven_is_counted_beside_the_rows() -> None:
    observation = {"state": "ready", "observation": 0, "verdict": "broken", "because": "it gives no row"}
    probe = {"subject": "job", "combinations": 1, "admitted": 1, "hits": {}, "verdict": "stale", "because": "older"}
    plain = builders.plain(builders.catalogue()) | {"observations": [observation], "population": [probe]}
    found = render(builders.catalogue(), Evidence.model_validate(plain))
    index, coverage = (found[path].decode() for path in ("index.md", "coverage.md"))
    assert "[1 population probe stale](coverage.md) and [1 observation broken](coverage.md)." in index
    assert (
        f"| Observation 1 of [Ready](states/ready.md) | {SYMBOLS[Verdict.BROKEN]} broken | It gives no row. |"
        in coverage
    )


def test_a_verified_row_with_a_move_that_is_not_says_so_beside_that_move() -> None:
    plain = builders.plain(builders.catalogue(), {})
    for move in plain["moves"]:
        if (move["from"], move["by"]) == ("leased", "heartbeat"):
            move |= {"verdict": "unreached", "because": "no scenario", "witnesses": []}
        if (move["from"], move["by"]) == ("leased", "cancel"):
            move |= {"verdict": "broken", "because": "it published"}
    found = {path: data.decode() for path, data in render(builders.catalogue(), Evidence.model_validate(plain)).items()}
    cell = html_cell(html_row(found["index.html"], "leased"), "You may")
    assert re.search(r"Heartbeat.*unreached.*never demonstrated.*Publish.*Cancel.*broken.*do not", cell, re.DOTALL)
    assert "Heartbeat (unreached)" in markdown_row(found["index.md"], "Leased")[2]


def test_the_headline_counts_the_rows_below_it() -> None:
    found = {path: data.decode() for path, data in render(builders.catalogue(), builders.evidence()).items()}
    rows = re.findall(r'<tr id="[^"]+" class="row v-(\w+)"', found["index.html"])
    counts = re.findall(r"(\d+) (\w+)</span></li>", found["index.html"])
    assert {verdict: int(number) for number, verdict in counts} == {verdict: rows.count(verdict) for verdict in rows}
    line = next(line for line in found["index.md"].splitlines() if line.startswith("9 states"))
    assert {verdict: int(number) for number, verdict in re.findall(r"(\d+) (\w+)[,.]", line)} == {
        verdict: rows.count(verdict) for verdict in rows
    }


def test_a_waiver_is_told_by_the_catalogue_or_else_by_the_evidence() -> None:
    made = builders.changed().model_copy(update={"waivers": {}})
    for because, lead, why in (
        (
            "until 2027-02-28: later",
            "Waived until 2027-02-28, not proven:",
            "Not proven; waived until 2027-02-28. Later.",
        ),
        ("nobody minds", "Waived, not proven:", "Not proven; waived. Nobody minds."),
    ):
        text = render(made, builders.evidence(made, {"leased": ("waived", because)}))["states/leased.md"].decode()
        assert f"**{lead}**" in text
        assert f"**{why}**" in text


def test_every_state_that_is_not_proven_is_linked_from_the_headline() -> None:
    text = render(builders.catalogue(), builders.evidence())["index.html"].decode()
    banner = text[text.index('<div class="banner') : text.index('<ul class="counts"')]
    for id in builders.MIXED:
        assert f'href="states/{id}.html"' in banner


def test_a_state_that_the_evidence_does_not_know_is_not_shown_as_proven() -> None:
    evidence = builders.all_verified()
    without = evidence.model_copy(update={"states": evidence.states[1:], "moves": evidence.moves[1:]})
    found = render(builders.catalogue(), without)
    text = found["index.md"].decode()
    assert "**Not everything here is proven.**" in text
    assert markdown_row(text, "Uncommitted materialization")[4].startswith("○ unreached")


def test_all_verified_says_so() -> None:
    text = render(builders.catalogue(), builders.all_verified())["index.md"].decode()
    assert "**Every row here is proven.** Shown: [2 scenarios](scenarios.md) on PostgreSQL 18." in text
