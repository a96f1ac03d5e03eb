"""Names and the values they stand for; values as the server writes them; names for values that vary."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from failure_matrix.catalogue.model import Scalar
from failure_matrix.verify.naming import Names
from failure_matrix.verify.values import NotKept, as_text, key_text, references, substitute

KEPT: dict[str, Scalar] = {"job": 7, "name": "a b", "none": None, "yes": True, "_x1": "$name"}


@pytest.mark.parametrize(
    ("value", "given"),
    [
        ("plain", "plain"),
        (7, 7),
        (None, None),
        ("$job", 7),  # a value that is one name keeps its type
        ("$none", None),
        ("$yes", True),
        ("$_x1", "$name"),  # what a name stands for is not looked at again
        ("x-$job", "x-7"),
        ("$name/$job", "a b/7"),
        ("<$none>", "<>"),
        ("<$yes>", "<t>"),
        ("$$", "$"),
        ("$$job", "$job"),
        ("$$$job", "$7"),
        ("5 $ and $1", "5 $ and $1"),
    ],
)
def test_names_are_replaced(value: Scalar, given: Scalar) -> None:
    assert substitute(value, KEPT) == given
    assert type(substitute(value, KEPT)) is type(given)


@pytest.mark.parametrize("value", ["$other", "x-$other", "$job-$jobs"])
def test_a_name_that_nothing_kept_is_told(value: str) -> None:
    with pytest.raises(NotKept, match=r"^'\$(other|jobs)' was kept by no step that ran$"):
        substitute(value, KEPT)


def test_references_are_found() -> None:
    assert references("$a/$b-$$c $1") == {"a", "b"}
    assert references(7) == references(None) == references("plain") == frozenset()


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), (True, "t"), (False, "f"), (1, "1"), (Decimal("1.10"), "1.10"), ("", ""), ("x", "x")],
)
def test_values_as_the_server_writes_them(value: Scalar, text: str | None) -> None:
    assert as_text(value) == text


def test_keys_are_text_in_key_order() -> None:
    assert key_text("$job", KEPT) == ("7",)
    assert key_text(("$name", 2, None, False), KEPT) == ("a b", "2", "", "f")
    assert key_text("AAAAAAAA-BBBB-CCCC-DDDD-EEEEEEEEEEEE", {}) == ("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",)
    assert key_text("AAAAAAAA", {}) == ("AAAAAAAA",)


STARTED = datetime(2030, 1, 2, 12, tzinfo=UTC)
UUID, OTHER = "11111111-2222-3333-4444-555555555555", "aaaaaaaa-2222-3333-4444-555555555555"
TEXT, INT, BIGINT, UUID_TYPE, XID8, OID, DATE, TIMESTAMPTZ, INTS = 25, 23, 20, 2950, 5069, 26, 1082, 1184, 1007


@pytest.fixture
def names() -> Names:
    made = Names(STARTED)
    made.backend(4711, "A")
    made.backend(4712, "the observer")
    return made


@pytest.mark.parametrize(
    ("type", "value", "named"),
    [
        (UUID_TYPE, UUID, "uuid-1"),
        (TEXT, UUID, "uuid-1"),
        (TEXT, f"<{UUID}> and {OTHER}", "<uuid-1> and uuid-2"),
        (TEXT, f"x{UUID}", f"x{UUID}"),  # no uuid, but a longer word
        (XID8, "99", "xid8-1"),
        (OID, "16384", "oid-1"),
        (OID, "1259", "1259"),
        (INT, "4711", "pid of A"),
        (INT, "47110", "47110"),
        (INTS, "{4711,4712,5}", "{pid of A,pid of the observer,5}"),
        (TEXT, "4711", "pid of A"),
        (BIGINT, "4711", "4711"),  # no pid, but a number like any
        (TIMESTAMPTZ, "2030-01-02 11:59:59.5+00", "moment-1"),
        (TIMESTAMPTZ, "2030-01-02 13:00:00+02", "moment-1"),
        (TIMESTAMPTZ, "2030-01-04 12:00:00+00", "2030-01-04 12:00:00+00"),
        (TIMESTAMPTZ, "infinity", "infinity"),
        (TIMESTAMPTZ, "20300-01-02 12:00:00+00", "20300-01-02 12:00:00+00"),
        (TIMESTAMPTZ, "2030-01-02 12:00:00 BC", "moment-1 BC"),
        (DATE, "2030-01-02", "date-1"),
        (DATE, "2030-02-02", "2030-02-02"),
        (TEXT, "2030-01-02", "2030-01-02"),
        (INT, None, None),
        (TEXT, "", ""),
    ],
)
def test_a_value_that_varies_has_a_name(names: Names, type: int, value: str | None, named: str | None) -> None:
    assert names.row([type], [value]) == (named,)


def test_names_are_given_in_order_and_kept(names: Names) -> None:
    first = names.row([UUID_TYPE, UUID_TYPE, XID8], [OTHER, UUID, "7"])
    assert first == ("uuid-1", "uuid-2", "xid8-1")
    assert names.row([UUID_TYPE, TEXT], [UUID, OTHER]) == ("uuid-2", "uuid-1")
    assert names.row([XID8, XID8], ["8", "7"]) == ("xid8-2", "xid8-1")


def test_a_kept_value_has_the_name_that_it_got(names: Names) -> None:
    names.row([XID8], ["7"])
    assert names.kept("7") == "xid8-1"
    assert names.kept("4711") == "pid of A"
    assert names.kept("8") == "8"
    assert names.kept(None) is None


def test_a_failure_may_name_a_pid(names: Names) -> None:
    assert names.told("pid 4711, count 14711, 4711.5, a-4711, 4712") == (
        "pid pid of A, count 14711, 4711.5, a-4711, pid of the observer"
    )
    assert names.text("pid 4711") == "pid 4711"


def test_a_day_from_the_run_is_far() -> None:
    far = STARTED + timedelta(days=1)
    names = Names(STARTED)
    assert names.text(f"{far:%Y-%m-%d %H:%M:%S}+00") == f"{far:%Y-%m-%d %H:%M:%S}+00"
    near = far - timedelta(seconds=1)
    assert names.text(f"{near:%Y-%m-%d %H:%M:%S}+00") == "moment-1"
