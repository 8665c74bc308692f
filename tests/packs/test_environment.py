"""The environments of packs: what would run is known before, and exactly what the manifest names is installed."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest

from hookproxy.model.errors import UserError
from hookproxy.packs import environment
from hookproxy.packs.manifest import Needs
from hookproxy.processes.short_command import output_of
from tests.support.packs import wheel


def test_hooks_that_need_nothing_need_no_environment(tmp_path: Path) -> None:
    assert environment.plan(Needs(programs=("jq",)), str(tmp_path), {}) is None


def test_what_would_run_is_known_and_nothing_runs(tmp_path: Path) -> None:
    plan = environment.plan(Needs(packages=("one==1.0",)), str(tmp_path), {})
    assert plan is not None
    make, install = plan.commands
    assert make[:3] == (sys.executable, "-m", "venv")
    assert install[:4] == (os.path.join(plan.folder, "bin", "python3"), "-m", "pip", "install")
    assert {"--no-deps", "--only-binary", "--no-input"} <= set(install)
    assert plan.folder.startswith(str(tmp_path))
    assert not list(tmp_path.iterdir())
    other = environment.plan(Needs(packages=("one==1.1",)), str(tmp_path), {})
    assert other is not None
    assert other.folder != plan.folder


def test_an_interpreter_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"its hooks need Python 3\.99"):
        environment.plan(Needs(python="3.99"), str(tmp_path), {"PATH": str(tmp_path)})
    program = tmp_path / "python3.39"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    plan = environment.plan(Needs(python="3.38"), str(tmp_path), {"PATH": str(tmp_path)})
    assert plan is not None
    assert plan.python == str(program)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Variables with which pip finds two wheels, and is told to install elsewhere."""
    wheel(tmp_path / "wheels", "quietwords", "1.0", "WORDS = ['a']\n")
    wheel(tmp_path / "wheels", "quietwords", "1.1", "WORDS = ['b']\n", ["missingthing"])
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    return {**os.environ, **offline, "PIP_TARGET": str(tmp_path / "elsewhere"), "PYTHONPATH": str(tmp_path)}


@pytest.mark.slow
@pytest.mark.timeout(300)  # pip takes ten seconds, and the machine may be busy
def test_packages_are_installed_into_the_environment_and_nowhere_else(tmp_path: Path, environ: dict[str, str]) -> None:
    plan = environment.plan(Needs(packages=("quietwords==1.0",)), str(tmp_path / "environments"), environ)
    assert plan is not None
    environment.make(plan, environ)
    assert environment.is_made(plan.folder)
    assert not (tmp_path / "elsewhere").exists()
    assert "quietwords" not in sys.modules
    variables = environment.variables(plan.folder, environ)
    argv = ["sh", "-c", "python3 -c 'import quietwords; print(quietwords.WORDS)'"]
    printed = output_of(argv, b"", str(tmp_path), {**os.environ, **variables}, 60)
    assert printed is not None
    assert printed.stdout == b"['a']\n"
    wrong = environment.plan(Needs(packages=("quietwords==1.1",)), str(tmp_path / "environments"), environ)
    assert wrong is not None
    with pytest.raises(UserError, match="requires missingthing, which is not installed") as raised:
        environment.make(wrong, environ)
    assert "must name that package" in raised.value.hint
    assert os.listdir(tmp_path / "environments") == [plan.key], "nothing is left of what failed"


@pytest.mark.slow
@pytest.mark.timeout(300)  # pip takes ten seconds, and the machine may be busy
@pytest.mark.parametrize("package", ["quietwords==9", f"quietwords==1.0 --hash=sha256:{'0' * 64}"])
def test_a_package_that_is_not_there_or_another_one_is_an_error(
    tmp_path: Path, environ: dict[str, str], package: str
) -> None:
    plan = environment.plan(Needs(packages=(package,)), str(tmp_path / "environments"), environ)
    assert plan is not None
    with pytest.raises(UserError, match="failed") as raised:
        environment.make(plan, environ)
    assert "nothing was installed" in raised.value.hint
    assert not environment.is_made(plan.folder)


RUNNING = {  # what would run with the environment's own interpreter
    "loud.pth": "import os; open(MARK, 'a').close()\n",
    "sitecustomize.py": "open(MARK, 'a').close()\n",
    "_manylinux.py": "open(MARK, 'a').close()\n",
    "pip/__init__.py": "open(MARK, 'a').close()\n",
    "loud-1.0.data/scripts/python3": "#!/bin/sh\necho > MARK\n",
}


@pytest.mark.slow
@pytest.mark.timeout(300)  # pip takes ten seconds, and the machine may be busy
def test_no_code_of_a_package_runs_while_it_is_installed(tmp_path: Path, environ: dict[str, str]) -> None:
    mark = tmp_path / "ran"
    path = wheel(tmp_path / "wheels", "loud", "1.0", "")
    with zipfile.ZipFile(path, "a") as file:
        for name, text in RUNNING.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o100755 << 16
            file.writestr(info, text.replace("MARK", str(mark) if text.startswith("#!") else repr(str(mark))))
    plan = environment.plan(Needs(packages=("loud==1.0",)), str(tmp_path / "environments"), environ)
    assert plan is not None
    environment.make(plan, {**environ, "PIP_REPORT": str(tmp_path / "report"), "PIP_LOG": str(tmp_path / "log")})
    assert environment.is_made(plan.folder)
    assert not mark.exists()
    assert not (tmp_path / "report").exists(), "and pip writes nothing elsewhere"
    assert not (tmp_path / "log").exists()
    output_of([environment.interpreter(plan.folder), "-c", ""], b"", str(tmp_path), os.environ, 60)
    assert mark.exists(), "it would have run"
