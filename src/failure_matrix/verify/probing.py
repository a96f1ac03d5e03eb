"""The probe of a catalogue, tried on its own schema before anything runs."""

from __future__ import annotations

from failure_matrix.catalogue.findings import CatalogueInvalid
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.classify import Probe
from failure_matrix.database.connection import Connection
from failure_matrix.database.relations import previous_types
from failure_matrix.verify import fit


def ready_probe(catalogue: Catalogue, conninfo: str) -> Probe:
    """A probe that the server takes. Raises CatalogueInvalid with every SQL of the catalogue that it rejects."""
    connection = Connection(conninfo, "probe")
    try:
        if findings := fit.findings(catalogue, connection):
            raise CatalogueInvalid(findings)
        nothing = dict.fromkeys(catalogue.stores, ())
        probe = Probe(catalogue, previous_types(catalogue, connection, nothing))
        if findings := fit.findings_of_probe(catalogue, connection, probe):
            raise CatalogueInvalid(findings)
        return probe
    finally:
        connection.close()
