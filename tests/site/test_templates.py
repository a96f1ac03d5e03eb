"""Single templates can be replaced; one that is wrong says where."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.site import builders

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.site import render


def rendered(directory: Path, name: str, text: str) -> dict[str, str]:
    (directory / name).parent.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)
    made = render(builders.catalogue(), builders.evidence(), templates=directory)
    return {path: data.decode() for path, data in made.items()}


def test_one_template_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    made = rendered(tmp_path, "markdown/picture.md.j2", "See {{ view.caption }}.")
    assert "See One move away from Leased." in made["states/leased.md"]
    assert "# Leased" in made["states/leased.md"]


def test_a_block_without_an_html_form_can_be_given_one(tmp_path: Path) -> None:
    made = rendered(tmp_path, "html/action.html.j2", "<p class='own'>{{ view.sql }}</p>")
    assert "<p class='own'>UPDATE job SET lease_until = :now + 10" in made["states/leased.html"]
    assert "## Heartbeat" in made["states/leased.md"]


def test_the_style_is_replaced(tmp_path: Path) -> None:
    assert rendered(tmp_path, "static/style.css", "body {}")["style.css"].startswith("body {}")


def test_values_are_escaped_in_a_template_of_ones_own(tmp_path: Path) -> None:
    made = builders.changed(states={"ready": {"when": {"text": "job.state <> '*x*'"}}})
    for name in ("markdown/source.md.j2", "html/source.html.j2"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("own: {{ view.predicate }}")
    site = render(made, builders.evidence(), templates=tmp_path)
    assert "own: job.state \\<\\> '\\*x\\*'" in site["states/ready.md"].decode()
    assert "own: job.state &lt;&gt; &#39;*x*&#39;" in site["states/ready.html"].decode()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("markdown/action.md.j2", "one\n\n{{ view.nothing }}", r"action.md.j2', line 3: .*has no attribute 'nothing'"),
        ("html/table.html.j2", "\n{{ missing }}", r"table.html.j2', line 2: 'missing' is undefined"),
        ("html/shell.html.j2", "{% if %}", r"shell.html.j2', line 1: Expected an expression"),
        ("markdown/matrix.md.j2", "{% include 'absent' %}", r"find template 'absent'"),
        ("html/matrix.html.j2", "{{ 'x' | unknown }}", r"matrix.html.j2', line 1: No filter named 'unknown'"),
    ],
)
def test_a_template_that_is_wrong_says_where(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(CouldNot, match=said):
        rendered(tmp_path, name, text)


def test_templates_must_be_a_directory(tmp_path: Path) -> None:
    with pytest.raises(CouldNot, match="it is not a directory"):
        render(builders.catalogue(), builders.evidence(), templates=tmp_path / "nowhere")
