"""Reads the values that `[secrets.values]` names, when a run begins and when it is reloaded.

A value that cannot be had stops the start: it could not be masked (law 3). No error has one in it.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..model.errors import UserError
from ..model.secret_settings import LONGEST_VALUE, SHORTEST_VALUE, SecretSettings, Source
from ..secrets.engine import PatternError
from ..secrets.finder import Finder

if TYPE_CHECKING:
    from ..authorization.system_keyring import SystemKeyring

_COMMAND_SECONDS: Final = 30.0  # a password manager may ask the person
_LEAST_DIFFERENT: Final = 4  # bytes: `00000000` is in ordinary texts


class Value(bytes):
    """A value that shows in no `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<a secret>"

    __str__ = __repr__


def finder(settings: SecretSettings, environ: Mapping[str, str]) -> Finder:
    """What finds the secrets of these settings. Raises UserError for a value that cannot be had or used."""
    values = read_values(settings.values, environ)
    try:
        return Finder(settings, values)
    except PatternError as problem:
        hint = "name fewer values in secrets.values, or shorter ones"
        raise UserError(f"secrets: what is looked for cannot be compiled: {problem}", hint) from None


def read_values(sources: Mapping[str, Source], environ: Mapping[str, str]) -> dict[str, Value]:
    """The values by name. Blocks while commands run. Raises UserError, which contains no value."""
    values = {}
    for name, source in sources.items():
        where = f"secrets.values.{name}"
        values[name] = _checked(read_value(source, where, environ), source, where)
    return values


def read_value(source: Source, where: str, environ: Mapping[str, str]) -> Value:
    """The value at this source, without the end of its line; `where` is the key of the configuration that names it.

    Blocks while a command runs. Raises UserError, which does not contain the value.
    """
    match source.kind:
        case "env":
            value = _of_variable(source.what, where, environ)
        case "file":
            value = _of_file(source, where)
        case "keyring":
            value = _of_keyring(source, where)
        case "command":
            value = _of_command(source, where, environ)
    return Value(value.removesuffix(b"\n").removesuffix(b"\r"))


def _of_variable(variable: str, where: str, environ: Mapping[str, str]) -> bytes:
    if variable not in environ:
        hint = f"set {variable} where the agent is started, or remove {where}"
        raise UserError(f"{where}: the environment variable {variable} is not set", hint)
    return os.fsencode(environ[variable])


def _of_file(source: Source, where: str) -> bytes:
    try:
        with open(source.what, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UserError(f"{where}: {source.what} is not a file", "name a file with the value in it")
            return file.read(LONGEST_VALUE + 3)  # and the end of its line
    except OSError as error:
        hint = f"whoever runs hookproxy must be able to read it: ls -l {shlex.quote(source.what)}"
        raise UserError(f"{where}: {source.what} cannot be read: {error.strerror}", hint) from None


def _of_keyring(source: Source, where: str) -> bytes:
    from ..authorization.system_keyring import find_keyring

    service, _, user = source.what.rpartition("/")
    keyring: SystemKeyring | None = find_keyring()
    if keyring is None:
        hint = "pip install 'hookproxy[keyring]', where the system has a keyring that is open"
        raise UserError(f"{where}: the system's keyring cannot be used", hint)
    hint = f"keyring get {shlex.quote(service)} {shlex.quote(user)} must print it"
    try:
        value = keyring.password(service, user)
    except UserError as error:
        raise UserError(f"{where}: {error.message}", hint) from None
    if value is None:
        raise UserError(f"{where}: the keyring has nothing for {source.what}", hint)
    return value.encode()


def _of_command(source: Source, where: str, environ: Mapping[str, str]) -> bytes:
    from ..dialects.shared.hook_file import resolve_program
    from ..processes.short_command import output_of

    words = resolve_program(tuple(shlex.split(source.what)), source.folder)
    hint = f"run it yourself: {source.what}"
    try:
        output = output_of(words, b"", source.folder or "/", environ, _COMMAND_SECONDS)
    except OSError as error:
        raise UserError(f"{where}: {words[0]} cannot be started: {error.strerror}", hint) from None
    if output is None:
        raise UserError(f"{where}: the command takes more than {_COMMAND_SECONDS:.0f} seconds", hint)
    if output.status:
        raise UserError(f"{where}: the command ended with status {output.status}", hint)
    return output.stdout


def _checked(value: Value, source: Source, where: str) -> Value:
    """The value, if it can be looked for."""
    where = f"{where}: the value of {source}"
    if len(value) < SHORTEST_VALUE or len(set(value)) < _LEAST_DIFFERENT:
        hint = "use a longer secret, or remove it from [secrets.values]"
        least = f"a value has at least {SHORTEST_VALUE} bytes, and {_LEAST_DIFFERENT} different ones"
        raise UserError(f"{where} is too short: {least}, because a shorter one is in ordinary texts", hint)
    if len(value) > LONGEST_VALUE:
        raise UserError(f"{where} has more than {LONGEST_VALUE} bytes", "name a token or a key, not a file of others")
    return value
