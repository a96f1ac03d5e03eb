"""Small catalogues, proved on the server of the test run."""

from __future__ import annotations

from pathlib import Path

import pytest

from failure_matrix.catalogue.findings import CatalogueInvalid, Finding
from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.records import Evidence, ScenarioRecord
from failure_matrix.verify import verify

QUEUE = (Path(__file__).with_name("catalogues") / "queue.yaml").read_text()


class Stage:
    """Where a catalogue that is written in a test is proved."""

    def __init__(self, server: Server, directory: Path) -> None:
        self.server = server
        self._directory = directory
        self._made = 0

    def catalogue(self, *texts: str) -> Catalogue:
        """The catalogue of these YAML texts, a file each."""
        self._made += 1
        place = self._directory / f"catalogue-{self._made}"
        place.mkdir()
        for number, text in enumerate(texts, 1):
            (place / f"{number}.yaml").write_text(text)
        try:
            return load(place)
        except CatalogueInvalid as wrong:
            pytest.fail("\n".join(map(str, wrong.findings)), pytrace=False)

    def prove(self, *texts: str) -> Evidence:
        """What its scenarios showed, without sweep and guards."""
        return verify(self.catalogue(*texts), self.server, quick=True)

    def scenarios(self, text: str, *more: str) -> dict[str, ScenarioRecord]:
        """The scenarios of a text that goes with the queue, by id."""
        evidence = self.prove(QUEUE, text, *more)
        return {record.id: record for record in evidence.scenarios}

    def rejected(self, *texts: str) -> tuple[Finding, ...]:
        """What is found wrong when the server sees the catalogue."""
        with pytest.raises(CatalogueInvalid) as caught:
            self.prove(*texts)
        return caught.value.findings


@pytest.fixture(scope="session")
def stage(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(server, tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="session")
def queue() -> str:
    """A queue with a state of every kind, to which tests add scenarios."""
    return QUEUE
