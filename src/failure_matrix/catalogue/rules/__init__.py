"""What must fit together in a catalogue: the static rules, one generator each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from failure_matrix.catalogue.findings import Finding, Severity
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.catalogue.rulebook import close_to
from failure_matrix.catalogue.rules import parameters, proofs, references, scenarios, statements, states, steps
from failure_matrix.catalogue.rules.look import Look

RULES: tuple[Callable[[Look], Iterator[Finding]], ...] = (
    references.unknown_references,
    states.reserved_words,
    states.moves_between_subjects,
    states.unreachable_states,
    states.traps,
    states.reverses,
    states.seen_elsewhere,
    states.missing_for_readers,
    states.long_cells,
    steps.verbs,
    steps.sessions_of_steps,
    steps.words_that_need_another,
    steps.effects,
    steps.expectations,
    steps.spare_keys,
    steps.after_the_break,
    scenarios.after_cycles,
    scenarios.given_and_after,
    scenarios.clock_steps,
    scenarios.reserved_names,
    statements.unfinished_sql,
    statements.predicates_with_ends,
    statements.null_comparisons,
    parameters.kept_values,
    parameters.sources_of_steps,
    parameters.sources_elsewhere,
    parameters.targets_by_parameter,
    parameters.reserved_parameters,
    proofs.sources_of_sweep,
    proofs.unfenced_actions,
    proofs.sources_of_callers,
    proofs.waived_things,
)


def check(catalogue: Catalogue) -> tuple[Finding, ...]:
    """Give every static finding, sorted by place; ``strict`` makes warnings errors."""
    look = Look(catalogue=catalogue)
    found = [*catalogue.notes, *(finding for rule in RULES for finding in rule(look))]
    return sharpened(found, strict=catalogue.settings.strict)


def check_references(catalogue: Catalogue, ids: Mapping[str, frozenset[str]]) -> list[Finding]:
    """Give the unknown references of a catalogue that could be read in part; ``ids`` are all that it defines.

    A name that is near an id which could not be read is let be: it may be the same mistake.
    """
    unread = [name for section, names in ids.items() for name in names - getattr(catalogue, section).keys()]
    look = Look(catalogue=catalogue, ids=ids)
    unknown = (reference for reference in references.references_of(look) if reference.name not in reference.known)
    sure = [reference for reference in unknown if close_to(reference.name, unread) is None]
    return [references.unknown(look, reference) for reference in sure]


def sharpened(findings: Iterable[Finding], *, strict: bool) -> tuple[Finding, ...]:
    """Sort findings by place, each once; ``strict`` makes warnings errors."""
    every = dict.fromkeys(replace(found, severity=Severity.ERROR) if strict else found for found in findings)
    return tuple(sorted(every, key=lambda found: (found.place, found.rule, found.message)))
