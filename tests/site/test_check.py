"""``check``: what differs between the site that is there and the one that would be built; nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.site import builders

from failure_matrix.site import build, check


@pytest.fixture
def site(tmp_path: Path) -> Path:
    build(builders.catalogue(), builders.evidence(), tmp_path / "site")
    return tmp_path / "site"


def snapshot(site: Path) -> dict[str, tuple[int, float]]:
    return {str(path): (path.stat().st_ino, path.stat().st_mtime) for path in site.rglob("*")}


def test_a_site_as_built_does_not_differ(site: Path) -> None:
    before = snapshot(site.parent)
    assert check(builders.catalogue(), builders.evidence(), site) == ()
    assert snapshot(site.parent) == before


def test_another_run_of_the_same_does_not_differ(site: Path) -> None:
    run = builders.RUN | {"started": "2031-01-01T00:00:00+00:00", "seconds": 99.0, "host": "elsewhere", "commit": None}
    assert check(builders.catalogue(), builders.evidence(run=run), site) == ()


def test_a_changed_title_is_found_with_its_first_line(site: Path) -> None:
    made = builders.changed(states={"ready": {"title": "Prepared"}})
    found = {each.path: each for each in check(made, builders.evidence(), site)}
    row = found["index.md"]
    assert (row.kind, row.there[:20], row.built[:20]) == ("differs", "| [Ready](states/rea", "| [Prepared](states/")
    assert str(row).startswith(f"index.md:{row.line}: differs\n  there  | [Ready]")
    assert "evidence.json" not in found
    assert "manifest.json" not in found


def test_missing_and_extra_files_are_named(site: Path) -> None:
    (site / "states" / "ready.md").unlink()
    (site / "states" / "mine.md").write_text("x")
    (site / "link").symlink_to("elsewhere")
    found = {(each.path, each.kind) for each in check(builders.catalogue(), builders.evidence(), site)}
    assert found == {("states/ready.md", "missing"), ("states/mine.md", "extra"), ("link", "extra")}


def test_a_link_in_the_place_of_a_file_differs(site: Path) -> None:
    kept = site.parent / "kept"
    (site / "index.md").rename(kept)
    (site / "index.md").symlink_to(kept)
    (found,) = check(builders.catalogue(), builders.evidence(), site)
    assert (found.path, found.there) == ("index.md", f"a symbolic link to {kept}")


def test_a_damaged_manifest_alone_differs(site: Path) -> None:
    (site / "manifest.json").write_text("{}")
    (found,) = check(builders.catalogue(), builders.evidence(), site)
    assert (found.path, found.kind) == ("manifest.json", "differs")


def test_no_site_at_all_misses_everything(tmp_path: Path) -> None:
    found = check(builders.catalogue(), builders.evidence(), tmp_path / "site")
    assert {each.kind for each in found} == {"missing"}
    assert "index.html" in {each.path for each in found}
    assert not (tmp_path / "site").exists()


def test_evidence_that_cannot_be_read_differs(site: Path) -> None:
    (site / "evidence.json").write_bytes(b"\xff")
    found = {each.path for each in check(builders.catalogue(), builders.evidence(), site)}
    assert found == {"evidence.json"}
