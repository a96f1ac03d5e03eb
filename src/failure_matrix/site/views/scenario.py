"""A scenario's page: its steps with the sessions side by side, as they were seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from failure_matrix.catalogue.model import Scenario
from failure_matrix.evidence.records import Failure, ScenarioRecord, Verdict
from failure_matrix.site.book import SCENARIOS, Book, to_scenario
from failure_matrix.site.replay import Replay, replay
from failure_matrix.site.standing import Standing, of_item, partly
from failure_matrix.site.views.steps import failure_words
from failure_matrix.site.views.transcript import Transcript, order_transcript, transcript
from failure_matrix.site.words import Link, Phrase, Strong, Target, count, prose, say


@dataclass(frozen=True, kw_only=True)
class ScenarioHead:
    id: str
    title: str
    standing: Standing
    stopped: Phrase  # where it broke, "" where it did not
    failures: tuple[Phrase, ...]  # of no single step
    shows: tuple[str, ...]
    does_not_show: tuple[str, ...]
    setting: Phrase


@dataclass(frozen=True, kw_only=True)
class OrderView:
    """An order that did not hold: as it is told, and step by step."""

    title: str
    anchor: str
    text: Phrase
    transcript: Transcript


@dataclass(frozen=True, kw_only=True)
class ScenarioView:
    head: ScenarioHead
    transcript: Transcript | None  # None where the evidence has no run of it
    orders: tuple[OrderView, ...]
    replay: Replay | None


def scenario(book: Book, id: str) -> ScenarioView:
    noun = book.catalogue.scenarios[id]
    record = book.scenario(id)
    return ScenarioView(
        head=_head(book, id, noun, record),
        transcript=transcript(book, noun, record) if record and record.steps else None,
        orders=tuple(_orders(book, noun, record)) if record else (),
        replay=replay(book, noun, record) if record and record.steps else None,
    )


def scenario_standing(book: Book, id: str) -> Standing:
    record = book.scenario(id)
    because = record.because if record else "not in this evidence"
    if record and record.verdict is Verdict.INCOMPLETE and not because:
        because = partly(record.orders)
    return of_item(book, f"scenario {id}", book.scenario_verdict(id), because)


def _orders(book: Book, noun: Scenario, record: ScenarioRecord) -> Iterator[OrderView]:
    """The shortest order that failed, and the shortest that broke as it was declared to."""
    orders = record.orders
    found = (
        ("The shortest order that fails", "failing", orders.failing, orders.failed),
        ("An order that breaks as declared", "breaking", orders.breaking, orders.broke),
    )
    for title, anchor, order, number in found:
        if order is not None:
            numbers = ", ".join(str(each) for each in order.order)
            before = (say(" ", failure_words(failure)) for failure in order.failures)
            text = say(f"Steps {numbers}; one of {count(number, 'such order')}.", *before)
            yield OrderView(
                title=title, anchor=anchor, text=text, transcript=order_transcript(book, noun, order, anchor)
            )


def _head(book: Book, id: str, noun: Scenario, record: ScenarioRecord | None) -> ScenarioHead:
    return ScenarioHead(
        id=id,
        title=prose(noun.title),
        standing=scenario_standing(book, id),
        stopped=_stopped(record) if record else say(),
        failures=tuple(failure_words(each) for each in record.failures) if record else (),
        shows=tuple(map(prose, noun.shows)),
        does_not_show=tuple(map(prose, noun.does_not_show)),
        setting=_setting(book, id, noun, record),
    )


def _stopped(record: ScenarioRecord) -> Phrase:
    for step in record.steps:
        if step.failures:
            first: Failure = step.failures[0]
            link = Link(f"step {step.number}", Target("", f"step-{step.number}"))
            blind = step.verdict is Verdict.INCOMPLETE
            return say(Strong("Could not look at " if blind else "Broken at "), link, ": ", failure_words(first))
    return say()


def _setting(book: Book, id: str, noun: Scenario, record: ScenarioRecord | None) -> Phrase:
    """Who takes part, where it begins, by what clock, in how many orders."""
    found: list[Phrase] = [
        say(Link(f"Mechanism {number}", Target(SCENARIOS, "mechanisms")), f": {title}. ")
        for number, title in book.shows.get(id, ())
    ]
    if noun.after:
        found.append(say("Begins where ", to_scenario(book, noun.after), " ended. "))
    acting = {step.in_ for step in noun.steps}
    for name, setup in {**book.catalogue.sessions, **noun.sessions}.items():
        if name not in acting:
            continue
        isolation = f", {setup.isolation}" if setup.isolation else ""
        if setup.title or isolation:
            found.append(say(Strong(prose(name)), f" {prose(setup.title or '')}{isolation}. "))
    found.append(say(f"Clock: {book.catalogue.settings.clock}. "))
    if record:
        orders = record.orders
        if noun.orders == "listed":
            return say(*found)
        left = f", {orders.impossible:,} impossible" if orders.impossible else ""
        left += f", {orders.skipped:,} left out" if orders.skipped else ""
        found.append(
            say(f"Orders: {orders.exist:,} {'exists' if orders.exist == 1 else 'exist'}, {orders.ran:,} ran{left}.")
        )
    else:
        found.append(say(f"Not run in this evidence; it has {count(len(noun.steps), 'step')}."))
    return say(*found)
