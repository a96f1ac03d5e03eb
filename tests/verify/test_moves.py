"""The path rule: which changes of state are declared, and by whom."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies

from failure_matrix.verify.moves import Deed, Hop, find_path

A, B, C, D = "abcd"


def path(
    starts: str,
    goal: str,
    deeds: list[tuple[str, set[str]]] | None = None,
    meanwhile: set[str] | None = None,
    since: list[tuple[str, set[str]]] | None = None,
) -> str | None:
    """The path as text, ``a -x> b -> c``; edges are written ``ab``."""

    def edges(pairs: set[str]) -> frozenset[tuple[str, str]]:
        return frozenset((pair[0], pair[1]) for pair in pairs)

    found = find_path(
        starts,
        goal,
        deeds=[edges(pairs) for _, pairs in deeds or ()],
        names=[name for name, _ in deeds or ()],
        meanwhile=edges(meanwhile or set()),
        since=[(name, edges(pairs)) for name, pairs in since or ()],
    )
    if found is None:
        return None
    return found[0].edge[0] + "".join(f" -{hop.by or ''}> {hop.edge[1]}" for hop in found)


def test_one_move_is_the_shortest_path() -> None:
    assert path("a", "b", [("x", {"ab"}), ("y", {"ac", "cb"})]) == "a -x> b"


def test_each_deed_is_used_once_and_in_order() -> None:
    assert path("a", "c", [("x", {"ab"}), ("y", {"bc"})]) == "a -x> b -y> c"
    assert path("a", "c", [("y", {"bc"}), ("x", {"ab"})]) is None
    assert path("a", "c", [("x", {"ab", "bc"})]) is None
    assert path("a", "c", [("x", {"ab", "bc"}), ("x", {"ab", "bc"})]) == "a -x> b -x> c"


def test_a_deed_may_be_left_out() -> None:
    assert path("a", "b", [("y", {"cd"}), ("x", {"ab"})]) == "a -x> b"


def test_what_others_did_meanwhile_may_come_anywhere_before_the_events() -> None:
    assert path("a", "c", [("x", {"bc"})], meanwhile={"ab"}) == "a -> b -x> c"
    assert path("a", "c", [("x", {"ab"})], meanwhile={"bc"}) == "a -x> b -> c"
    assert path("a", "d", [("x", {"ab"})], meanwhile={"cd"}, since=[("e", {"bc"})]) is None


def test_events_come_last_and_may_happen_again() -> None:
    assert path("a", "c", [("x", {"ab"})], since=[("e", {"bc"})]) == "a -x> b -e> c"
    assert path("a", "c", [("x", {"bc"})], since=[("e", {"ab"})]) is None
    assert path("a", "d", since=[("e", {"ab", "cd"}), ("f", {"bc"})]) == "a -e> b -f> c -e> d"


def test_a_circle_is_no_trap() -> None:
    assert path("a", "d", meanwhile={"ab", "ba"}, since=[("e", {"ab", "ba"})]) is None
    assert path("a", "a", [("x", {"ab"}), ("y", {"ba"})]) == "a -x> b -y> a"


def test_it_begins_at_the_committed_state_or_where_the_transaction_began() -> None:
    assert path("ba", "c", [("x", {"ac"})]) == "a -x> c"
    assert path("ab", "c", [("x", {"bc"})]) == "b -x> c"


def test_nothing_leads_nowhere() -> None:
    assert path("a", "b") is None
    assert path("", "a", [("x", {"ba"})]) is None
    assert path("a", "a") is None  # no move is no path


EDGES = strategies.frozensets(strategies.tuples(*[strategies.sampled_from("abcd")] * 2), max_size=5)


@given(
    starts=strategies.text("abcd", min_size=1, max_size=2),
    goal=strategies.sampled_from("abcd"),
    deeds=strategies.lists(EDGES, max_size=3),
    meanwhile=EDGES,
    events=strategies.lists(EDGES, max_size=2),
)
def test_a_path_is_one(
    starts: str,
    goal: str,
    deeds: list[frozenset[tuple[str, str]]],
    meanwhile: frozenset[tuple[str, str]],
    events: list[frozenset[tuple[str, str]]],
) -> None:
    names = [f"deed-{number}" for number in range(len(deeds))]
    since = [(f"event-{number}", edges) for number, edges in enumerate(events)]
    found = find_path(starts, goal, deeds=deeds, names=names, meanwhile=meanwhile, since=since)
    reachable = _reachable(set(starts), deeds, meanwhile, [edges for _, edges in since])
    assert (found is not None) == (goal in reachable)
    if found is not None:
        assert found[0].edge[0] in starts
        assert found[-1].edge[1] == goal
        assert all(one.edge[1] == other.edge[0] for one, other in itertools.pairwise(found))
        assert all(_made(hop, dict(zip(names, deeds, strict=True)) | dict(since), meanwhile) for hop in found)
        used = [hop.by for hop in found if hop.by in names]
        assert used == sorted(set(used))


def _made(hop: Hop, by: dict[str, frozenset[tuple[str, str]]], meanwhile: frozenset[tuple[str, str]]) -> bool:
    return hop.edge in (meanwhile if hop.by is None else by[hop.by])


def _reachable(
    states: set[str],
    deeds: list[frozenset[tuple[str, str]]],
    meanwhile: frozenset[tuple[str, str]],
    events: list[frozenset[tuple[str, str]]],
) -> set[str]:
    """The same by sets: what one move or more leads to."""
    reached: set[str] = set()
    now = states | _closed(states, meanwhile, reached)
    for deed in deeds:
        moved = {target for source, target in deed if source in now}
        reached |= moved
        now |= moved
        now |= _closed(now, meanwhile, reached)
    every = frozenset[tuple[str, str]]().union(*events)
    _closed(now, every, reached)
    return reached


def _closed(states: set[str], edges: frozenset[tuple[str, str]], reached: set[str]) -> set[str]:
    new = set(states)
    found: set[str] = set()
    while new:
        new = {target for source, target in edges if source in new} - found
        found |= new
    reached |= found
    return found


@pytest.mark.parametrize(
    ("subject", "key", "allowed"),
    [
        ("job", ("1",), {(A, B)}),  # the row that its key binds
        ("job", ("2",), {(C, D)}),  # another: only what ``also`` says
        ("file", ("1",), {(A, B), (C, D)}),  # another subject: anything that it declares
    ],
)
def test_an_action_moves_its_own_row(subject: str, key: tuple[str, ...], allowed: set[tuple[str, str]]) -> None:
    deed = Deed(name="x", edges=frozenset({(A, B)}), others=frozenset({(C, D)}), subject="job", own=("1",))
    assert deed.edges_for(subject, key) == allowed


def test_an_action_that_chooses_its_row_may_move_any() -> None:
    deed = Deed(name="x", edges=frozenset({(A, B)}), others=frozenset({(C, D)}), subject="job")
    assert deed.edges_for("job", ("7",)) == {(A, B), (C, D)}
