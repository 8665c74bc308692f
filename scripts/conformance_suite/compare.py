"""What the suite has found in two runs, and where they differ. No I/O but reading its result files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ERAS = ("2025-11-25", "2026-07-28")

Checks = dict[tuple[str, str], str]
"""Scenario and check, and the worst of its results: a check may come several times in a scenario."""

_WORST_LAST = ("SUCCESS", "SKIPPED", "WARNING", "FAILURE")
_TIME_LENGTH = len("-2026-01-31T00-00-00-000Z")

KNOWN = {
    ("server-sse-polling", "server-sse-disconnect-resume"): "serve never ends a stream before its response, as a "
    "server may; it resumes the streams of its servers itself",
    ("server-sse-multiple-streams", "server-sse-streams-functional"): "serve answers such requests with JSON, as a "
    "server may, and only streams have this check",
}
"""Checks of what a server may do, which are not made through serve, with the reason."""


def read_checks(results: Path) -> Checks:
    """All checks of a run. Information without a verdict is left out."""
    found: Checks = {}
    for path in sorted(results.glob("server-*/checks.json")):
        scenario = path.parent.name[len("server-") : -_TIME_LENGTH]
        for check in json.loads(path.read_text()):
            key, status = (scenario, str(check["id"])), str(check["status"])
            if status in _WORST_LAST:
                found[key] = max(found.get(key, status), status, key=_WORST_LAST.index)
    return found


def summary(checks: Checks) -> str:
    """How many scenarios and checks there were, and how they ended."""
    counts = Counter(checks.values())
    ends = ", ".join(f"{counts[one]} {one.lower()}" for one in _WORST_LAST if counts[one])
    return f"{len({scenario for scenario, _ in checks})} scenarios; checks: {ends}"


def differences(era: str, direct: Checks, through: Checks) -> Iterator[tuple[str, bool]]:
    """A line for each check that ends differently, and whether that is none to mend.

    It is none where serve does better, or where the check is of `KNOWN` and is not made.
    """
    for key in sorted(direct.keys() | through.keys()):
        ours, theirs = through.get(key, "not made"), direct.get(key, "not made")
        if ours == theirs:
            continue
        reason = KNOWN.get(key, "") if ours == "not made" else ""
        is_better = ours == "SUCCESS" and theirs in _WORST_LAST
        note = reason or ("serve does better" if is_better else "")
        text = f"{era} {key[0]}: {key[1]}: directly {theirs.lower()}, through serve {ours.lower()}"
        yield f"{text} ({note})" if note else text, bool(note)
