"""What every test gets: one event loop, an empty home folder, so that no configuration leaks in, the same examples."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from tests.support import process_state, program
from tests.support.child_processes import children, end_children_except
from tests.support.managed_folder import etc, nobody, private_etc

__all__ = ["etc", "nobody", "private_etc"]

# Whoever starts the tests may ignore signals, as a shell does for `&` and nohup for SIGHUP, and every process that a
# test starts would inherit that. A handler is not inherited.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda _number, _frame: None)

_HOMES: Final = count()
_LEAKS = (
    "CLAUDE_PROJECT_DIR",
    "PYTHONUNBUFFERED",
)  # of whoever runs the tests: they would change what is tested

settings.register_profile(
    "steady",
    derandomize=True,  # the same in every run
    deadline=None,  # the machine may be busy with other tests
    max_examples=30,  # which find what there is to find as the examples are always the same; others are tried at night
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
settings.register_profile("fast", settings.get_profile("steady"), max_examples=10)  # for ./scripts/test --fast
settings.register_profile(  # for the workflow of the night
    "nightly", settings.get_profile("steady"), derandomize=False, max_examples=1000, print_blob=True
)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--portable",
        action="store_true",
        help="tests/end run hookproxy on its portable way, as on a Mac, instead of Linux's own",
    )


def pytest_configure(config: pytest.Config) -> None:
    for name in [*_LEAKS, *(name for name in os.environ if name.startswith(("XDG_", "HOOK")))]:
        os.environ.pop(name, None)
    if config.getoption("--portable"):
        folder = Path(tempfile.mkdtemp(prefix="portable-"))
        folder.chmod(0o755)  # some tests run it as another user
        program.use_portable(folder)


gc.disable()  # collecting makes millions of objects that stay: to look through them again and again takes seconds


def pytest_collection_finish() -> None:
    """From now on garbage is collected, but not among what collecting has made: many tests call `gc.collect`."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    if program.portable:
        shutil.rmtree(Path(program.HOOKPROXY).parent, ignore_errors=True)


_STATE: Final = pytest.StashKey[process_state.ProcessState]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    if _STATE not in item.config.stash:
        item.config.stash[_STATE] = process_state.current()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """A test that leaves the process changed fails: else others fail that run after it in the same worker."""
    yield
    before, after = item.config.stash[_STATE], process_state.current()
    if before != after:
        process_state.restore(before)
        pytest.fail(f"the test leaves changed: {'; '.join(process_state.differences(before, after))}", pytrace=False)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
def leaves_no_process() -> Iterator[None]:
    """A module ends the processes that it starts: tests of other modules count theirs."""
    earlier = set(children())
    yield
    left = end_children_except(earlier)
    assert not left, f"processes are left behind: {left}"


@pytest.fixture
def forgets_hooks() -> Iterator[None]:
    """For tests that load hooks in Python: where they were looked for, and modules named guard, are forgotten."""
    path, names = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - names:
        if name.startswith("guard"):
            del sys.modules[name]


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for sockets: their paths have at most 107 bytes, and those of `tmp_path` grow with the test's name."""
    with tempfile.TemporaryDirectory(prefix="hp-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all homes. `mktemp` would list it to number each of thousands, which takes milliseconds a test."""
    return tmp_path_factory.mktemp("home", numbered=False)


@pytest.fixture(autouse=True)
def home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of this test, empty."""
    folder = homes / str(next(_HOMES))
    folder.mkdir(0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    return folder
