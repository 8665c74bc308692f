"""The environment of a pack: the interpreter and the packages that its hooks need, and nothing of the system's.

It is a virtual environment below the user's data folder. `plan` says what would run, without running anything; `make`
runs it. pip installs exactly the versions that the manifest names, and no others (`--no-deps`); only what is built
already (`--only-binary`), so that no code of a package runs while it is installed; and never outside of the
environment (`PIP_REQUIRE_VIRTUALENV`). Afterwards every package must be there, and none may miss another one: that is
read by another interpreter, with a copy of pip from before, because those of the environment would run what packages
have put beside them (`.pth`, `sitecustomize`, `bin/python3`).
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ..model.errors import UserError
from ..processes.short_command import output_of
from .manifest import Needs, number

DONE: Final = "installed-by-hookproxy"
"""A file in an environment that is complete."""

_SECONDS: Final = 900.0  # of one step: a large package over a slow line
_ANY: Final = Needs().python
_NEWEST: Final = 40  # Python 3.40: newer ones are not looked for
_KEY: Final = 16  # characters of a hash: one pack has few environments
_SHOWN: Final = 3  # lines of what pip says last
_PIP: Final = (
    *("-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"),
    *("--no-cache-dir", "--quiet", "--requirement"),
)
_WHERE_FROM: Final = "|".join(
    (
        *("INDEX_URL", "EXTRA_INDEX_URL", "NO_INDEX", "FIND_LINKS", "TRUSTED_HOST", "PROXY", "CERT", "CLIENT_CERT"),
        *("TIMEOUT", "DEFAULT_TIMEOUT", "RETRIES", "CONFIG_FILE", "KEYRING_PROVIDER", "CONSTRAINT", "REQUIRE_HASHES"),
    )
)
"""Options of pip that say where packages come from: whoever installs them may say so."""
_ELSEWHERE: Final = re.compile(rf"PYTHON(?!HASHSEED).*|PIP_(?!({_WHERE_FROM})$).*|VIRTUAL_ENV")
"""Variables that would have pip install into another place, or something else, or write another file."""

_CHECK: Final = """
import runpy, sys, importlib.metadata as metadata
_, requirements, pip, packages = sys.argv
sys.path.insert(0, pip)
sys.path.append(packages)
sys.path_importer_cache[packages] = None  # what is there is read, and nothing of it is imported
for line in open(requirements):
    name, _, version = line.split()[0].partition("==")
    installed = next((one.version for one in metadata.distributions(name=name, path=[packages])), None)
    if installed is None:
        sys.exit(f"{name} was not installed")
    if installed != version:
        sys.exit(f"{name} {installed} was installed in place of {version}")
sys.argv = ["pip", "--disable-pip-version-check", "check"]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""


class Plan(Struct, frozen=True):
    """What must run for an environment."""

    folder: str
    key: str
    python: str
    """The interpreter that makes it."""
    packages: tuple[str, ...]
    is_made: bool
    """It is there already: nothing runs."""

    @property
    def requirements(self) -> str:
        """The file with the packages, as pip reads it."""
        return os.path.join(self.folder, "requirements.txt")

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands, in their order."""
        make = (self.python, "-m", "venv", *(() if self.packages else ("--without-pip",)), self.folder)
        return (make, (interpreter(self.folder), *_PIP, self.requirements)) if self.packages else (make,)

    @property
    def shown(self) -> tuple[str, ...]:
        """The commands for people."""
        return tuple(map(shlex.join, self.commands))


def plan(needs: Needs, folder: str, environ: Mapping[str, str]) -> Plan | None:
    """The environment in this folder of environments; None: these needs ask for none. Raises UserError."""
    if not needs.packages and needs.python == _ANY:
        return None
    python, version = _interpreter(needs.python, environ)
    text = "\n".join((version, *needs.packages))
    key = hashlib.sha256(text.encode()).hexdigest()[:_KEY]
    place = os.path.join(folder, key)
    return Plan(place, key, python, needs.packages, is_made(place))


def is_made(folder: str) -> bool:
    """Whether the environment is there, as a whole."""
    return os.path.exists(os.path.join(folder, DONE))


def interpreter(folder: str) -> str:
    """The interpreter of an environment."""
    return os.path.join(folder, "bin", "python3")


def variables(folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables with which a hook runs in an environment."""
    path = environ.get("PATH") or os.defpath
    return {"PATH": f"{os.path.join(folder, 'bin')}{os.pathsep}{path}", "VIRTUAL_ENV": folder}


def _interpreter(least: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """An interpreter of at least this version, and its version: our own one, or else the newest in PATH."""
    own = sys.version_info[:3]
    wanted = number(least)
    if own >= wanted and sys.executable:
        return sys.executable, f"{own[0]}.{own[1]}"
    if len(wanted) < 3:  # which patch one in PATH is, its name does not say
        for minor in range(_NEWEST, (wanted[1] if len(wanted) > 1 else 0) - 1, -1):
            if path := shutil.which(f"python3.{minor}", path=environ.get("PATH")):
                return path, f"3.{minor}"
    raise UserError(
        f"its hooks need Python {least}, and there is only {'.'.join(map(str, own))}",
        f"install python{least}, so that it is in PATH",
    )


def make(plan: Plan, environ: Mapping[str, str]) -> None:
    """Run what the plan says, unless it is done. Raises UserError; then nothing is left of it.

    When it is interrupted, the next one begins anew.
    """
    if plan.is_made:
        return
    env = {name: value for name, value in environ.items() if not _ELSEWHERE.fullmatch(name)}
    env |= {"PIP_REQUIRE_VIRTUALENV": "1", "PYTHONNOUSERSITE": "1"}
    shutil.rmtree(plan.folder, ignore_errors=True)
    try:
        os.makedirs(plan.folder, 0o700)
        _run(plan.commands[0], plan, env)
        if plan.packages:
            with open(plan.requirements, "w", encoding="utf-8") as file:
                file.writelines(f"{package}\n" for package in plan.packages)
            _install(plan, env)
        with open(os.path.join(plan.folder, DONE), "w", encoding="utf-8"):
            pass
    except BaseException as error:
        shutil.rmtree(plan.folder, ignore_errors=True)
        if isinstance(error, OSError):
            hint = "nothing was installed; make room, and let the folder be writable for you"
            raise UserError(f"{plan.folder}: cannot be made: {error.strerror}", hint) from None
        raise


def _install(plan: Plan, env: Mapping[str, str]) -> None:
    """Install the packages, and check what is there then. Raises UserError, OSError."""
    (packages,) = glob.glob(os.path.join(glob.escape(plan.folder), "lib", "python3.*", "site-packages"))
    with tempfile.TemporaryDirectory(prefix="hookproxy-") as before:
        shutil.copytree(os.path.join(packages, "pip"), os.path.join(before, "pip"))
        _run(plan.commands[1], plan, env)
        outside = {**env, "PIP_REQUIRE_VIRTUALENV": "0"}  # it only reads
        _run((plan.python, "-I", "-S", "-c", _CHECK, plan.requirements, before, packages), plan, outside)


def _run(argv: tuple[str, ...], plan: Plan, env: Mapping[str, str]) -> None:
    output = output_of(argv, b"", plan.folder, env, _SECONDS)
    if output is None:
        raise UserError(f"{shlex.join(argv[:4])} … took more than {_SECONDS:g} seconds", "nothing was installed")
    if output.status:
        lines = (output.stderr or output.stdout).decode(errors="replace").strip().splitlines()[-_SHOWN:]
        said = "; ".join(line.strip() for line in lines) or f"status {output.status}"
        missing = "requires" in said and "not installed" in said
        hint = "whoever made the pack must name that package in [needs] packages, too" if missing else _hint(said)
        raise UserError(f"{shlex.join(argv[:4])} … failed: {said}", f"nothing was installed; {hint}")


def _hint(said: str) -> str:
    if "ensurepip" in said:
        return "install what makes virtual environments, such as the package python3-venv"
    return "pip must reach a package index, and the versions must be there as wheels for this machine"
