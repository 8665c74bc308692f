"""What every verb needs: output for people, and the command line. Imports only `os` and `sys`."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from ..config.load import Loaded


def show(text: str) -> None:
    """Write text for people to standard output, and flush it."""
    if sys.stdout is None:  # it was closed before we started
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        from ..model.errors import UserError

        discard_output()
        hint = "the output is incomplete: write it to a place with enough room"
        raise UserError(f"cannot write to standard output: {error.strerror}", hint) from error


def visible(text: str, encoding: str) -> str:
    """The text as a terminal can show it. Anybody may have written a file: nothing in it reaches the terminal raw."""
    from ..model.errors import printable

    return printable(text).encode(encoding, "backslashreplace").decode(encoding)


def working_directory() -> str:
    """The path of the working directory, even if it has been deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.environ.get("PWD", "/")


def show_line(text: str) -> None:
    """Write one line as a terminal can show it. On a terminal, what does not fit follows on further lines."""
    width, encoding, _ = terminal()
    text = visible(text, encoding)
    if width:
        from .words import error_text

        text = error_text(text, width)
    show(f"{text}\n")


def tell(*texts: str, prefix: str = "hookproxy: ") -> None:
    """Write each text that is not empty to standard error, as a line that a terminal can show."""
    for text in filter(None, texts):
        try:
            sys.stderr.write(f"{for_stderr(f'{prefix}{visible(text, sys.stderr.encoding)}')}\n")
        except (OSError, AttributeError):  # nobody reads it, or it was closed before we started
            return


def for_stderr(text: str) -> str:
    """The text, on a terminal broken between words."""
    if not sys.stderr.isatty():
        return text
    from shutil import get_terminal_size

    from .words import error_text

    return error_text(text, get_terminal_size().columns)


def terminal() -> "tuple[int, str, bool]":
    """The columns of standard output, 0 if it is not a terminal; its encoding; and whether to print colours on it."""
    if sys.stdout is None:
        return 0, "ascii", False
    if not sys.stdout.isatty():
        return 0, sys.stdout.encoding, False
    from shutil import get_terminal_size

    coloured = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    return get_terminal_size().columns, sys.stdout.encoding, coloured


def has_terminal() -> bool:
    """True if a person can be shown something, and can answer it."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def has_input() -> bool:
    """False if standard input was closed before we started: its number then belongs to something else."""
    return sys.stdin is not None


def ask(question: str, default: bool = False) -> bool:
    """Ask a question with the answer yes or no on the terminal. Enter means the default, and anything else no."""
    show(visible(f"{question} {'[Y/n]' if default else '[y/N]'} ", sys.stdout.encoding))
    try:
        answer = sys.stdin.readline()
    except UnicodeDecodeError:
        answer = "?\n"
    if not answer.endswith("\n"):  # the input has ended; the terminal is still on the line of the question
        show("\n")
    return answer.strip().lower() in ("y", "yes") or (default and answer == "\n")


def discard_output() -> None:
    """Redirect standard output to nowhere, so that the interpreter's own last flush does not fail again."""
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, sys.stdout.fileno())
    os.close(null_device)


def create(texts: "Mapping[str, str]", hint: str, below: str = "") -> "list[str]":
    """Create these files or none of them, as `create_files` does. Returns the folders that were made for them.

    Raises UserError; where a file exists already, its hint says what else to do.
    """
    from ..files.create import create_files
    from ..model.errors import UserError, not_written

    first = "nothing was written"
    try:
        return create_files(texts, below)
    except FileExistsError as error:
        raise UserError(f"{error.filename} already exists", f"{first}; {hint}") from None
    except OSError as error:
        raise not_written(error.filename, error, first=first) from None
    except ValueError as error:
        raise UserError(f"the files cannot be written: {error}", f"{first}; {hint}") from None


def load_named(options: "Namespace", cwd: str, hooks: "Sequence[str] | None" = None) -> "Loaded":
    """The configuration that the options in `HOOK_OPTIONS` name; with `hooks`, these files instead of `--hooks`.

    Raises ConfigError.
    """
    from ..config.load import failing_closed, load

    files = options.hooks if hooks is None else hooks
    loaded = load(options.config, files, None, os.environ, cwd, options.project)
    return failing_closed(loaded) if getattr(options, "fail_closed", False) else loaded


def configured_audit(config: "str | None", other: str) -> str:
    """The audit file of the configuration. Raises UserError if it has none: `other` is a command that names one."""
    from ..audit.os_user import audit_path
    from ..config.load import load
    from ..model.errors import UserError

    settings = load(config, [], None, os.environ, working_directory()).settings
    if not settings.audit_file:
        raise UserError("no audit log is kept", f"{other}, or remove audit.enabled from hookproxy.toml")
    return audit_path(settings.audit_file)


def split_command(arguments: "Sequence[str]") -> "tuple[list[str], list[str]]":
    """Our options, and the server's command line after the first `--`."""
    arguments = list(arguments)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]


def folder_of_runs() -> str:
    """The folder in which consoles find all runs of this user. Raises UserError if there is none."""
    from ..live import registry
    from ..model.errors import UserError
    from ..trust.sources import state_folder

    if folder := registry.folder_of_runs(os.environ, state_folder(os.environ, os.path.expanduser("~"))):
        return folder
    raise UserError("runs cannot be found: there is no folder for them", "set XDG_RUNTIME_DIR or HOME")


def unread_file(config: "str | None", path_read: str, cwd: str) -> str:
    """A sentence about a hookproxy.toml in the working directory that is not read; empty: there is none.

    Whoever names another file with `--config` has chosen, and is told nothing. `path_read` is the user's own file.
    """
    path = os.path.join(cwd, "hookproxy.toml")
    if config is not None or not os.path.isfile(path) or (path_read and _is_same_file(path, path_read)):
        return ""
    return "./hookproxy.toml is not read, because nothing names it: --config hookproxy.toml does"


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:  # it was a pipe, or is gone by now
        return False


def check_archive_name(path: "str | None") -> None:
    """Raise UserError for the name of an archive of another form than ours, which is gzip around tar. None: no name."""
    from ..model.errors import UserError

    stem, dot, form = (path or "").rpartition(".")
    if dot and form.lower() in ("zip", "7z", "rar", "tar", "bz2", "xz", "zst", "tbz2", "txz"):
        name = f"{stem.removesuffix('.tar')}.tar.gz"
        raise UserError(f"--output {path}: what is written is a .tar.gz, and not a .{form}", f"--output {name}")
