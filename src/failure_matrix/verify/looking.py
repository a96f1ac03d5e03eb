"""What a look tells: every key's state, as committed or as one session sees it."""

from __future__ import annotations

from collections.abc import Mapping

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.classify import KeyText, Situation, state_of
from failure_matrix.verify.judge import Standing


class Looker:
    """Tells states apart: those that are committed, and those that only a session with an open transaction sees."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._committed = frozenset(id for id, state in catalogue.states.items() if not state.uncommitted)
        self._uncommitted = frozenset(catalogue.states) - self._committed

    def committed(self, situation: Situation) -> Standing:
        """The states as committed."""
        return {
            (subject, key): state_of(rows, self._committed)
            for subject in self._catalogue.subjects
            for key, rows in situation.of(subject).items()
        }

    def seen(self, situation: Situation, committed: Standing) -> Standing:
        """A session's view: a row whose key the observer does not have is in an uncommitted state."""
        return {
            (subject, key): state_of(rows, self._among(subject, key, committed))
            for subject in self._catalogue.subjects
            for key, rows in situation.of(subject).items()
        }

    def _among(self, subject: str, key: KeyText, committed: Standing) -> frozenset[str]:
        uncommitted = self._uncommitted & self._catalogue.states_of(subject).keys()
        return self._committed if (subject, key) in committed or not uncommitted else self._uncommitted

    def unseen(self, view: Standing) -> Mapping[tuple[str, KeyText], str]:
        """Those of a view that nobody else can see."""
        return {where: state for where, state in view.items() if isinstance(state, str) and state in self._uncommitted}
