"""Publication: whole or not at all, and nothing that is not ours is ever deleted."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.site import manifest, publication
from failure_matrix.site.publication import publish
from failure_matrix.site.swap import flush

OLD = {"index.html": b"old", "states/a.html": b"old a", "states/gone.html": b"old gone"}
NEW = {"index.html": b"new", "states/a.html": b"new a", "diagrams/b.svg": b"new b"}


def there(site: Path) -> dict[str, bytes]:
    """The files of a site, the manifest's own apart."""
    return {path: (site / path).read_bytes() for path in manifest.held(site) if path != manifest.NAME}


def beside(site: Path) -> list[str]:
    return sorted(path.name for path in site.parent.iterdir() if path != site)


def whole(site: Path, *wanted: Mapping[str, bytes]) -> bool:
    """It is one of these sites, manifest and all."""
    return any(there(site) == files and (site / manifest.NAME).read_bytes() == manifest.made(files) for files in wanted)


def test_a_site_is_put_and_replaced(tmp_path: Path) -> None:
    site = tmp_path / "deep" / "site"
    done = publish(OLD, site)
    assert (done.files, done.changed, done.notes) == (3, True, ())
    assert whole(site, OLD)
    publish(NEW, site)
    assert whole(site, NEW)
    assert beside(site) == []


def test_a_site_that_stands_is_left_alone(tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(NEW, site)
    before = (site / "index.html").stat()
    assert not publish(NEW, site).changed
    assert (site / "index.html").stat().st_ino == before.st_ino
    (site / "index.html").unlink()
    assert publish(NEW, site).changed
    assert whole(site, NEW)


def test_a_page_that_somebody_edited_is_refused_and_stays(tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(OLD, site)
    (site / "index.html").write_bytes(b"my own words")
    with pytest.raises(
        CouldNot, match=r"changed since they were built\n  'index.html'\n  Keep what you wrote elsewhere"
    ):
        publish(NEW, site)
    assert there(site) == {**OLD, "index.html": b"my own words"}
    assert beside(site) == []


def test_an_empty_directory_that_somebody_made_is_refused_and_stays(tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(OLD, site)
    (site / "states" / "mine" / "deep").mkdir(parents=True)
    with pytest.raises(CouldNot, match=r"directories that are not ours\n  'states/mine/deep/'\n"):
        publish(NEW, site)
    assert (site / "states" / "mine" / "deep").is_dir()


def test_a_manifest_that_names_a_file_does_not_make_it_ours(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "thesis.txt").write_bytes(b"years")
    (site / manifest.NAME).write_bytes(manifest.made({"thesis.txt": b"another"}))
    with pytest.raises(CouldNot, match=r"'thesis\.txt'"):
        publish(NEW, site)
    assert (site / "thesis.txt").read_bytes() == b"years"


def test_what_is_edited_while_a_build_swaps_is_kept_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    publish(OLD, site)

    def edit(directory: Path) -> None:
        if directory.name == ".site.candidate":  # written whole, and not yet swapped in
            (site / "index.html").write_bytes(b"my own words")

    monkeypatch.setattr(publication, "flush", edit)
    publish(NEW, site)
    assert whole(site, NEW)
    kept = tmp_path / ".site.candidate" / "index.html"
    assert kept.read_bytes() == b"my own words"
    with pytest.raises(CouldNot, match=r"it is not ours\n  'index.html'"):
        publish(OLD, site)
    assert kept.read_bytes() == b"my own words"


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    publish(NEW, tmp_path / "site")
    assert whole(tmp_path / "site", NEW)


def test_a_clone_without_empty_directories_is_still_ours(tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(OLD, site)
    copy = tmp_path / "clone"
    for path, data in {**OLD, manifest.NAME: manifest.made(OLD)}.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    assert not publish(OLD, copy).changed
    assert publish(NEW, copy).changed


def test_the_manifest_names_every_file_with_its_digest(tmp_path: Path) -> None:
    publish({"a": b"abc"}, tmp_path / "site")
    found = json.loads((tmp_path / "site" / "manifest.json").read_text())
    assert found == {
        "format": "failure-matrix/site/1",
        "files": {"a": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    }


def test_a_foreign_directory_is_refused_and_listed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "mine").mkdir(parents=True)
    (site / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(CouldNot, match=r"no manifest of ours\n  'mine/thesis.txt'\n  Move them away"):
        publish(NEW, site)
    assert there(site) == {"mine/thesis.txt": b"years"}
    assert beside(site) == []


def test_a_foreign_file_in_a_site_of_ours_is_refused_and_listed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(OLD, site)
    (site / "states" / "notes.txt").write_text("mine")
    (site / "link").symlink_to(tmp_path)
    with pytest.raises(CouldNot, match=r"its manifest does not name\n  'link'\n  'states/notes.txt'\n"):
        publish(NEW, site)
    assert (site / "index.html").read_bytes() == b"old"


def test_of_many_foreign_files_the_first_are_listed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    for number in range(30):
        (site / f"{number:02}").touch()
    with pytest.raises(CouldNot, match=r"'09'\n  and more\n"):
        publish(NEW, site)


def test_a_symbolic_link_and_a_file_are_refused(tmp_path: Path) -> None:
    publish(OLD, tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    for name, why in (
        ("link", "symbolic link"),
        ("dangling", "symbolic link"),
        ("file", "it is a file"),
        ("link/", "symbolic link"),
    ):
        with pytest.raises(CouldNot, match=why):
            publish(NEW, Path(f"{tmp_path}/{name}"))
    assert whole(tmp_path / "real", OLD)
    with pytest.raises(CouldNot, match="no directory of its own"):
        publish(NEW, Path("/"))


def test_a_link_inside_the_site_is_never_followed(tmp_path: Path) -> None:
    site, outside = tmp_path / "site", tmp_path / "outside"
    publish(OLD, site)
    outside.mkdir()
    (outside / "a.html").write_text("precious")
    for path in (site / "states").iterdir():
        path.unlink()
    (site / "states").rmdir()
    (site / "states").symlink_to(outside)
    with pytest.raises(CouldNot, match="does not name\n  'states'"):
        publish(NEW, site)
    assert (outside / "a.html").read_text() == "precious"


def test_a_foreign_directory_where_the_candidate_goes_is_refused(tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(OLD, site)
    (tmp_path / ".site.candidate").mkdir()
    (tmp_path / ".site.candidate" / "mine").write_text("mine")
    with pytest.raises(CouldNot, match=r"it is not ours\n  'mine'"):
        publish(NEW, site)
    assert (tmp_path / ".site.candidate" / "mine").read_text() == "mine"
    assert whole(site, OLD)


def test_what_a_dead_build_left_is_cleared_and_told(tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(OLD, site)
    candidate = tmp_path / ".site.candidate"
    candidate.mkdir()
    (candidate / manifest.NAME).write_bytes(manifest.made(NEW))
    (candidate / "index.html").write_bytes(b"ne")
    (tmp_path / ".site.lock").write_text(hashlib.sha256(manifest.made(NEW)).hexdigest())
    done = publish(NEW, site)
    assert done.notes == ("An earlier build was cut short; the site there was still the old one, whole.",)
    assert whole(site, NEW)
    assert beside(site) == []


def test_a_dead_build_between_two_renames_is_undone(tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(OLD, site)
    site.rename(tmp_path / ".site.previous")
    publish(NEW, site)
    assert whole(site, NEW)
    assert beside(site) == []


def test_without_an_exchange_two_renames_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "exchange", lambda _one, _other: False)
    site = tmp_path / "site"
    publish(OLD, site)
    publish(NEW, site)
    assert whole(site, NEW)
    assert beside(site) == []


def test_a_full_disk_leaves_the_old_site_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    publish(OLD, site)

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device", "b.svg")

    monkeypatch.setattr(publication, "flush", full)
    with pytest.raises(CouldNot, match=r"No space left on device \(b.svg\)"):
        publish(NEW, site)
    assert whole(site, OLD)
    assert beside(site) == []


def test_a_second_build_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    writing, second_waits = threading.Event(), threading.Event()

    def held(candidate: Path) -> None:
        writing.set()
        assert second_waits.wait(20)
        flush(candidate)

    monkeypatch.setattr(publication, "flush", held)
    first = threading.Thread(target=publish, args=(OLD, site))
    first.start()
    assert writing.wait(20)
    publish(NEW, site, waiting=second_waits.set)
    first.join(20)
    assert whole(site, NEW)
    assert beside(site) == []


BUILDER = """
import sys
from pathlib import Path
from failure_matrix.site.publication import publish
from failure_matrix.site.swap import flush
site = Path(sys.argv[1])
files = [{f"d{n % 7}/{n}": f"{text} {n}".encode() * 50 for n in range(120)} for text in ("one", "two")]
print("ready", flush=True)
number = 0
while True:
    number += 1
    publish(files[number % 2], site)
    print(number, flush=True)
"""


def sites() -> list[dict[str, bytes]]:
    return [{f"d{n % 7}/{n}": f"{text} {n}".encode() * 50 for n in range(120)} for text in ("one", "two")]


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that publishes one site and the other, on and on."""
    command = [sys.executable, "-c", BUILDER, str(tmp_path / "site")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "1\n"
        yield process
        process.kill()


@pytest.mark.parametrize("seed", range(8))
def test_killed_at_any_instant_the_old_site_or_the_new_one_stands(
    tmp_path: Path, builder: subprocess.Popen[str], seed: int
) -> None:
    assert builder.stdout
    chance = random.Random(seed)  # noqa: S311 - which instant is no secret
    for _ in range(chance.randrange(1, 4)):
        builder.stdout.readline()
    for _ in range(chance.randrange(40_000)):
        pass  # an instant within a publication, not at its end
    os.kill(builder.pid, signal.SIGKILL)
    builder.wait()
    site = tmp_path / "site"
    assert whole(site, *sites())
    publish(NEW | {"after": b"x"}, site)
    assert whole(site, NEW | {"after": b"x"})
    assert beside(site) == []


def test_a_reader_never_sees_a_mix(tmp_path: Path, builder: subprocess.Popen[str]) -> None:
    """Two files read through one open directory are of one site."""
    site = tmp_path / "site"
    assert builder.stdout
    for _ in range(30):
        directory = os.open(site, os.O_RDONLY)
        try:
            found = set()
            for name in ("d0/0", "d1/1", "d3/3"):
                try:
                    with open(os.open(name, os.O_RDONLY, dir_fd=directory), "rb") as file:  # noqa: PTH123 - below a descriptor
                        found.add(file.read().split()[0])
                except FileNotFoundError:
                    break  # it was replaced, and is being deleted
            assert len(found) <= 1
        finally:
            os.close(directory)
        builder.stdout.readline()
