"""What `hookproxy try` shows to people: each hook with what it got and said, and the decision at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.text import Text

from ..checks.startup_notes import Files
from ..dialects.dialect import Group
from ..dialects.shared import plaintext
from ..jsonrpc import raw_json
from ..model.aliases import Alias
from ..model.decision import Proceed
from ..model.errors import CANNOT, FINDINGS
from ..model.hooks import Ended, Event, HookResult, HookSpec, Verdict
from ..model.settings import OnAsk, OnTrouble, Settings
from ..trial.observe import Run
from ..trial.run import Attempt, Trial
from ..trial.why_not import Absent
from .layout import diff, known_as, label, new_page, put, row, short, visible

if TYPE_CHECKING:
    from rich.console import Console

_MOST: Final = 10_000  # characters of one text: some screens full; `--json` has all
_ALLOWED: Final = {"allow": "allowed", "asked-allow": "allowed", "": "nothing is decided"}
_WANTS: Final = {
    "stop": "wants all other calls that wait for their hooks to be denied, too",
    "hides": "hides the result from the model",
    "retry": "has the call repeated",
}
"""What a verdict can want, by the member that says so."""

_STYLES: Final = {0: "green", FINDINGS: "bold red", CANNOT: "bold yellow"}


class Told(Struct, frozen=True):
    """A trial with what it was about."""

    attempt: Attempt
    event: Event | None
    """The one that was tried alone."""
    server: str
    settings: Settings
    groups: Sequence[Group]
    trial: Trial
    absent: Sequence[Absent]

    @property
    def status(self) -> int:
        """The exit status: 0 allowed; 1 refused, or a person would be asked; 2 not allowed because a hook failed."""
        if self.trial.allowed:
            return 0
        return CANNOT if self.trial.failed else FINDINGS

    @property
    def word(self) -> str:
        """The decision in a word or two."""
        trial = self.trial
        if trial.allowed:
            return _ALLOWED[trial.decision]
        if trial.failed:
            return (
                "refused, for a hook failed" if trial.decision in ("deny", "asked-deny") else "the result is withheld"
            )
        if trial.decision == "asked":
            return "a person would be asked"
        return "refused" if trial.decision in ("deny", "asked-deny") else "allowed, but the result is refused"

    @property
    def because(self) -> tuple[str, str]:
        """Who decided, in words, and why. Of a question that is tried alone, nobody but the trial wants to ask it."""
        if self.event is Event.PERMISSION_REQUEST and isinstance(self.trial.judged, Proceed):
            return "", ""
        return self.trial.because

    @property
    def alias(self) -> Alias | None:
        """What hooks call the tool; None: what the server does."""
        return next((one for one in self.settings.aliases if one.tool == self.attempt.tool), None)

    @property
    def question(self) -> str:
        """What a person would be asked."""
        return "" if self.event is Event.PERMISSION_REQUEST else self.trial.question

    def place(self, spec: HookSpec) -> tuple[str, str]:
        """The file and the key of a hook."""
        for group in self.groups:
            if any(one is spec for one in group.hooks):
                return group.source, spec.source.removeprefix(f"{group.source}: ")
        return "", spec.source


def for_people(told: Told, cwd: str) -> str:
    """All of it, the decision last."""
    page, files = new_page(), Files()
    with page.capture() as shown:
        for run in told.trial.seen.runs:
            _head(page, told, run.spec, files, cwd)
            _run(page, run)
        for one in told.absent:
            _head(page, told, one.spec, files, cwd)
            row(page, label("not run"), one.why)
            put(page, Text())
        _changes(page, told)
        _decision(page, told)
    return shown.get()


def _head(page: Console, told: Told, spec: HookSpec, files: Files, cwd: str) -> None:
    file, key = told.place(spec)
    line = files.line(file, key)
    place = visible(short(f"{file}:{line}" if line else file, cwd), page)
    put(page, Text.assemble((place, "bold"), "  ", visible(key, page)))
    row(page, label("event"), f"{spec.event}, {spec.dialect}")
    row(page, label("runs"), spec.runs or spec.label)


def _run(page: Console, run: Run) -> None:
    row(page, label("stdin"), _shortened(run.stdin))
    if run.variables:
        row(page, label("set"), "\n".join(f"{name}={_line(value)}" for name, value in run.variables.items()))
    if run.hidden:
        row(page, label("hidden"), ", ".join(run.hidden))
    if run.result is not None:
        _result(page, run.result)
    if run.statement is not None:
        said = "\n".join(verdict(run.statement.verdict)) or "nothing"
        row(page, label("verdict"), said, _style(run.statement.verdict))
    put(page, Text())


def _result(page: Console, result: HookResult) -> None:
    ended = f"exit status {result.code}" if result.ended is Ended.EXITED else result.ended.value
    if result.ended is Ended.SIGNALLED:
        ended = f"ended by signal {result.code}"
    if result.detail:
        ended = f"{ended}: {result.detail}"
    cut = ", and what it printed over the limit is lost" if result.cut else ""
    row(page, label("answer"), f"{ended}, after {result.ms:.1f} ms{cut}")
    for name, printed in (("stdout", result.stdout), ("stderr", result.stderr)):
        if printed.strip():
            row(page, label(name), _shortened(printed))


def verdict(said: Verdict) -> Iterator[str]:
    """What a hook said, a line for each thing."""
    if said.trouble:
        yield f"trouble: it {said.trouble}"
    if said.permission is not None:
        yield said.permission.name.lower() + (f": {said.reason}" if said.reason else "")
    elif said.reason:
        yield f"reason: {said.reason}"
    for name, raw in (("arguments", said.arguments), ("result", said.replacement)):
        if raw is not None:
            yield f"rewrites the {name}: {_shortened(raw)}"
    yield from (text for asked, text in _WANTS.items() if getattr(said, asked))
    for kind, texts in (("model", said.feedback), ("person", said.messages)):
        yield from (f"tells the {kind}: {one}" for one in texts)
    yield from (f"allows for the session: {one}" for one in said.allows)


def _style(said: Verdict) -> str:
    return "yellow" if said.trouble else ""


def _changes(page: Console, told: Told) -> None:
    """The arguments, and the result if one was given, before and after."""
    trial, attempt = told.trial, told.attempt
    may_run = trial.decision in ("allow", "asked-allow", "asked")
    if may_run and told.event in (None, Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST):
        diff(page, "arguments", attempt.arguments, trial.proposed or attempt.arguments)
    if attempt.result is not None and trial.answer and trial.decision in ("allow", "asked-allow"):
        diff(page, "result", attempt.result, trial.answer)


def _decision(page: Console, told: Told) -> None:
    trial = told.trial
    of = f"{told.attempt.tool} of {told.server}"
    put(page, Text.assemble(visible(of, page), ": ", (told.word, _STYLES[told.status])))
    if told.alias:
        row(page, label("to hooks"), known_as(told.alias))
    for name, said in (*_because(told), *_told(trial)):
        row(page, label(name), _line(said))
    for one in trial.seen.remarks:
        row(page, label("note"), _line(one))


def _because(told: Told) -> Iterator[tuple[str, str]]:
    """Why it was decided so."""
    trial = told.trial
    if trial.unreadable:
        yield "reason", trial.unreadable
    elif not trial.concerned:
        yield "reason", "no hook and no rule is about this call: it passes as it came"
    by, reason = told.because
    if by:
        yield "by", by
    if reason:
        yield "reason", reason
    if told.question:
        yield "asked", told.question
    if trial.decision == "asked":
        yield "fallback", _cannot_ask(told.settings)


def _cannot_ask(settings: Settings) -> str:
    """What follows where the agent cannot ask."""
    if settings.on_ask is not OnAsk.ELICIT:
        return settings.on_ask
    if settings.prompter:
        return f"where the agent cannot ask, {settings.prompter[0]} would"
    allowed = settings.on_ask_fallback is OnTrouble.ALLOW
    return f"where the agent cannot ask, the call would be {'allowed' if allowed else 'refused'}"


def _told(trial: Trial) -> Iterator[tuple[str, str]]:
    """What the model reads in place of a result, or why that is kept from it."""
    comments = trial.seen.comments
    if trial.decision in ("deny", "asked-deny") and trial.answer:
        yield "model", "\n".join(plaintext.blocks(bytes(raw_json.fields(trial.answer).get("content", b"[]"))))
    elif comments is not None:
        for one in comments.withheld:
            yield "withheld", f"the {one.spec.event} hook {one.spec.label} {one.verdict.trouble}"
        if comments.hidden_by:
            yield "hidden", f"by {comments.hidden_by}"
        if comments.failed:
            yield "error", "a hook calls the result an error"


def _shortened(raw: bytes) -> str:
    return _line(raw.decode(errors="backslashreplace"))


def _line(said: str) -> str:
    rest = len(said) - _MOST
    return f"{said[:_MOST]}\n… {rest} characters more, all of which --json has" if rest > 0 else said
