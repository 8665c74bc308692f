"""For tests of hooks and policies in Python: runs one hook, a policy, or a file with cases, as `hookproxy test` does.

    pytest_plugins = ["hookproxy.testing"]  # in conftest.py

    def test_nobody_deletes(hookproxy):
        assert hookproxy.policy("hookproxy.toml").call("delete_file", {"path": "a"}).decision == "deny"

It is not a plugin that pytest finds by itself: every run of pytest beside an installed hookproxy would import it.
Without pytest, `PolicyTester` does the same. Nothing of the machine decides but the files that are named.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import anyio
from msgspec import Struct, json

from .config.load import Loaded
from .dialects.dialect import Group
from .dialects.own import OWN, own_dialect, own_hook
from .model.errors import EXIT_NO_POLICY, UserError
from .model.hooks import Event
from .model.settings import Settings
from .policy_tests.cases import Case, Expected, Step, read_cases, require_cases
from .policy_tests.policies import (
    FilesNamed,
    PolicyUnderTest,
    isolated_environment,
    policy_of_files,
    policy_of_gateway,
    policy_of_loaded,
)
from .policy_tests.report import failure_text
from .policy_tests.run import PolicyResult, run_policy
from .protocol.approval_messages import Approval
from .transports.event_loop import new_loop
from .trial.run import TrialCall

if TYPE_CHECKING:
    from datetime import datetime

_ANSWERS: Final = {"allow": Approval.ONCE, "deny": Approval.NO}


class Outcome(Struct, frozen=True):
    """What came out of a call."""

    decision: str
    """`allow`, `deny` or `ask`. If a person was asked who answered, what followed: `allow` or `deny`."""
    by: str
    """Who decided, in words; empty: nobody did."""
    reason: str
    arguments: dict[str, object] | None
    """The arguments with which it runs; None: it does not run."""
    reads: str
    """What the agent finally reads, as one text; empty if it runs, and no result is given."""
    failures: tuple[str, ...]
    """How hooks failed."""
    asked: bool
    """Whether a person was asked."""


class Policy:
    """A policy. Each call is a session of its own."""

    def __init__(self, tested: PolicyUnderTest) -> None:
        self._tested = tested

    def call(  # noqa: PLR0913  # all are optional, and by name
        self,
        tool: str,
        arguments: Mapping[str, object] | None = None,
        *,
        server: str = "",
        agent: str = "",
        user: str = "",
        groups: Sequence[str] = (),
        answer: Literal["allow", "deny"] | None = None,
        result: str | Mapping[str, object] | None = None,
        time: datetime | None = None,
    ) -> Outcome:
        """Try a call, or a request of a method such as `resources/read`, whose params are the arguments.

        `answer` is a person's, `result` the server's: a text, or a result with its content. Raises UserError for a
        policy that cannot be used.
        """
        if isinstance(result, str):
            result = {"content": [{"type": "text", "text": result}]}
        call = TrialCall(
            tool,
            json.encode(dict(arguments or {})),
            None if result is None else json.encode(dict(result)),
            answer=None if answer is None else _ANSWERS[answer],
        )
        if time is not None and time.tzinfo is None:
            hint = "write datetime(…, tzinfo=UTC), or another time zone"
            raise UserError(f"{time.isoformat()} has no time zone", hint)
        at = 0.0 if time is None else time.timestamp()
        case = Case(tool, "", 0, (Step(call, Expected(), at),), server, agent, user, tuple(groups))
        [done] = _run(self._tested, [case]).results
        [step] = done.steps
        came = step.came
        decided = came.decision.rpartition(", then ")[2]
        arguments_run = json.decode(came.arguments, type=dict[str, object]) if came.arguments else None
        return Outcome(decided, came.by, came.reason, arguments_run, came.reads, came.failures, came.was_asked)

    def run_cases(self, path: str | os.PathLike[str], *, mutate: bool = False) -> None:
        """Run a file with cases. Raises AssertionError that says what came out otherwise; UserError, ConfigError, also
        for a file without any.

        `mutate`: also if some change of a rule, limit or hook is noticed by no case.
        """
        file = read_cases(os.path.abspath(path))
        require_cases(file, os.fspath(path))
        result = _run(self._tested, file.cases, mutate=mutate)
        failed = [f"{one.case.place} {one.case.name}\n{failure_text(one)}" for one in result.results if not one.passed]
        if result.mutation is not None:
            failed += [
                f"{one.mutant.part.words} ({one.mutant.part.place}), {one.mutant.change}: no case notices it"
                for one in result.mutation.unnoticed
            ]
        if failed:
            raise AssertionError("\n".join(failed))


class PolicyTester:
    """Runs hooks and policies; `state` is a folder for what is kept between runs."""

    def __init__(self, state: str) -> None:
        self._state = state

    def policy(self, config: str | os.PathLike[str] | None = None, *, hooks: Sequence[str] = ()) -> Policy:
        """The policy of a hookproxy.toml or gateway.toml, and of hook files as `--hooks` names them.

        Raises ConfigError, UserError, also if there is no hook and no rule in them, because all would be allowed.
        """
        environ, cwd = isolated_environment(os.environ, self._state), os.getcwd()
        path = None if config is None else os.path.join(cwd, config)
        if path is not None and os.path.basename(path) == "gateway.toml":
            tested = policy_of_gateway(path, environ, cwd)
        else:
            tested = policy_of_files(FilesNamed(path, tuple(hooks)), environ, cwd)
        if tested.is_empty:
            where = f" in {path}" if path else ""
            problem = f"no policy is loaded{where}: no hook and no rule is configured, so there is nothing to test"
            raise UserError(problem, 'name one: policy("hookproxy.toml"), or policy(hooks=[…])', EXIT_NO_POLICY)
        return Policy(tested)

    def hook(
        self,
        hook: str | Sequence[str],
        *,
        event: Literal["PreToolUse", "PostToolUse", "PostToolUseFailure"] = "PreToolUse",
        folder: str | os.PathLike[str] = ".",
        **keys: object,
    ) -> Policy:
        """The policy of this hook alone: a line of shell, a program with its arguments, or `module:function` in Python.

        `keys` are further keys of a `[[hooks.EVENT]]` table, such as `matcher`. Raises ConfigError.
        """
        folder = os.path.abspath(folder)
        table = {**_handler(hook), **keys}
        spec = own_hook(table, Event(event), f"hooks.{event}[0]", folder)
        dialect = own_dialect(str(keys.get("type", "")))
        group = Group(dialect, "", (spec,), OWN.tool_names, match_all_names=True)
        loaded = Loaded(Settings(), (group,), ())
        environ = isolated_environment(os.environ, self._state)
        return Policy(policy_of_loaded(loaded, environ, folder))


def _handler(hook: str | Sequence[str]) -> dict[str, object]:
    if not isinstance(hook, str):
        return {"argv": list(hook)}
    module, colon, function = hook.partition(":")
    is_python = colon and all(part.isidentifier() for part in (*module.split("."), *function.split(".")))
    return {"type": "python", "call": hook} if is_python else {"command": hook}


def _run(tested: PolicyUnderTest, cases: Sequence[Case], *, mutate: bool = False) -> PolicyResult:
    """The result, from a loop of its own: where a coroutine is tested, in another thread, while the coroutine waits."""
    run = partial(
        anyio.run, partial(run_policy, tested, cases, mutate=mutate), backend_options={"loop_factory": new_loop}
    )
    try:
        anyio.get_current_task()
    except RuntimeError:  # no coroutine runs
        return run()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


try:
    import pytest
except ImportError:  # `PolicyTester` needs none
    pass
else:

    @pytest.fixture
    def hookproxy() -> Iterator[PolicyTester]:
        """Runs hooks and policies."""
        with tempfile.TemporaryDirectory(prefix="hookproxy-test-", ignore_cleanup_errors=True) as state:
            yield PolicyTester(state)
