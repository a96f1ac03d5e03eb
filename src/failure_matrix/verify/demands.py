"""What an action asks of whoever tries it: values for its parameters, and a transaction that stays open."""

from __future__ import annotations

from functools import lru_cache

from failure_matrix.catalogue.model import Action, Catalogue
from failure_matrix.catalogue.sql import parameters, significant
from failure_matrix.evidence.schema import split_statements
from failure_matrix.verify.values import references

_TRANSACTION = ("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT")


def takes_advisory_locks(catalogue: Catalogue) -> bool:
    """Whether any SQL of the catalogue may take an advisory lock, which outlives a rollback."""
    texts = [sql.text for sql in catalogue.settings.schema_]
    texts += [action.sql.text for action in catalogue.actions.values() if action.sql is not None]
    return any("advisory" in text.lower() for text in texts)


def ends_transaction(action: Action) -> bool:
    """Whether the action's SQL is several statements, one of which begins or ends a transaction."""
    statements = split_statements(action.sql.text) if action.sql is not None else ()
    return any(_first_word(each) in _TRANSACTION for each in statements)


@lru_cache(maxsize=1024)
def _first_word(statement: str) -> str:
    return next((token.text.upper() for token in significant(statement)), "")


def needed(action: Action) -> frozenset[str]:
    """Every parameter that a caller must bring."""
    names: set[str] = set(parameters(action.sql)) if action.sql is not None else set()
    names |= set(parameters(action.requires)) if action.requires is not None else set()
    if action.store is not None:
        names |= references(action.store.target) | references(action.store.content)
    return frozenset(names - {"now"})
