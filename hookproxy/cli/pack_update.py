"""`hookproxy pack update`: shows what a newer version of a pack decides differently, and takes it.

Both versions are asked about the cases of both, each version alone, and about the calls in the audit, each within the
whole configuration. Their hooks really run; no call is forwarded. A version that fails cases of its own is not taken.
"""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from ..archives.listed import Refused
from ..audit.records import read
from ..config.load import Loaded, complete
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, UserError
from ..model.pack_settings import NamedPacks
from ..packs.manifest import TESTS, Pack, check_successor
from ..packs.store import ENVIRONMENTS, Installed
from ..policy_tests.cases import TOML, YAML, Case, read_cases
from ..policy_tests.compare import Came
from ..policy_tests.policies import isolated_environment, policy_of_loaded
from ..policy_tests.run import CaseResult, run_policy
from ..secrets.mask import Masking
from ..trial.compare import Changed, Question, compare, recorded
from ..trial.replay import Outcome
from ..trust.sources import FileContext, Layer
from .common import show, show_line, working_directory
from .hook_runtime import redirected_output, run_until_done
from .layout import Page, label, new_page
from .pack_install import Candidate, Machine, candidate, changed_files, describe, loaded_with, put, take

_MOST_CHANGES: Final = 6  # shown, in three lines each, unless more is asked for


class _Version(Struct, frozen=True):
    """A version of a pack, as it lies on the disk."""

    pack: Pack
    folder: str
    environment: str
    loaded: Loaded
    """The whole configuration with it."""

    def alone(self, environ: dict[str, str], cwd: str) -> Loaded:
        """The configuration of it alone. Raises UserError."""
        name = self.pack.name
        files = FileContext(environ, cwd, isolated=True, pack_folders={name: (self.folder, self.environment)})
        return complete(Layer("", packs=NamedPacks("packs", (name,))), files)

    def cases(self) -> Iterator[Case]:
        """Its cases. Raises UserError if they cannot be read."""
        for name in sorted(self.pack.manifest.files):
            is_test = name.startswith(TESTS) or name in ("tests.toml", "tests.yaml", "tests.yml")
            if is_test and name.endswith((*TOML, *YAML)):
                yield from read_cases(os.path.join(self.folder, name)).cases


class _CaseChange(Struct, frozen=True):
    """A case that both versions decide differently."""

    case: Case
    before: Came
    after: Came


class _Compared(Struct, frozen=True):
    """What both versions make of cases and of recorded calls."""

    cases: int
    case_changes: list[_CaseChange]
    failing: list[CaseResult]
    """Cases of the new version that fail with it."""
    calls: int
    call_changes: list[Changed]

    @property
    def differs(self) -> bool:
        """Whether anything is decided differently."""
        return bool(self.case_changes or self.call_changes)


def update(here: Machine, name: str, options: Namespace) -> int:
    """Show what the newer version of a pack changes, and take it unless this is a dry run. Returns the exit status."""
    state = here.store.installed(name)
    if state is None:
        raise UserError(f"there is no pack {name}", here.store.hint(name))
    new = candidate(here, options.source or state.source)
    if new.pack.name != name:
        raise UserError(f"{new.source}: is the pack {new.pack.name}, and not {name}", "name the right one with --from")
    try:
        if not check_successor(new.pack, state.memory, here.keys):
            show_line(f"{name} {state.version}: there is nothing new in {new.source}")
            return 0
    except Refused as problem:
        hint = f"nothing has changed; if it is to be taken: hookproxy pack remove {name} --forget, and install it again"
        raise UserError(f"{new.source}: {problem}", hint) from None
    with here.store.locked(name):
        return _show_and_take(here, state, new, options)


def _show_and_take(here: Machine, state: Installed, new: Candidate, options: Namespace) -> int:
    """Only under the lock."""
    name, version = new.pack.name, new.pack.version
    old = here.store.pack(name, state.version, state.digest, None)
    page = new_page()
    describe(page, here, new, is_verbose=options.verbose)
    files = ", ".join(changed_files(old, new.pack)) or "no file but pack.toml"
    page.row(label("changed"), f"{state.version} → {version}: {files}")
    show(page.text)
    if new.runs and not options.install:
        raise UserError(
            f"{name} {version} needs packages that are not installed, so it cannot be tried",
            "the same with --install runs what is shown above; nothing has changed",
        )
    try:
        compared = _compared(here, state, old, new, options)
        page = new_page()
        _show(page, compared, version, is_verbose=options.verbose)
        show(page.text)
        if compared.failing and not options.dry_run:
            hint = f"{state.version} stays; whoever makes the pack must correct it"
            raise UserError(f"{name} {version} fails {counted(len(compared.failing), 'case')} of its own", hint)
        if not options.dry_run:
            take(here, new)
    finally:
        here.store.forget(new.pack)
    if options.dry_run:
        show_line(f"nothing was changed; without --dry-run, {name} {version} is taken")
        return EXIT_FINDINGS if compared.differs or compared.failing else 0
    show_line(f"{name} {version} counts from the next start on")
    return 0


def _compared(here: Machine, state: Installed, old: Pack, new: Candidate, options: Namespace) -> _Compared:
    """Ask both versions. Raises UserError if one of them cannot run."""
    name, cwd = old.name, working_directory()
    folder = here.store.files(name, state.version, state.digest)
    needed = here.store.place(name, ENVIRONMENTS, state.environment) if state.environment else ""
    with_new = put(here, new, cwd, options.config)
    with_old = loaded_with(name, folder, needed, cwd, options.config)
    before = _Version(old, folder, needed, with_old)
    new_folder = here.store.files(name, new.pack.version, new.pack.digest)
    after = _Version(new.pack, new_folder, new.environment, with_new)
    path = here.files.find(options.audit, here.files.cwd) if options.audit is not None else with_old.settings.audit_file
    questions = recorded(read(path), path) if path and (options.audit is not None or os.path.isfile(path)) else []
    with tempfile.TemporaryDirectory(prefix="hookproxy-") as kept, redirected_output():
        return run_until_done(partial(_ask_both, before, after, questions, kept, cwd))


async def _ask_both(before: _Version, after: _Version, questions: Sequence[Question], kept: str, cwd: str) -> _Compared:
    """`kept` is a folder for what hooks keep between runs."""
    environ = isolated_environment(os.environ, kept)
    own = list(after.cases())
    names = {case.name for case in own}
    cases = [*own, *(case for case in before.cases() if case.name not in names)]
    results = []
    for version in (before, after):
        policy = policy_of_loaded(version.alone(environ, cwd), environ, version.folder)
        results.append((await run_policy(policy, cases)).results if cases else [])
    changes = [change for old, new in zip(*results, strict=True) if (change := _case_change(old, new)) is not None]
    failing = [result for result in results[1][: len(own)] if not result.passed]
    calls = await compare(before.loaded, after.loaded, questions, os.environ, cwd)
    return _Compared(len(cases), changes, failing, len(questions), calls)


def _case_change(before: CaseResult, after: CaseResult) -> _CaseChange | None:
    for old, new in zip(before.steps, after.steps, strict=False):
        one, other = old.came, new.came
        if (one.decision, one.arguments, one.reads) != (other.decision, other.arguments, other.reads):
            return _CaseChange(before.case, one, other)
    return None


# --- the output ---


def _show(page: Page, compared: _Compared, version: str, *, is_verbose: bool) -> None:
    most = None if is_verbose else _MOST_CHANGES
    for change in compared.case_changes[:most]:
        place = f"{os.path.basename(change.case.file)}:{change.case.line}"
        page.line((f"the case {change.case.name}", "bold"), f"  {place}")
        _decisions(page, _came(change.before), _came(change.after))
    for call in compared.call_changes[:most]:
        question = call.question
        page.line((f"{question.call.tool} of {question.server}", "bold"), f"  {question.name}")
        _decisions(page, _text(call.before.outcome), _text(call.after.outcome))
    hidden = sum(max(len(changes) - _MOST_CHANGES, 0) for changes in (compared.case_changes, compared.call_changes))
    if hidden and not is_verbose:
        page.line(f"and {hidden} more: --verbose shows all")
    for result in compared.failing[:most]:
        page.row(("  fails    ", "red"), f"with {version}: the case {result.case.name}")
    page.line((_summary(compared), "bold"))


def _decisions(page: Page, before: str, after: str) -> None:
    page.row(label("was"), before)
    page.row(label("would be"), after, "bold")


def _came(came: Came) -> str:
    return _words(came.decision, came.by, came.reason)


def _text(outcome: Outcome) -> str:
    return _words(outcome.decision, outcome.by, outcome.reason)


def _words(decision: str, by: str, reason: str) -> str:
    return decision + (f", by {by}" if by else "") + (f": {Masking().text(reason)}" if reason else "")


def _summary(compared: _Compared) -> str:
    if not (compared.cases or compared.calls):
        return "there is no case and no recorded call with arguments to compare decisions on"
    parts = [
        f"{len(changes) or 'none'} of {counted(count, what)}"
        for count, changes, what in (
            (compared.cases, compared.case_changes, "case"),
            (compared.calls, compared.call_changes, "recorded call"),
        )
        if count
    ]
    return f"decided differently: {', '.join(parts)}"
