"""The same results as JUnit XML, for what reads that: a test case an item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from failure_matrix.catalogue.findings import Finding, Severity
from failure_matrix.cli.items import Item
from failure_matrix.cli.terminal import harmless
from failure_matrix.evidence.records import Verdict


def findings(found: Sequence[Finding]) -> str:
    """Give a case a finding, a warning as skipped; with none, one case that passes."""
    return _xml("matrix check", _checked(found))


def evidence(items: Sequence[Item]) -> str:
    """Give a case an item; what is waived is skipped, all else that is not verified fails."""
    return _xml("matrix verify", (_verified(item) for item in items))


def _checked(found: Sequence[Finding]) -> Iterator[TestCase]:
    for finding in found:
        result: Failure | Skipped = Failure() if finding.severity is Severity.ERROR else Skipped()
        result.message = harmless(finding.message)
        result.text = harmless(f"{finding.place}\n{finding.hint}", keep="\n")
        yield _case(finding.rule, str(finding.place), result)
    if not found:
        yield _case("catalogue", "no findings")


def _verified(item: Item) -> TestCase:
    match item.verdict:
        case Verdict.VERIFIED:
            return _case(item.kind, item.name)
        case Verdict.WAIVED:
            result: Failure | Skipped = Skipped()
        case _:
            result = Failure()
    result.message = harmless(f"{item.verdict}: {item.because or _first(item)}")
    result.text = harmless("\n".join(_told(item)), keep="\n")
    return _case(item.kind, item.name, result)


def _first(item: Item) -> str:
    return item.faults[0].failure.message if item.faults else item.name


def _told(item: Item) -> Iterator[str]:
    if item.place:
        yield item.place
    for fault in item.faults:
        failure = fault.failure
        yield f"{fault.where}: {failure.message}" if fault.where else failure.message
        yield f"expected {failure.expected} ({failure.place})"
        yield f"observed {failure.observed}"


def _case(group: str, name: str, *results: Failure | Skipped | Error) -> TestCase:
    case = TestCase(harmless(name), harmless(group))
    case.result = list(results)
    return case


def _xml(name: str, cases: Iterator[TestCase]) -> str:
    suite = TestSuite(name)
    for case in cases:
        suite.add_testcase(case)
    whole = JUnitXml()
    whole.add_testsuite(suite)
    xml: bytes = whole.tostring()  # type: ignore[no-untyped-call] # the library types this one method not
    return xml.decode()
