"""What broken guards print: forty and more runs of a hook that means to deny, or whose decision nobody can know."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from hookproxy.dialects.dialect import Dialect, Group
from hookproxy.dialects.own import OWN
from hookproxy.dialects.registry import DIALECTS
from hookproxy.hooks.read_verdict import read_verdict
from hookproxy.model.decision import Decision, Refuse
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec
from hookproxy.model.settings import OnFailure, Settings, ToolNames
from hookproxy.policy import decide
from tests.dialects.tables import Failing, failing

_OWN: Final = Failing(
    {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"
        }
    },
    "hookproxy's own rule, for the hooks of `hookproxy.toml`",
)  # fmt: skip
FAILING: Final[Mapping[str, Failing]] = {**failing(), "own": _OWN}
DENIALS: Final[Mapping[str, dict[str, Any]]] = {name: each.denial for name, each in FAILING.items()}
"""How a hook of each system denies a call on standard output."""

_TRACEBACK: Final = (
    b'Traceback (most recent call last):\n  File "guard.py", line 3, in <module>\n'
    b"AttributeError: 'list' object has no attribute 'split'\n"
)


def _exited(stdout: str | bytes = b"", code: int = 0, stderr: bytes = b"", *, cut: bool = False) -> HookResult:
    return HookResult(Ended.EXITED, code, stdout if isinstance(stdout, bytes) else stdout.encode(), stderr, cut=cut)


def _inner(output: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The object with the decision of an output, and the decision's name."""
    inner = output.get("hookSpecificOutput", output)
    names = [name for name in ("permissionDecision", "decision", "permission", "cancel") if name in inner]
    assert names, f"{output}: clean_verdict.py, exit_status.py and this function know the names of decisions"
    return inner, names[0]


def _decision(denial: dict[str, Any]) -> object:
    inner, name = _inner(denial)
    return inner[name]


def _with_decision(denial: dict[str, Any], value: object) -> str:
    """The denial with another value in place of its decision."""
    changed = json.loads(json.dumps(denial))
    inner, name = _inner(changed)
    inner[name] = value
    return json.dumps(changed)


def _twice(denial: dict[str, Any], first: object, last: object) -> str:
    """The denial with its decision as two members of the same name."""
    _, name = _inner(denial)
    member = f'"{name}": {json.dumps(first)}'
    return _with_decision(denial, first).replace(member, f'{member}, "{name}": {json.dumps(last)}')


def broken_outputs(denial: dict[str, Any]) -> dict[str, dict[str, HookResult]]:
    """Each run by its description, in groups. `denial` is how a hook of the system denies."""
    said = json.dumps(denial)
    denies, allows = _decision(denial), False if "cancel" in denial else "allow"
    allowing = _with_decision(denial, allows)
    return {
        "it crashes": {
            "a traceback with status 1": _exited(code=1, stderr=_TRACEBACK),
            "a denial and a crash after it": _exited("checking\n", 1, _TRACEBACK),
            "status 126": _exited(code=126, stderr=b"sh: 1: ./guard.sh: Permission denied\n"),
            "status 127": _exited(code=127, stderr=b"sh: 1: guard: not found\n"),
            "status 255": _exited(code=255),
            "an approval with status 1": _exited(allowing, 1),
        },
        "it is ended": {
            "kill -9": HookResult(Ended.SIGNALLED, 9),
            "a timeout": HookResult(Ended.TIMED_OUT),
            "it cannot start": HookResult(Ended.NOT_STARTED, detail="there is no guard.sh"),
            "a web service's error": HookResult(Ended.FAILED, detail="answered with status 500"),
        },
        "its JSON is broken": {
            "cut JSON": _exited(said[:-7]),
            "cut after the brace": _exited("{"),
            "cut after a quote": _exited('{"'),
            "no quotes": _exited("{decision: deny}"),
            "single quotes, as Python prints a dict": _exited(str(denial)),
            "a comma too many": _exited(f"{said[:-1]},}}"),
            "NaN": _exited(_with_decision(denial, float("nan"))),
            "text after it": _exited(f"{said}\nguard: done"),
            "a comment after it": _exited(f"{said} // denied"),
            "two documents": _exited(f"{{}}\n{said}"),
            "two empty documents": _exited("{}{}"),
            "the decision twice, and the last one allows": _exited(_twice(denial, denies, allows)),
        },
        "something is around its JSON": {
            "a log line before it": _exited(f"INFO guard 1.2\n{said}"),
            "a log's prefix before it": _exited(f"[guard] {said}"),
            "a fence": _exited(f"```json\n{said}\n```"),
            "a comment before it": _exited(f"# denied\n{said}"),
            "an array": _exited(f"[{said}]"),
            "an empty array": _exited("[]"),
            "a string": _exited(json.dumps(said)),
            "null": _exited("null"),
            "a number": _exited("0"),
            "UTF-16": _exited(said.encode("utf-16")),
            "UTF-16 without a mark": _exited(said.encode("utf-16-le")),
            "UTF-32": _exited(said.encode("utf-32")),
            "Latin-1": _exited(allowing.replace("}", ', "note": "gr\xfcn"}', 1).encode("latin-1")),
            "Base64": _exited(base64.b64encode(said.encode())),
            "a byte order mark before an approval": _exited(f"\ufeff{allowing}"),
        },
        "its JSON says something else": {
            "a decision that is a list": _exited(_with_decision(denial, ["deny"])),
            "a decision that is an object": _exited(_with_decision(denial, {"deny": True})),
            "a decision that is a number": _exited(_with_decision(denial, 1)),
            "a decision that is null": _exited('{"permissionDecision": null, "decision": null}'),
            "a text in place of an object": _exited('{"hookSpecificOutput": "deny"}'),
            "Denied": _exited(_with_decision(denial, "Denied")),
            "reject": _exited(_with_decision(denial, "reject")),
            "an unknown word": _exited(_with_decision(denial, "nope")),
            "a decision one level too deep": _exited(json.dumps({"output": denial})),
            "a decision under another name": _exited('{"allowed": false}'),
            "continue as a text": _exited('{"continue": "false"}'),
            "an error instead of a decision": _exited('{"error": "KeyError: command"}'),
        },
        "its output is lost": {
            "text beyond the limit": _exited("a" * 1000, cut=True),
            "JSON beyond the limit": _exited(f'{{"reason": "{"a" * 1000}', cut=True),
            "standard output closed": _exited(stderr=b"./guard.sh: line 2: echo: write error: Bad file descriptor\n"),
            "a denial on standard error": _exited(stderr=said.encode()),
            "a traceback with status 0": _exited(stderr=_TRACEBACK),
            "a crash of Node with status 0": _exited(stderr=b"/g.js:1\nTypeError: x is null\n    at g (/g.js:1:2)\n"),
            "an error of jq with status 0": _exited(stderr=b"jq: error (at <stdin>:0): Cannot index number\n"),
            "a crash of Ruby with status 0": _exited(
                stderr=b"guard.rb:3:in 'check': undefined method (NoMethodError)\n"
            ),
            "a broken pattern with status 0": _exited(stderr=b"grep: Unmatched [, [^, [:, [., or [=\n"),
            "a missing program with status 0": _exited(stderr=b"./guard.sh: 3: jq: not found\n"),
        },
    }


def denial_last(denial: dict[str, Any]) -> HookResult:
    """A run that prints the decision twice, and of which the last one denies."""
    return _exited(_twice(denial, False if "cancel" in denial else "allow", _decision(denial)))


BEFORE: Final = (Event.PRE_TOOL_USE, Event.PRE_MCP_TOOL_CALL, Event.PERMISSION_REQUEST)


def event_names(dialect: Dialect) -> list[str]:
    """The names of its events before a call, beginning with the one at which most guards run."""
    names = [name for name, event in dialect.events.items() if event in BEFORE]
    return sorted(names, key=lambda name: name.lower().replace("_", "") not in ("pretooluse", "beforetool"))


def group_of(dialect: Dialect, on_failure: OnFailure | None = None, event_name: str = "", **fields: object) -> Group:
    """A group with one hook of this event, which has these fields."""
    name = event_name or event_names(dialect)[0]
    spec = HookSpec(dialect.name, "f", dialect.events[name], "guard", shell="guard", event_name=name)
    return Group(dialect, "f", (replace(spec, **fields),), ToolNames.BARE, on_failure)


def decision_on(group: Group, result: HookResult, settings: Settings = Settings()) -> Decision:  # noqa: B008 - frozen
    """The decision on a call whose only hook ended so."""
    (spec,) = group.hooks
    run = HookRun(spec, result, read_verdict(group, spec, result, settings))
    return decide.decide([run], settings, group.on_failure)


def all_dialects() -> dict[str, Dialect]:
    """All dialects by name, our own included."""
    return {**DIALECTS, "own": OWN}


def page_table() -> str:
    """The table of docs/hook-failures.md: how many of each group's runs refuse the call by default."""
    groups = [f"{what} ({len(runs)})" for what, runs in broken_outputs(_OWN.denial).items()]
    heads = ["system", *groups, "its source"]
    rows = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, dialect in all_dialects().items():
        rows.append(f"| `{name}` | {' | '.join(_refused(name, dialect))} | {FAILING[name].source} |")
    return "\n".join(rows)


def _refused(name: str, dialect: Dialect) -> list[str]:
    group = group_of(dialect, fails_closed=name in ("own", "iflow"))
    cells = []
    for runs in broken_outputs(DENIALS[name]).values():
        refused = sum(isinstance(decision_on(group, result), Refuse) for result in runs.values())
        cells.append("refused" if refused == len(runs) else f"{refused} of {len(runs)}" if refused else "passes")
    return cells
