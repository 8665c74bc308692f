"""Hooks that behave badly in every way a process can, run as real processes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from msgspec.structs import replace

from hookproxy.dialects.claude.output import detach_time
from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.processes import environment, process
from hookproxy.runners import command
from hookproxy.runners.event_watch import get_watch
from hookproxy.runners.registry import RUNNERS
from hookproxy.runners.run_process import HookProcess
from hookproxy.transports.event_loop import new_loop
from tests.support.child_processes import children

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

BEGUN = 1.0  # seconds, as a timeout, in which a hook has begun what a test needs of it, on a busy machine too


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


def spec(shell: str = "", argv: tuple[str, ...] = (), cwd: str = "", timeout: float = 30) -> HookSpec:
    source, event = "file: key", Event.PRE_TOOL_USE
    return HookSpec("claude", source, event, "hook", shell=shell, argv=argv, cwd=cwd, timeout=timeout)


async def run(hook: HookSpec, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> HookResult:
    with anyio.fail_after(30):
        return await command.run_command(hook, Document(stdin, env or {}), dict(os.environ))


def open_fds() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
async def leaves_nothing_behind() -> AsyncIterator[None]:
    """No run leaves anything behind: no descriptor, and no child, dead or alive."""
    await run(spec("/bin/true"))  # the loop's watch is there from now on
    gc.collect()  # loops of other tests have descriptors, too
    before = open_fds()
    yield
    assert open_fds() == before
    assert children() == {}


class Fifo:
    """A named pipe that hooks hold: a test can wait for what they write, and for the end of all of them."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    async def read(self) -> bytes:
        """What was written; empty when no process holds it open any more. The hook must have opened it."""
        with anyio.fail_after(30):
            while True:
                await anyio.wait_readable(self.fd)
                try:
                    return os.read(self.fd, 100)
                except BlockingIOError:
                    continue


@pytest.fixture
async def fifo(tmp_path: Path, leaves_nothing_behind: None) -> AsyncIterator[Fifo]:
    fifo = Fifo(tmp_path / "fifo")
    yield fifo
    os.close(fifo.fd)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "hook"
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    return write


def detaching(shell: str, timeout: float = 30) -> HookSpec:
    return replace(spec(shell, timeout=timeout), detaches=detach_time)


@pytest.mark.parametrize("line_end", ["", "\\n"])
async def test_a_hook_that_asks_for_the_background_has_a_result_at_once(fifo: Fifo, line_end: str) -> None:
    go = Path(f"{fifo.path}.go")
    os.mkfifo(go)
    result = await run(detaching(f"""printf '{{"async":true}}{line_end}'; read x <'{go}'; echo late"""))
    assert (result.ended, result.code, result.stdout) == (Ended.DETACHED, 0, b"")
    assert result.rest is not None
    async with anyio.create_task_group() as tasks:
        later: list[HookResult] = []

        async def wait() -> None:
            assert result.rest is not None
            later.append(await result.rest())

        tasks.start_soon(wait)
        await anyio.to_thread.run_sync(go.write_text, "go\n")
    assert later[0].ended is Ended.EXITED
    assert later[0].stdout.endswith(b"late\n")


async def test_a_hook_that_ends_at_once_after_asking_for_the_background_is_not_detached() -> None:
    result = await run(detaching("""sleep 0.05; echo '{"async":true}'; echo no >&2; exit 2"""))
    assert (result.ended, result.code, result.stderr) == (Ended.EXITED, 2, b"no\n")


async def test_a_hook_in_the_background_has_the_time_that_it_asks_for() -> None:
    result = await run(detaching("""echo '{"async":true,"asyncTimeout":50}'; exec sleep 30"""))
    assert result.rest is not None
    with anyio.fail_after(30):
        assert (await result.rest()).ended is Ended.TIMED_OUT


async def test_a_hook_in_the_background_never_has_more_time_than_its_timeout() -> None:
    hook = detaching("""echo '{"async":true,"asyncTimeout":60000}'; exec sleep 30""", timeout=BEGUN)
    result = await run(hook)
    assert result.rest is not None
    with anyio.fail_after(30):
        assert (await result.rest()).ended is Ended.TIMED_OUT


async def test_a_hook_in_the_background_is_ended_on_cancel() -> None:
    result = await run(detaching("""echo '{"async":true}'; exec sleep 30"""))
    assert result.rest is not None
    with anyio.move_on_after(0.05):
        await result.rest()


@pytest.mark.parametrize(
    "printed", ['{"async":false}', '{"asyn', "text", 'x{"async":true}', 'first\\n{"async":true}', "x" * 5000]
)
async def test_other_output_does_not_ask_for_the_background(printed: str) -> None:
    result = await run(detaching(f"printf '{printed}'; sleep 0.1"))
    assert (result.ended, result.stdout) == (Ended.EXITED, printed.replace("\\n", "\n").encode())


async def test_a_hook_that_may_not_ask_for_the_background_is_awaited() -> None:
    result = await run(spec("""echo '{"async":true}'; sleep 0.1"""))
    assert (result.ended, result.stdout) == (Ended.EXITED, b'{"async":true}\n')


async def test_a_hook_reads_the_document_and_its_output_comes_back() -> None:
    assert RUNNERS["command"] is command.run_command
    result = await run(spec("cat; echo oops >&2; exit 2"), b'{"tool_name":"x"}')
    assert (result.ended, result.code) == (Ended.EXITED, 2)
    assert (result.stdout, result.stderr) == (b'{"tool_name":"x"}', b"oops\n")
    assert result.ms > 0
    assert not result.cut
    assert result.detail == ""


@pytest.mark.parametrize("size", [0, 1, 4096, 65_536, 65_537, 300_000, 5_000_000])
async def test_a_document_of_any_size_arrives_whole(size: int) -> None:
    document = os.urandom(size)
    assert (await run(spec(argv=("cat",)), document)).stdout == document


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 300_000])
async def test_output_of_any_size_arrives_whole_however_soon_the_hook_ends(size: int) -> None:
    result = await run(spec(argv=("head", "-c", str(size), "/dev/zero")))
    assert (result.ended, result.code) == (Ended.EXITED, 0)
    assert result.stdout == bytes(size)


async def test_a_quick_hook_that_has_widened_its_output_loses_nothing() -> None:
    code = "import fcntl,os; fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20); os.write(1, bytes(200_000))"
    started = command.start(command.prepare(spec(argv=(sys.executable, "-S", "-E", "-c", code)), Document(b"", {}), {}))
    late = 2.0**40  # seconds: so it counts as quick, however slow this machine is
    hook_process = HookProcess(get_watch(asyncio.get_running_loop()), started, b"", 9, late)
    await hook_process.wait()
    assert hook_process.result().stdout == bytes(200_000)


@pytest.mark.parametrize("size", [0, 300, 300_000])
async def test_a_hook_need_not_read(size: int) -> None:
    result = await run(spec("exit 2"), b"x" * size)
    assert (result.ended, result.code) == (Ended.EXITED, 2)


async def test_a_hook_may_close_its_input_and_continue() -> None:
    result = await run(spec("exec <&-; sleep 0.05; echo done"), b"x" * 300_000)
    assert result.stdout == b"done\n"


async def test_a_hook_may_print_much_on_both_outputs_before_it_reads() -> None:
    noise = "head -c 2000000 /dev/zero"
    result = await run(spec(f"{noise} & {noise} >&2; wait; cat"), b"x" * 300_000)
    assert len(result.stdout) == 2_300_000
    assert len(result.stderr) == 2_000_000
    assert not result.cut


async def test_output_over_the_limit_is_cut_and_the_hook_still_ends_by_itself() -> None:
    limit = process.OUTPUT_LIMIT
    result = await run(spec(f"head -c {limit + 1} /dev/zero; head -c {limit} /dev/zero >&2; exit 3"))
    assert result.cut  # of standard error only the end is missing, and it decides nothing
    assert (len(result.stdout), len(result.stderr), result.code) == (limit, limit, 3)
    exact = await run(spec(f"head -c {limit} /dev/zero"))
    assert (len(exact.stdout), exact.cut) == (limit, False)


async def test_a_hook_is_over_when_it_ends_though_a_child_keeps_its_output(fifo: Fifo) -> None:
    result = await run(spec(f"(echo started >&3; exec sleep 1000) 3>{fifo.path} & echo $$"))
    assert result.ended is Ended.EXITED
    assert result.ms < 5000
    assert await fifo.read() == b"started\n"
    with pytest.raises(BlockingIOError):  # the child lives: it holds the pipe
        os.read(fifo.fd, 1)
    os.killpg(int(result.stdout), signal.SIGKILL)
    assert await fifo.read() == b""


@pytest.mark.parametrize("waits", ["", "sleep 0.05"])
async def test_a_hook_is_over_when_it_ends_though_a_child_prints_for_ever(waits: str) -> None:
    result = await run(spec(f"yes & {waits or ':'}; echo $! >&2"))
    assert result.ended is Ended.EXITED
    assert result.stdout.startswith(b"y\ny\n") or not waits  # `yes` ends when its pipe is closed


async def test_a_timeout_ends_the_whole_group(fifo: Fifo) -> None:
    result = await run(spec(f"exec 3>{fifo.path}; echo printed; sleep 1000 & sleep 1000", timeout=BEGUN))
    assert result.ended is Ended.TIMED_OUT
    assert (result.code, result.stdout) == (0, b"printed\n")
    assert BEGUN * 1000 <= result.ms < (BEGUN + process.GRACE) * 1000
    assert await fifo.read() == b""


async def test_a_timeout_may_be_shorter_than_most_hooks_take() -> None:
    result = await run(spec("sleep 1000", timeout=0.002))
    assert result.ended is Ended.TIMED_OUT
    assert 2 <= result.ms < 1000


async def test_a_hook_that_ignores_term_is_killed_after_the_grace_period(
    fifo: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.3)
    hook = f"exec 3>{fifo.path}; trap '' TERM; while :; do sleep 0.05; done"
    result = await run(spec(hook, timeout=BEGUN))
    assert result.ended is Ended.TIMED_OUT
    assert process.GRACE * 1000 <= result.ms - BEGUN * 1000 < process.GRACE * 1000 + 1000
    assert await fifo.read() == b""


async def test_after_a_timeout_children_have_a_grace_period_though_the_hook_itself_has_ended() -> None:
    child = "(trap 'sleep 0.2; echo cleaned up; exit' TERM; while :; do sleep 0.05; done)"
    result = await run(spec(f"{child} & sleep 1000", timeout=BEGUN))
    assert result.ended is Ended.TIMED_OUT
    assert result.stdout == b"cleaned up\n"


async def test_a_child_of_the_group_that_closed_its_outputs_is_killed_all_the_same(fifo: Fifo) -> None:
    child = f"(trap '' TERM; exec >&- 2>&-; while :; do sleep 0.05; done) 3>{fifo.path}"
    result = await run(spec(f"{child} & sleep 1000", timeout=BEGUN))
    assert result.ended is Ended.TIMED_OUT
    assert await fifo.read() == b""


async def test_a_child_that_left_the_group_delays_a_timeout_no_longer_than_the_grace_period(
    fifo: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.3)
    hook = f"setsid sh -c 'echo $$ >{fifo.path}; exec sleep 1000' & sleep 1000"
    result = await run(spec(hook, timeout=BEGUN))
    assert result.ended is Ended.TIMED_OUT
    assert result.ms < (BEGUN + process.GRACE) * 1000 + 1000
    os.kill(int(await fifo.read()), signal.SIGKILL)


async def test_a_timeout_shorter_than_anything_still_ends_the_hook() -> None:
    assert (await run(spec("sleep 1000", timeout=0))).ended is Ended.TIMED_OUT


async def test_a_signal_from_somebody_else_is_in_the_result() -> None:
    result = await run(spec("kill -SEGV $$"))
    assert (result.ended, result.code) == (Ended.SIGNALLED, signal.SIGSEGV)


@pytest.mark.parametrize("document", [b"", b"x" * 300_000])
async def test_a_cancel_kills_the_whole_group_before_it_continues(fifo: Fifo, document: bytes) -> None:
    hook = spec(f"trap '' TERM; exec 3>{fifo.path}; echo ready >&3; sleep 1000 & sleep 1000")
    before = open_fds()
    finished: list[HookResult] = []

    async def one() -> None:
        finished.append(await run(hook, document))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        assert await fifo.read() == b"ready\n"
        tasks.cancel_scope.cancel()
        cancelled = anyio.current_time()
    assert anyio.current_time() - cancelled < process.GRACE
    assert finished == []
    assert open_fds() == before
    assert await fifo.read() == b""


async def test_a_cancel_during_the_grace_period_kills_at_once(fifo: Fifo) -> None:
    hook = spec(f"exec 3>{fifo.path}; trap 'echo term >&3' TERM; while :; do sleep 0.05; done", timeout=BEGUN)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, hook)
        assert await fifo.read() == b"term\n"
        tasks.cancel_scope.cancel()
        cancelled = anyio.current_time()
    assert anyio.current_time() - cancelled < process.GRACE / 2
    assert await fifo.read() == b""


async def test_a_cancel_before_the_hook_has_done_anything_leaves_nothing() -> None:
    for _ in range(20):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run(spec("sleep 1000"))
        assert scope.cancelled_caught


@pytest.mark.parametrize("argv", [("no-such-hook",), ("/no/such/hook", "x"), ("./no-such-hook",)])
@pytest.mark.parametrize("cwd", ["", "/"])
async def test_a_hook_that_is_not_there_is_not_started(argv: tuple[str, ...], cwd: str) -> None:
    result = await run(spec(argv=argv, cwd=cwd))
    assert (result.ended, result.detail) == (Ended.NOT_STARTED, f"command not found: {argv[0]}")


@pytest.mark.parametrize("cwd", ["", "/"])
async def test_a_hook_that_cannot_be_executed_is_not_started(tmp_path: Path, cwd: str) -> None:
    (tmp_path / "text").write_text("")
    result = await run(spec(argv=(f"{tmp_path}/text",), cwd=cwd))
    assert (result.ended, result.detail) == (Ended.NOT_STARTED, f"not executable: {tmp_path}/text")


@pytest.mark.parametrize("hook", [spec("cat", cwd="/no/such"), spec(argv=("cat",), cwd="/no/such")])
async def test_a_hook_whose_folder_is_missing_is_not_started(hook: HookSpec) -> None:
    result = await run(hook)
    assert (result.ended, result.detail) == (Ended.NOT_STARTED, "no such folder: /no/such")


@pytest.mark.parametrize(
    ("argv", "detail"),
    [(("/bin/echo", "x" * 300_000), "longer than the system allows"), (("/bin/echo", "a\0b"), "null byte")],
)
async def test_an_impossible_command_is_not_started(argv: tuple[str, ...], detail: str) -> None:
    result = await run(spec(argv=argv), b"x" * 300_000)
    assert result.ended is Ended.NOT_STARTED
    assert detail in result.detail


@pytest.mark.parametrize("spare", range(8))
async def test_a_hook_is_not_started_when_descriptors_have_run_out(spare: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = os.open(os.devnull, os.O_RDONLY)
    taken = [highest]
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 20, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        process.close_all(taken[len(taken) - spare :])
        del taken[len(taken) - spare :]
        if spare < 6:  # three pipes
            with pytest.raises(OSError, match="Too many open files") as problem:
                await run(spec("/bin/true"))
            assert problem.value.errno == errno.EMFILE
        else:
            assert (await run(spec("/bin/true"))).ended is Ended.EXITED
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        process.close_all(taken)


async def test_a_command_that_the_shell_cannot_find_ends_as_the_shell_says() -> None:
    result = await run(spec("no-such-hook argument"))
    assert (result.ended, result.code) == (Ended.EXITED, 127)
    assert b"not found" in result.stderr


async def test_a_script_without_interpreter_runs_in_the_shell(script: Callable[[str], str]) -> None:
    path = script('read line; echo "$line $1"\n')
    for hook in (spec(f"{path} one"), spec(argv=(path, "one")), spec(f"{path} one", cwd="/")):
        assert (await run(hook, b"read\n")).stdout == b"read one\n"


async def test_a_hook_sees_its_folder_and_its_variables(tmp_path: Path) -> None:
    hook = HookSpec(
        "claude",
        "file: key",
        Event.PRE_TOOL_USE,
        "hook",
        argv=("/usr/bin/env",),
        cwd=str(tmp_path),
        env=(("B", "hook's own"),),
    )
    inherited = {"A": "inherited", "B": "inherited", "C": "inherited"}
    result = await command.run_command(hook, Document(b"", {"B": "dialect's", "C": "dialect's"}), inherited)
    lines = set(result.stdout.decode().splitlines())
    assert lines == {"A=inherited", "B=hook's own", "C=dialect's", f"PWD={tmp_path}"}


async def test_a_relative_program_is_found_in_the_hooks_folder(script: Callable[[str], str]) -> None:
    folder = os.path.dirname(script("#!/bin/sh\necho $PWD $0\n"))
    for hook in (spec(argv=("./hook",), cwd=folder), spec("./hook", cwd=folder)):
        assert (await run(hook)).stdout == f"{folder} ./hook\n".encode()


async def test_programs_are_searched_in_the_path_that_the_hook_gets(script: Callable[[str], str]) -> None:
    path = Path(script("#!/bin/sh\necho found\n"))
    env = {"PATH": f"{path.parent}:/usr/bin:/bin"}
    for hook in (spec(argv=("hook",)), spec("hook"), spec("hook;")):
        assert (await run(hook, env=env)).stdout == b"found\n"


async def test_a_program_that_vanishes_is_looked_for_again(script: Callable[[str], str]) -> None:
    path = script("#!/bin/sh\necho found\n")
    env = {"PATH": f"{os.path.dirname(path)}:/usr/bin:/bin"}
    assert (await run(spec("hook"), env=env)).stdout == b"found\n"
    os.unlink(path)
    assert (await run(spec("hook"), env=env)).code == 127
    assert (await run(spec(argv=("hook",)), env=env)).ended is Ended.NOT_STARTED
    script("#!/bin/sh\necho again\n")
    assert (await run(spec(argv=("hook",)), env=env)).stdout == b"again\n"


async def test_each_run_gets_the_variables_of_its_own_document() -> None:
    hook, inherited = spec('echo "$ONE $TWO"'), {"PATH": os.defpath, "TWO": "2"}
    for own in ({"ONE": "1"}, {"ONE": "1"}, {"ONE": "one"}, {}, {"TWO": "two"}):
        result = await command.run_command(hook, Document(b"", own), inherited)
        wanted = {"ONE": "", **inherited, **own}
        assert result.stdout.decode() == f"{wanted['ONE']} {wanted['TWO']}\n"
    result = await command.run_command(hook, Document(b"", {}), {**inherited, "TWO": "3"})
    assert result.stdout == b" 3\n"


async def test_what_a_variable_cannot_hold_is_cut_or_replaced_and_the_document_is_whole() -> None:
    env = {"HOOK_TOOL_INPUT": "x" * 300_000, "NAME": "a\0b"}
    hook = spec("echo ${#HOOK_TOOL_INPUT} $HOOK_TRUNCATED $NAME; wc -c")
    result = await run(hook, b"x" * 300_000, env)
    size = environment.VARIABLE_LIMIT - len("HOOK_TOOL_INPUT") - 2
    assert result.stdout.split() == [
        str(size).encode(),
        b"1",
        "a\N{REPLACEMENT CHARACTER}b".encode(),
        b"300000",
    ]


async def test_a_hook_cannot_reach_our_own_standard_descriptors() -> None:
    result = await run(spec("readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2"))
    ours = {os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)}
    assert result.stdout.count(b"pipe:") == 3
    assert not ours & set(result.stdout.decode().split())


async def test_a_hook_whose_end_could_not_be_noticed_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def pidfd_open(_pid: int) -> int:
        raise OSError(errno.EMFILE, "too many")

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    with pytest.raises(OSError, match="too many") as problem:
        await run(spec("sleep 1000"), b"x" * 300_000)
    assert problem.value.errno == errno.EMFILE


async def test_a_hook_that_survives_kill_times_out_and_is_reaped_when_it_ends(
    fifo: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that waits for a stuck disk."""
    killpg = os.killpg
    monkeypatch.setattr(os, "killpg", lambda pid, number: None if number == signal.SIGKILL else killpg(pid, number))
    monkeypatch.setattr(process, "GRACE", 0.1)
    monkeypatch.setattr(process, "REAP_LIMIT", 0.1)
    result = await run(spec(f"trap '' TERM; exec 3<>{fifo.path}; read line <&3", timeout=BEGUN))
    assert result.ended is Ended.TIMED_OUT
    assert result.ms < BEGUN * 1000 + 1400
    gate = os.open(fifo.path, os.O_WRONLY)
    os.write(gate, b"end\n")
    os.close(gate)
    with anyio.fail_after(30):
        while children():
            await anyio.lowlevel.checkpoint()


async def test_without_pidfds_a_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert (await run(spec("cat; exit 2"), b"document")).stdout == b"document"
    assert (await run(spec("sleep 1000", timeout=0.1))).ended is Ended.TIMED_OUT


async def test_many_concurrent_hooks_get_their_own_output() -> None:
    results: dict[int, HookResult] = {}

    async def one(number: int) -> None:
        size = 200_000 if number % 10 == 0 else 10
        results[number] = await run(spec(f"cat; exit {number % 256}"), f"{number}".encode() * size)

    async with anyio.create_task_group() as tasks:
        for number in range(60):
            tasks.start_soon(one, number)
    for number, result in results.items():
        size = 200_000 if number % 10 == 0 else 10
        assert (result.code, result.stdout) == (number, f"{number}".encode() * size)
    assert len(results) == 60


async def test_other_tasks_run_while_a_hook_runs() -> None:
    order: list[str] = []

    async def one() -> None:
        await run(spec("sleep 0.2"))
        order.append("hook")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        order.append("other")
    assert order == ["other", "hook"]
