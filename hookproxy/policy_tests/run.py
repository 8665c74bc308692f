"""Runs cases at the same time, each in a session of its own: none finds what another one has left.

A case has its own hooks, sessions, limits and approvals, and a new folder if it needs one. Only modules of Python hooks
are shared: they are imported once, as under `run`, and forgotten when the cases of their policy are done.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct, field

from ..model.errors import UserError
from ..model.hooks import Permission
from ..processes import process_tree, short_command
from ..processes.process import SHELL
from ..trial.run import EVENTS_AFTER, EVENTS_BEFORE, Plan, TrialRunner
from .cases import Case, Step, in_folder
from .compare import Came, Difference, came_of, differences, refused_at_the_door
from .mutants import Mutant, can_be_weaker, mutants_of
from .parts import Deciding, Part, deciding, parts_of
from .policies import NotAdmitted, PolicyUnderTest

_Result = TypeVar("_Result")

AT_ONCE: Final = min(4 * (os.cpu_count() or 1), 16)
"""Cases that run at the same time: most of their time is spent in hooks, which are other processes."""

Progress = Callable[[int, int, str], None]
"""Is called with how many are done, of how many, and what they are."""

_SETUP_SECONDS: Final = 60.0  # of one line of shell that makes files
_MOST_SHOWN: Final = 300  # characters of what such a line prints
_LONGEST_OUTPUT: Final = 64 * 1024  # bytes of it that are read
_ENDINGS: Final = 3  # times that what such a line has left is looked for: it may start others meanwhile


class StepResult(Struct, frozen=True):
    """The outcome of a step; of one that is repeated, the first time that it was not as expected, or the last."""

    came: Came
    differences: tuple[Difference, ...]
    time: int
    """Which time it was, from 1."""


class CaseResult(Struct):
    """The outcome of a case."""

    case: Case
    steps: list[StepResult] = field(default_factory=list)
    """Up to the first one that was not as expected."""
    seconds: float = 0.0
    problem: str = ""
    """Why it could not be run; empty: it was."""
    decided: set[Part] = field(default_factory=set)
    """The parts of the policy that decided something in it."""
    ran: set[Part] = field(default_factory=set)
    permissions: dict[Part, set[Permission]] = field(default_factory=dict)
    """What the hooks of the policy have decided in it, by their parts."""

    @property
    def passed(self) -> bool:
        """All came out as expected."""
        return not self.problem and not any(step.differences for step in self.steps)


class Unnoticed(Struct, frozen=True):
    """A mutant that no case notices."""

    mutant: Mutant
    tried: int
    """How many cases the part has decided: these were tried."""


class Mutation(Struct):
    """The outcome of all mutants."""

    total: int = 0
    unnoticed: list[Unnoticed] = field(default_factory=list)


class PolicyResult(Struct):
    """The outcome of all cases of a policy."""

    policy: PolicyUnderTest
    results: list[CaseResult]
    parts: list[Part]
    mutation: Mutation | None = None
    """None: no mutants were tried."""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """All cases passed, and no mutant was unnoticed."""
        return all(result.passed for result in self.results) and not (self.mutation and self.mutation.unnoticed)

    @property
    def undecided(self) -> list[Part]:
        """The parts that decided no case."""
        decided = {part for result in self.results for part in result.decided}
        return [part for part in self.parts if part not in decided]

    @property
    def ran(self) -> set[Part]:
        """The hooks that ran at all."""
        return {part for result in self.results for part in result.ran}


async def run_policy(
    policy: PolicyUnderTest, cases: Sequence[Case], *, mutate: bool = False, progress: Progress | None = None
) -> PolicyResult:
    """Run all cases, and then, if they pass, the mutants. On cancel all hooks are ended. Raises UserError."""
    begun = perf_counter()
    parts = parts_of(policy.all_loaded)
    with _forgetting_modules(policy):
        results = await _at_once([_Runner(policy, case, parts).run_case for case in cases], "cases", progress)
        result = PolicyResult(policy, results, parts)
        if mutate and result.passed:
            result.mutation = await _try_mutants(result, progress)
    result.seconds = perf_counter() - begun
    return result


async def _try_mutants(result: PolicyResult, progress: Progress | None) -> Mutation:
    policy = result.policy
    trials = [_MutantTrial(result, mutant) for part in result.parts for mutant in mutants_of(part, policy.all_loaded)]
    for part, change, changed in policy.of_other_people([case.case for case in result.results]):
        trials.append(_MutantTrial(result, Mutant(part, change, lambda loaded: loaded), changed))
    outcomes = await _at_once([trial.try_cases for trial in trials], "changes", progress)
    tried = [unnoticed for unnoticed in outcomes if unnoticed is not None]
    return Mutation(len(tried), [unnoticed for unnoticed in tried if unnoticed.tried >= 0])


class _MutantTrial:
    """Runs the cases that a mutant may change, until one of them notices it."""

    def __init__(self, result: PolicyResult, mutant: Mutant, policy: PolicyUnderTest | None = None) -> None:
        self._result = result
        self._mutant = mutant
        self._policy = policy or result.policy

    async def try_cases(self) -> Unnoticed | None:
        """None: it is the same policy; `tried` is -1 if a case notices it."""
        mutant, part = self._mutant, self._mutant.part
        # an allow rule also counts for calls to which an unreadable rule only may apply, before a strict default
        all_count = part.kind == "allow" and any(other.kind == "default" for other in self._result.parts)
        all_count = all_count or part.kind == "people"  # nobody can say of a call that a list of people decided it
        deciding_results = [result for result in self._result.results if all_count or part in result.decided]
        given = frozenset(permission for result in deciding_results for permission in result.permissions.get(part, ()))
        if mutant.change.startswith("weakened") and deciding_results and not can_be_weaker(part, given):
            return None
        for result in sorted(deciding_results, key=lambda result: result.seconds):
            again = await _Runner(self._policy, result.case, self._result.parts, mutant).run_case()
            if not again.passed:
                return Unnoticed(mutant, -1)
        return Unnoticed(mutant, len(deciding_results))


class _Runner:
    """Runs one case."""

    def __init__(
        self,
        policy: PolicyUnderTest,
        case: Case,
        parts: Sequence[Part],
        mutant: Mutant | None = None,
    ) -> None:
        self._policy = policy
        self._case = case
        self._parts = parts
        self._mutant = mutant

    async def run_case(self) -> CaseResult:
        """A problem of the case alone is in its result; others are raised as UserError."""
        result = CaseResult(self._case)
        begun = perf_counter()
        if self._case.needs_folder:
            folder = await anyio.to_thread.run_sync(_new_folder)
            try:
                await anyio.to_thread.run_sync(self._make_files, folder, result)
                if not result.problem:
                    await self._run_in(folder, result)
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._clean_up, folder)
        else:
            await self._run_in(self._policy.folder, result)
        result.seconds = perf_counter() - begun
        return result

    def _make_files(self, folder: str, result: CaseResult) -> None:
        for path, text in self._case.files:
            target = os.path.join(folder, path)
            try:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "w", encoding="utf-8") as file:
                    file.write(text)
            except (OSError, ValueError) as problem:
                result.problem = f"the file {path} cannot be made: {problem}"
                return
        if self._case.setup:
            result.problem = _set_up(self._case.setup, folder)

    def _clean_up(self, folder: str) -> None:
        if self._case.setup:
            _end_what_it_left(folder)
        shutil.rmtree(folder, ignore_errors=True)

    async def _run_in(self, folder: str, result: CaseResult) -> None:
        try:
            judging = self._policy.for_case(self._case, folder)
        except NotAdmitted as why:
            step = in_folder(self._case.steps[0], folder)
            came = refused_at_the_door(str(why))
            result.steps.append(StepResult(came, tuple(differences(came, step)), 1))
            return
        loaded = judging.loaded if self._mutant is None else self._mutant.apply(judging.loaded)
        has_results = any(step.call.result is not None for step in self._case.steps)
        plan = Plan(EVENTS_BEFORE | EVENTS_AFTER if has_results else EVENTS_BEFORE, loaded.settings)
        async with TrialRunner(loaded.groups, plan, judging.session, judging.environ) as trials:
            trials.agent = self._case.agent
            trials.hooks.observe_rules()
            if self._case.steps[0].at:
                trials.hooks.use_time_of_calls()
            trials.hooks.change_verdict = None if self._mutant is None else self._mutant.change_verdict
            for step in self._case.steps:
                if not await self._run_step(trials, in_folder(step, folder), result):
                    return

    async def _run_step(self, trials: TrialRunner, step: Step, result: CaseResult) -> bool:
        """Whether it came out as expected, each time."""
        trials.hooks.at = step.at
        done: StepResult | None = None
        for time in range(1, step.times + 1):
            trial = await trials.call(step.call)
            self._note(deciding(trial, self._parts), result)
            for run in trial.observation.runs:
                if run.hook_run is not None and run.hook_run.verdict.permission is not None:
                    part = next((part for part in self._parts if part.place == run.spec.source), None)
                    if part is not None:
                        result.permissions.setdefault(part, set()).add(run.hook_run.verdict.permission)
            came = came_of(trial, step)
            done = StepResult(came, tuple(differences(came, step)), time)
            if done.differences:
                break
        assert done is not None, "a step happens at least once"
        result.steps.append(done)
        return not done.differences

    def _note(self, known: Deciding, result: CaseResult) -> None:
        result.decided |= known.decided
        result.ran |= known.ran


def _new_folder() -> str:
    return os.path.realpath(tempfile.mkdtemp(prefix="hookproxy-test-"))


def _set_up(line: str, folder: str) -> str:
    """Run a line of shell in a folder. Returns what is wrong; empty: nothing.

    What it starts in the background runs on, until the case has ended.
    """
    environ = {**os.environ, "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    with tempfile.NamedTemporaryFile() as printed:  # a pipe would stay open as long as anything in the background
        command = (SHELL, "-c", f'exec >"$0" 2>&1\n{line}', printed.name)
        try:
            output = short_command.output_of(command, b"", folder, environ, _SETUP_SECONDS)
        except OSError as problem:
            return f"its setup cannot start: {problem.strerror}"
        if output is None:
            return f"its setup takes longer than {_SETUP_SECONDS:g} s"
        if output.status:
            text = printed.read(_LONGEST_OUTPUT).decode(errors="replace").strip()[-_MOST_SHOWN:]
            return f"its setup ended with status {output.status}{f': {text}' if text else ''}"
    return ""


def _end_what_it_left(folder: str) -> None:
    """End what the setup of a case has left running: no other process has the case's own folder as its HOME."""
    for _ in range(_ENDINGS):
        left = process_tree.started_with(b"HOME=" + os.fsencode(folder))
        if not left:
            return
        process_tree.end_processes(left)


async def _at_once(
    actions: Sequence[Callable[[], Awaitable[_Result]]], what: str, progress: Progress | None
) -> list[_Result]:
    """The results of all actions, in their order, of which a few run at the same time. Raises the first UserError."""
    results: dict[int, _Result] = {}
    problems: dict[int, UserError] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def run_action(number: int, action: Callable[[], Awaitable[_Result]]) -> None:
        async with limiter:
            if problems:
                return
            try:
                results[number] = await action()
            except UserError as problem:  # a group of several would have no hint
                problems[number] = problem
            if progress is not None:
                progress(len(results), len(actions), what)

    async with anyio.create_task_group() as tasks:
        for number, action in enumerate(actions):
            tasks.start_soon(run_action, number, action)
    if problems:
        raise problems[min(problems)]
    return [results[number] for number in range(len(actions))]


@contextmanager
def _forgetting_modules(policy: PolicyUnderTest) -> Iterator[None]:
    """Modules of Python hooks are imported anew: another policy, or a test, may have others of the same names."""
    specs = [spec for loaded in policy.all_loaded for group in loaded.groups for spec in group.hooks if spec.call]
    folders = tuple({os.path.join(spec.cwd, "") for spec in specs if spec.cwd})
    tops = {spec.call.partition(":")[0].partition(".")[0] for spec in specs}
    elsewhere = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in tops and not _is_in(module, folders)
    }
    before, path = set(sys.modules) - elsewhere.keys(), list(sys.path)
    for name in elsewhere:
        del sys.modules[name]
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if _is_in(sys.modules[name], folders):
                del sys.modules[name]
        sys.modules.update(elsewhere)


def _is_in(module: object, folders: tuple[str, ...]) -> bool:
    return str(getattr(module, "__file__", None) or "").startswith(folders)
