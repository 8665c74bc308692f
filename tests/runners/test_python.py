"""Python hooks: how functions are found and called, everything that they can do wrong, and their threads."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
from pathlib import Path

import anyio
import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.runners import python
from hookproxy.runners.event_watch import get_watch
from hookproxy.runners.python import Threads, TooManyStuck
from hookproxy.runners.runner import StatefulRunner
from hookproxy.transports.event_loop import new_loop

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("forgets_hooks")]


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


def spec(folder: Path, call: str = "guard:check", timeout: float = 10) -> HookSpec:
    return HookSpec(
        "hookproxy", "f: k", Event.PRE_TOOL_USE, "g", type="python", call=call, cwd=str(folder), timeout=timeout
    )


def open_runner(*hooks: HookSpec) -> StatefulRunner:
    return python.open_runner(list(hooks), lambda _spec, _text: None)


async def call(folder: Path, code: str, document: object = None, seconds: float = 10) -> HookResult:
    (folder / "guard.py").write_text(code)
    hook = spec(folder, timeout=seconds)
    runner = open_runner(hook)
    try:
        with anyio.fail_after(30):
            value = {"n": 1, "tool_input": {"path": "é"}} if document is None else document
            return await runner.run(hook, Document(json.dumps(value).encode() + b"\n", {}), {})
    finally:
        await runner.aclose()


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_function_gets_the_document_and_its_result_is_the_output(tmp_path: Path, kind: str) -> None:
    result = await call(tmp_path, f"{kind} check(document): return {{'got': document}}")
    assert (result.ended, result.code) == (Ended.EXITED, 0)
    assert json.loads(result.stdout) == {"got": {"n": 1, "tool_input": {"path": "é"}}}
    assert 0 < result.ms < 5000
    assert (await call(tmp_path, f"{kind} check(document): return None")).stdout


async def test_none_is_an_empty_output(tmp_path: Path) -> None:
    result = await call(tmp_path, "def check(document): pass")
    assert (result.ended, result.code, result.stdout) == (Ended.EXITED, 0, b"")


async def test_a_function_may_want_the_document_typed(tmp_path: Path) -> None:
    code = """
from __future__ import annotations
from hookproxy.hooks.api import HookInput, deny
def check(hook_input: HookInput): return deny(hook_input.tool_name)
"""
    document = {"session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "read"}
    assert b'"permissionDecisionReason":"read"' in (await call(tmp_path, code, document)).stdout


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("parameter", "body", "hint"),
    [
        (
            "hook_input",
            "hook_input.tool_input",
            "write hook_input: HookInput, and import HookInput from hookproxy.hooks",
        ),
        (
            "hook: 'HookInput'",
            "hook.tool_input",
            "write hook: HookInput, and import HookInput from hookproxy.hooks.api",
        ),
        (
            "event: Typed",
            "event['tool_input']",
            "event is a HookInput: write event.tool_input and so on, or event: dict",
        ),
        ("event: Typed", "event.get('tool_input')", "or event: dict to get a dict"),
        ("hook_input", "hook_input['tool_input'].path", ""),
        ("hook_input", "hook_input['no']", ""),
        ("event: Typed", "event.no", ""),
    ],
)
async def test_a_function_that_takes_its_input_for_something_else_reads_what_to_write(
    tmp_path: Path, kind: str, parameter: str, body: str, hint: str
) -> None:
    imports = "from hookproxy.hooks.api import HookInput as Typed\n"
    members = {"session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_input": {"path": "a"}}
    result = await call(tmp_path, f"{imports}{kind} check({parameter}): return {body}", members)
    assert result.ended is Ended.FAILED
    assert hint in result.detail if hint else "write" not in result.detail


async def test_a_document_that_does_not_fit_the_type_is_a_failure(tmp_path: Path) -> None:
    code = "from hookproxy.hooks.api import HookInput\ndef check(hook_input: HookInput): pass"
    result = await call(tmp_path, code, {"session_id": 7})
    assert result.ended is Ended.FAILED
    assert "cannot read its input" in result.detail


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("raise ValueError('bad\\nly')", "raised ValueError: bad"),
        ("import sys; sys.exit(0)", "raised SystemExit: 0"),
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
        ("return True", "returned bool, not a dict or None"),
        ("return '{}'", "returned str, not a dict or None"),
        ("return {'a': object()}", "returned something that is not JSON"),
        ("a = {}; a['a'] = a; return a", "returned something that is not JSON"),
        ("return check(document)", "RecursionError"),
        ("raise TimeoutError('mine')", "raised TimeoutError: mine"),
    ],
)
async def test_whatever_a_function_does_wrong_is_a_failure(tmp_path: Path, kind: str, body: str, detail: str) -> None:
    if kind == "async def":
        body = body.replace("return check(document)", "return await check(document)")
    result = await call(tmp_path, f"{kind} check(document):\n    {body}")
    assert result.ended is Ended.FAILED
    assert detail in result.detail
    if result.detail.startswith("raised "):
        assert b"guard.py" in result.stderr
        assert b"runners/python.py" not in result.stderr


async def test_a_coroutine_that_cancels_itself_is_a_failure_and_does_not_cancel_the_call(tmp_path: Path) -> None:
    result = await call(tmp_path, "import asyncio\nasync def check(document): raise asyncio.CancelledError")
    assert (result.ended, result.detail) == (Ended.FAILED, "raised CancelledError")


async def test_a_function_that_blocks_times_out_and_is_counted(tmp_path: Path) -> None:
    code = "import threading\ngo = threading.Event()\ndef check(document): go.wait(30)"
    result = await call(tmp_path, code, seconds=0.05)
    sys.modules["guard"].go.set()
    assert (result.ended, result.detail) == (
        Ended.FAILED,
        "timed out after 0.05 s; it cannot be ended, and 1 such call runs on",
    )


async def test_a_coroutine_that_takes_too_long_is_cancelled(tmp_path: Path) -> None:
    result = await call(tmp_path, "import anyio\nasync def check(document): await anyio.sleep(30)", seconds=0.05)
    assert (result.ended, result.detail) == (Ended.FAILED, "timed out after 0.05 s")


async def test_a_coroutine_that_ignores_its_cancellation_times_out(tmp_path: Path) -> None:
    code = """
import asyncio
go = asyncio.Event()
async def check(document):
    while not go.is_set():
        try: await go.wait()
        except asyncio.CancelledError: pass
"""
    result = await call(tmp_path, code, seconds=0.05)
    assert "1 such call runs on" in result.detail
    sys.modules["guard"].go.set()
    await anyio.wait_all_tasks_blocked()


async def test_a_cancelled_call_leaves_its_coroutine_cancelled(tmp_path: Path) -> None:
    code = """
import anyio
seen = []
begun = anyio.Event()
async def check(document):
    begun.set()
    try: await anyio.sleep(30)
    finally: seen.append(1)
"""
    (tmp_path / "guard.py").write_text(code)
    hook = spec(tmp_path)
    runner = open_runner(hook)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.run, hook, Document(b"{}", {}), {})
        await sys.modules["guard"].begun.wait()
        tasks.cancel_scope.cancel()
    await anyio.wait_all_tasks_blocked()
    assert sys.modules["guard"].seen == [1]
    await runner.aclose()


async def test_a_slow_function_delays_no_other(tmp_path: Path) -> None:
    code = "import threading\ngo = threading.Event()\ndef slow(d): go.wait(30)\ndef quick(d): go.set(); return {}"
    (tmp_path / "guard.py").write_text(code)
    slow, quick = spec(tmp_path, "guard:slow"), spec(tmp_path, "guard:quick")
    runner = open_runner(slow, quick)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runner.run, slow, Document(b"{}", {}), {})
            await anyio.wait_all_tasks_blocked()
            await runner.run(quick, Document(b"{}", {}), {})
    await runner.aclose()


@pytest.mark.parametrize(
    ("code", "name", "message", "hint"),
    [
        ("", "guard:check", "guard has no function 'check'", "guard.py"),
        ("check = 7", "guard:check", "guard has no function 'check'", ""),
        ("", "guard_not_there:check", "there is no module 'guard_not_there'", "looked for in"),
        ("import guard_other", "guard:check", "there is no module 'guard_other'", ""),
        ("\n1 / 0", "guard:check", "cannot import guard: ZeroDivisionError: division by zero", "guard.py:2: 1 / 0"),
        ("import sys; sys.exit(0)", "guard:check", "cannot import guard: SystemExit: 0", ""),
        ("x = 1\ndef check(:", "guard:check", "cannot import guard: SyntaxError: ", "guard.py:2: def check(:"),
        ("def check(d):\npass", "guard:check", "cannot import guard: IndentationError: ", "guard.py:2: pass"),
        ("import guard_bad", "guard:check", "cannot import guard: SyntaxError: ", "guard_bad.py:1: 1 +"),
        ("from json import no", "guard:check", "cannot import guard: ImportError", "guard.py:1: from json import no"),
        ("\0", "guard:check", "cannot import guard: ", ""),
    ],
)
def test_a_function_that_cannot_be_found_stops_start_up(
    tmp_path: Path, code: str, name: str, message: str, hint: str
) -> None:
    (tmp_path / "guard.py").write_text(code)
    (tmp_path / "guard_bad.py").write_text("1 +\n")
    with pytest.raises(ConfigError) as problem:
        open_runner(spec(tmp_path, name))
    assert message in problem.value.message
    assert hint in problem.value.hint


def test_nothing_is_found_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "config").mkdir()
    (tmp_path / "here" / "guard.py").write_text("def check(d): pass")
    monkeypatch.chdir(tmp_path / "here")
    sys.path[:0] = ["", str(tmp_path / "here")]
    with pytest.raises(ConfigError, match="there is no module 'guard'"):
        open_runner(spec(tmp_path / "config"))


def test_a_file_in_the_folder_does_not_replace_pythons_own_modules(tmp_path: Path) -> None:
    (tmp_path / "guard.py").write_text("import cmd\ncheck = cmd.Cmd")
    (tmp_path / "cmd.py").write_text("raise SystemExit")
    open_runner(spec(tmp_path))


def test_two_folders_with_a_module_of_the_same_name_are_an_error(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "guard.py").write_text("def check(d): pass")
    with pytest.raises(ConfigError, match="two modules 'guard'"):
        open_runner(spec(tmp_path / "a"), spec(tmp_path / "b"))


@pytest.mark.slow
async def test_a_thousand_calls_leave_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / "guard.py").write_text("def check(d): return d")
    hook = spec(tmp_path)
    get_watch(asyncio.get_running_loop())  # which is runner, and in the place of that of an earlier loop
    gc.collect()
    threads, before = threading.active_count(), sorted(os.listdir("/proc/self/fd"))
    runner = open_runner(hook)
    async with anyio.create_task_group() as tasks:
        for _ in range(1000):
            tasks.start_soon(runner.run, hook, Document(b"{}", {}), {})
    await runner.aclose()
    assert threading.active_count() == threads
    assert sorted(os.listdir("/proc/self/fd")) == before


async def test_threads_are_used_again_and_end() -> None:
    before = threading.active_count()
    threads = Threads()
    names = {await threads.run_function(lambda: str(threading.get_ident()).encode(), 5) for _ in range(100)}
    assert len(names) == 1
    threads.close()
    assert threading.active_count() == before


async def test_a_function_that_hangs_is_counted_until_it_returns() -> None:
    threads, go = Threads(), threading.Event()

    def hang() -> bytes:
        go.wait(20)
        return b"late"

    with pytest.raises(TimeoutError):
        await threads.run_function(hang, 0.01)
    with anyio.move_on_after(0.01):
        await threads.run_function(hang, 60)
    assert threads.stuck == 2
    assert await threads.run_function(lambda: b"others go on", 5) == b"others go on"
    go.set()
    with anyio.fail_after(30):
        while threads.stuck:  # noqa: ASYNC110 - there is no event for it
            await anyio.sleep(0.001)
    threads.close()


async def test_functions_that_always_hang_do_not_fill_memory_with_threads() -> None:
    threads, go = Threads(), threading.Event()
    for _ in range(32):
        with pytest.raises(TimeoutError):
            await threads.run_function(lambda: go.wait(20) and b"", 0.001)
    with pytest.raises(TooManyStuck, match="32 calls"):
        await threads.run_function(lambda: b"", 5)
    go.set()
    threads.close()
