"""Errors that the user sees: one line that names what went wrong and where, and a hint (law 3). Exit statuses."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would delay the server's start by 10 ms
if TYPE_CHECKING:
    from typing import Final

EXIT_FINDINGS: Final = 1  # it ran and reports findings
EXIT_USER_ERROR: Final = 2  # it failed for a reason that the user can fix
EXIT_DEFECT: Final = 3  # a defect of hookproxy
EXIT_NO_POLICY: Final = 4  # no hook, no rule and no limit is loaded, so nothing could be judged
EXIT_NOT_EXECUTABLE: Final = 126  # as in shells: the command exists but cannot be executed
EXIT_NOT_FOUND: Final = 127  # as in shells: the command does not exist
RESOURCE_HINT: Final = "ulimit -a shows the limits"  # the hint for a shortage of resources


class UserError(Exception):
    """A problem that the user can fix. `cli` prints it as `error: …` and `hint: …` and exits with `status`.

    The hint says what to do next; a command in it works as it is written. There is always a hint.
    """

    def __init__(self, message: str, hint: str, status: int = EXIT_USER_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        return f"error: {self.message}\nhint: {self.hint}"


class ConfigError(UserError):
    """A configuration or hook file that cannot be used; the message starts with the file, and the line or key."""

    def __init__(self, where: str, message: str, hint: str) -> None:
        super().__init__(f"{where}: {message}", hint)


def not_installed(what: str, package: str, extra: str) -> UserError:
    """The error for a feature whose package comes with an extra of hookproxy that is not installed."""
    return UserError(f"{what} needs the package {package}, which is not installed", install_command(extra))


def _checkout(environment: str) -> str:
    """The folder from which hookproxy was installed into a Python environment; empty: it came from an index."""
    import json
    import os.path
    from glob import glob
    from urllib.parse import unquote

    pattern = os.path.join(environment, "lib", "python*", "site-packages", "hookproxy-*.dist-info", "direct_url.json")
    for file in glob(pattern):
        try:
            with open(file, encoding="utf-8") as text:
                folder = unquote(json.load(text)["url"].removeprefix("file://"))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if os.path.isdir(folder):
            return folder
    return ""


def install_command(extra: str, environment: str = "") -> str:
    """Return the command that adds an extra of hookproxy to a Python environment; empty: to that of this process.

    uv and pipx leave a file in the environments that they make, which have no pip. Both replace all of it, from the
    checkout that it was made from if that is still there, so extras that are there already must be named again.
    """
    import os.path
    import shlex
    import sys

    environment = environment or sys.prefix
    from_where = shlex.quote(f"{_checkout(environment) or 'hookproxy'}[{extra}]")
    again = f" (name the extras that you have, too, as in [demo,{extra}])"
    if os.path.exists(os.path.join(environment, "uv-receipt.toml")):
        return f"uv tool install {from_where}{again}"
    if os.path.exists(os.path.join(environment, "pipx_metadata.json")):
        return f"pipx install --force {from_where}{again}"
    return f"{shlex.quote(os.path.join(environment, 'bin', 'python'))} -m pip install 'hookproxy[{extra}]'"


def uninstall_command(environment: str = "") -> str:
    """Return the command that removes hookproxy from a Python environment. One that `uv venv` made has no pip."""
    import os.path
    import shlex
    import sys

    environment = environment or sys.prefix
    if os.path.exists(os.path.join(environment, "uv-receipt.toml")):
        return "uv tool uninstall hookproxy"
    if os.path.exists(os.path.join(environment, "pipx_metadata.json")):
        return "pipx uninstall hookproxy"
    python = shlex.quote(os.path.join(environment, "bin", "python"))
    try:
        with open(os.path.join(environment, "pyvenv.cfg"), encoding="utf-8") as file:
            by_uv = any(line.startswith("uv = ") for line in file)
    except OSError:  # it is not a virtual environment
        by_uv = False
    return f"uv pip uninstall --python {python} hookproxy" if by_uv else f"{python} -m pip uninstall hookproxy"


def printable(text: str) -> str:
    """Return the text on one line, with an escape for each character that a terminal would interpret or not show."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def file_hint(path: str, why: OSError) -> str:
    """Return the hint about a file that cannot be read or written: how to find out why."""
    from errno import EDQUOT, ENOENT, ENOSPC
    from shlex import quote

    if why.errno in (ENOSPC, EDQUOT):
        return f"free some disk space: df {quote(path)} shows how much is left"
    if why.errno == ENOENT:
        from .similar_names import similar_file

        return similar_file(path) or "name a file that exists; a relative path starts from the working directory"
    return f"ls -ld {quote(path)} shows its type, owner and permissions"


def not_written(path: str, why: OSError, what: str = "cannot be written", first: str = "") -> UserError:
    """The error for a file or folder that cannot be written, or used to write in it.

    `what` cannot be done, and `first` is what its hint begins with.
    """
    hint = _write_hint(path, why)
    return UserError(f"{printable(path)}: {what}: {why.strerror or why}", f"{first}; {hint}" if first else hint)


def _write_hint(path: str, why: OSError) -> str:
    """How to find out why the path cannot be written, or what to do: a command about what exists of it."""
    import os.path
    from errno import EDQUOT, ENOENT, ENOSPC, EROFS
    from shlex import quote

    folder = existing = os.path.dirname(path) or "."
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing) or "."
    if why.errno in (ENOSPC, EDQUOT):
        return f"free some disk space: df {quote(existing)} shows how much is left"
    if why.errno == EROFS:
        return f"it is on a file system that can only be read: df {quote(existing)} shows which"
    if why.errno == ENOENT and existing != folder:
        return f"make its folder: mkdir -p {quote(folder)}"
    both = f"{quote(existing)} {quote(path)}" if os.path.lexists(path) else quote(existing)
    return f"ls -ld {both} shows types, owners and permissions"


def resource_shortage(error: BaseException) -> str:
    """Return the system's message if descriptors, processes or memory are short; empty: it is another error."""
    from errno import EAGAIN, EMFILE, ENFILE, ENOMEM
    from os import strerror

    shortages = (EAGAIN, EMFILE, ENFILE, ENOMEM)
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(resource_shortage, error.exceptions)), "")
    if isinstance(error, OSError) and error.errno in shortages:
        return str(error.strerror)
    if isinstance(error, ImportError):  # an extension module that cannot be opened: only the text says why
        return next((text for text in map(strerror, shortages) if text in str(error)), "")
    return ""


def resource_hint(shortage: str) -> str:
    """Return the hint about a shortage: the limit of open files, or how to find the limit that is reached."""
    from errno import EMFILE
    from os import strerror, sysconf

    if shortage == strerror(EMFILE):
        return f"ulimit -n, the limit of open files, is {sysconf('SC_OPEN_MAX')}: raise it"
    return RESOURCE_HINT


def describe_error(error: BaseException) -> str:
    """Return why a call, or hookproxy itself, has ended unexpectedly."""
    shortage = resource_shortage(error)
    return f"the system is short of resources: {shortage}" if shortage else f"a defect of hookproxy: {error!r}"


def toml_string(text: str) -> str:
    """As a basic string of TOML, in which what a terminal would interpret or not show is escaped, too."""
    return "".join(
        character if character.isprintable() and character not in '"\\' else f"\\U{ord(character):08x}"
        for character in text
    ).join('""')


COMMENT_WIDTH = 78
"""Columns of a comment in TOML that we write: people also read it on a terminal, which has 80, and need a margin."""


def toml_comment(text: str, indent: str = "", bullet: str = "") -> list[str]:
    """A text as lines of comment in TOML. What ends a line, or what nobody sees, is escaped first."""
    from textwrap import wrap

    blanks = " " * len(bullet)
    width = COMMENT_WIDTH - len(indent) - len("# ")
    lines = wrap(
        printable(text), width, break_long_words=False, break_on_hyphens=False, initial_indent=bullet,
        subsequent_indent=blanks,
    )  # fmt: skip
    return [f"{indent}# {line}" for line in lines]
