"""The outcome of all cases, for programs: a JSON document, and JUnit's XML as CI systems read it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from ..secrets.mask import Masking
from .cases import Case
from .compare import Difference
from .parts import Part
from .run import CaseResult, PolicyResult, Unnoticed

VERSION: Final = 1
"""The number of the JSON document's format."""

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def json_members(results: Sequence[PolicyResult], status: int) -> dict[str, object]:
    """The members of the JSON document."""
    return {"v": VERSION, "status": status, "policies": [_policy_members(result) for result in results]}


def _policy_members(result: PolicyResult) -> dict[str, object]:
    mutation = result.mutation
    return {
        "policy": result.policy.path,
        "ms": round(result.seconds * 1000, 3),
        "cases": [_case_members(case) for case in result.results],
        "undecided": [_part_members(part) for part in result.undecided],
        "mutants": None
        if mutation is None
        else {"tried": mutation.total, "unnoticed": [_unnoticed_members(mutant) for mutant in mutation.unnoticed]},
    }


def _case_members(result: CaseResult) -> dict[str, object]:
    case = result.case
    return {
        "name": case.name,
        "file": case.file,
        "line": case.line,
        "passed": result.passed,
        "problem": result.problem or None,
        "ms": round(result.seconds * 1000, 3),
        "steps": [
            {
                "decision": step.came.decision,
                "by": step.came.by,
                "reason": Masking().text(step.came.reason),
                "differences": [
                    {"what": difference.what, "expected": difference.expected, "actual": difference.actual}
                    for difference in step.differences
                ],
            }
            for step in result.steps
        ],
        "decided_by": sorted(part.words for part in result.decided),
    }


def _part_members(part: Part) -> dict[str, object]:
    return {"kind": part.kind, "text": part.text, "event": part.event or None, "place": part.place}


def _unnoticed_members(unnoticed: Unnoticed) -> dict[str, object]:
    mutant = unnoticed.mutant
    return {**_part_members(mutant.part), "change": mutant.change, "cases": unnoticed.tried}


def junit(results: Sequence[PolicyResult]) -> str:
    """The XML document: a suite for each file with cases, and one for the mutants of each policy."""
    suites = [suite for result in results for suite in _suites(result)]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{"".join(suites)}</testsuites>\n'


def _suites(result: PolicyResult) -> Iterator[str]:
    by_file: dict[str, list[CaseResult]] = {}
    for case in result.results:
        by_file.setdefault(case.case.file, []).append(case)
    for file, cases in by_file.items():
        before: Counter[str] = Counter()
        rows = []
        for case in cases:
            name = case.case.name
            before[name] += 1  # CI systems take two cases of one name for the same
            unique = name if before[name] == 1 else f"{name} ({before[name]})"
            rows.append(_row(case.case, unique, case.seconds, failure_text(case)))
        failed = sum(not case.passed for case in cases)
        yield _suite(file, rows, failed, sum(case.seconds for case in cases))
    if result.mutation is not None:
        unnoticed = result.mutation.unnoticed
        rows = [
            f"  <testcase classname={_attribute(result.policy.path)}"
            f" name={_attribute(f'{mutant.part.words}: {mutant.change}')}>"
            f"<failure message={_attribute(f'{mutant.change}: no case notices it')}/></testcase>\n"
            for mutant in (survivor.mutant for survivor in unnoticed)
        ]
        yield _suite(f"mutants of {result.policy.path}", rows, len(unnoticed), 0.0, result.mutation.total)


def _suite(name: str, rows: Sequence[str], failed: int, seconds: float, total: int | None = None) -> str:
    count = len(rows) if total is None else total
    head = f'<testsuite name={_attribute(name)} tests="{count}" failures="{failed}" errors="0" time="{seconds:.3f}">'
    return f"{head}\n{''.join(rows)}</testsuite>\n"


def _row(case: Case, name: str, seconds: float, failure: str) -> str:
    head = f"  <testcase classname={_attribute(case.file)} name={_attribute(name)} file={_attribute(case.file)}"
    head += f' line="{case.line}" time="{seconds:.3f}"'
    if not failure:
        return f"{head}/>\n"
    message = failure.partition("\n")[0]
    return f"{head}><failure message={_attribute(message)}>{escape(_legal(failure))}</failure></testcase>\n"


def failure_text(result: CaseResult) -> str:
    """Why a case failed, in lines; empty: it passed."""
    if result.problem:
        return result.problem
    return "\n".join(difference_text(difference) for step in result.steps for difference in step.differences)


def difference_text(difference: Difference) -> str:
    """A difference in one sentence."""
    return f"{difference.what}: expected {difference.expected}, was {difference.actual}"


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """The text without what no XML may contain, however it is escaped: anybody may have written it."""
    return _NOT_XML.sub("\ufffd", text)
