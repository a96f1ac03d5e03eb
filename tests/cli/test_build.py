"""`matrix build`: the site is what the evidence says, or nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from failure_matrix.cli.main import main
from failure_matrix.database import cluster
from failure_matrix.evidence import files


@pytest.fixture
def catalogue(here: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["init"]) == 0
    capsys.readouterr()
    return here / "matrix" / "queue.yaml"


def _tree(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("catalogue")
def test_it_verifies_and_publishes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].startswith("site: published, ")
    assert out.splitlines()[-1].startswith("verified: ")
    assert err == ""
    assert files.read(Path("site/evidence.json")).verdict == "verified"
    assert "Ready" in Path("site/index.md").read_text(encoding="utf-8")
    assert "Ready" in Path("site/index.html").read_text(encoding="utf-8")
    assert not Path(".matrix").exists()


@pytest.mark.usefixtures("catalogue")
def test_check_writes_nothing_and_says_what_differs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "--check"]) == 1
    assert "site/index.html: missing" in capsys.readouterr().out
    assert sorted(path.name for path in here.iterdir()) == ["matrix"]
    assert main(["build"]) == 0
    capsys.readouterr()
    assert main(["build", "--check"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "site is what the catalogue gives."
    page = Path("site/index.md")
    page.write_text(page.read_text(encoding="utf-8").replace("Ready", "Steady", 1), encoding="utf-8")
    before = _tree(here)
    assert main(["build", "--check"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("site/index.md:")
    assert "run matrix build and commit what it writes" in out
    assert _tree(here) == before


@pytest.mark.usefixtures("catalogue")
def test_pages_are_the_same_from_evidence_that_was_written_down(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys are sorted in the file: nothing on a page may hang on their order."""
    assert main(["build"]) == 0
    assert main(["build", "--check", "--evidence", str(here / "site" / "evidence.json")]) == 0, capsys.readouterr().out


@pytest.mark.usefixtures("catalogue")
def test_given_evidence_is_rendered_without_a_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a server was started for nothing")

    assert main(["verify", "--output", "e.json"]) == 0
    monkeypatch.setattr(cluster, "serve", started)
    assert main(["build", "--evidence", "e.json", "--site", "pages"]) == 0
    assert Path("pages/evidence.json").read_bytes() == Path("e.json").read_bytes()
    capsys.readouterr()
    assert main(["build", "--evidence", "e.json", "--site", "pages"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("pages: unchanged, ")


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--templates", "own"], "could not read template 'own/markdown/matrix.md.j2', line 1: "),
        (["--dot", "no/dot"], "could not draw the diagrams: 'no/dot' does not start"),
        (["--site", "own"], "could not publish to 'own': it holds files and no manifest of ours"),
    ],
)
def test_what_pages_need_is_looked_at_before_anything_is_verified(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    def verified(*_: object, **__: object) -> NoReturn:
        raise AssertionError("it was verified for nothing")

    Path("own/markdown").mkdir(parents=True)
    Path("own/markdown/matrix.md.j2").write_text("{% if %}", encoding="utf-8")
    monkeypatch.setattr("failure_matrix.verify.verify", verified)
    assert main(["build", *options]) == 2
    assert capsys.readouterr().err.startswith(said)
    assert not Path("site").exists()


@pytest.mark.usefixtures("catalogue")
def test_evidence_that_is_none_leaves_the_site_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build"]) == 0
    before = _tree(Path("site"))
    Path("e.json").write_text('{"format": "failure-matrix/evidence/1"', encoding="utf-8")
    capsys.readouterr()
    assert main(["build", "--evidence", "e.json"]) == 2
    assert capsys.readouterr().err.startswith("could not read evidence from 'e.json'")
    assert _tree(Path("site")) == before


def test_a_broken_catalogue_is_published_as_broken(catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = catalogue.read_text(encoding="utf-8")
    catalogue.write_text(whole.replace(" AND state = 'ready'\n", "\n"), encoding="utf-8")
    assert main(["build"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("broken: ")
    assert "broken" in Path("site/index.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("catalogue")
def test_what_is_not_a_site_of_ours_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("site").mkdir()
    Path("site/mine.txt").write_text("mine")
    assert main(["build"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("could not publish to '")
    assert "mine.txt" in err
    assert Path("site/mine.txt").read_text() == "mine"


def test_older_evidence_is_stale_where_the_catalogue_has_changed(
    catalogue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--output", "e.json"]) == 0
    text = catalogue.read_text(encoding="utf-8")
    changed = text.replace("when: job.state = 'done'", "when: job.state = 'done' AND job.id > 0")
    assert changed != text
    catalogue.write_text(changed, encoding="utf-8")
    capsys.readouterr()
    assert main(["build", "--evidence", "e.json"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("stale: ")
    published = files.read(Path("site/evidence.json"))
    assert {state.id: str(state.verdict) for state in published.states} == {"ready": "verified", "done": "stale"}
    assert "stale" in Path("site/states/done.md").read_text(encoding="utf-8")
