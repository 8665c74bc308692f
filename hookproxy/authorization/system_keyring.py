"""The system's keyring, if the package `keyring` is installed and finds a real one. Its calls may wait for a person."""

from __future__ import annotations

from typing import Final, Protocol

from ..model.errors import UserError

_SERVICE: Final = "hookproxy"  # the name under which keyrings show our entries
_SYSTEMS_OWN: Final = (
    "keyring.backends.SecretService",
    "keyring.backends.kwallet",
    "keyring.backends.libsecret",
    "keyring.backends.macOS",
)
"""Modules of backends that encrypt and belong to the system. Others store plain text, or ask for a password."""


class _Backend(Protocol):
    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class SystemKeyring:
    """Texts by name in the system's keyring."""

    def __init__(self, backend: _Backend) -> None:
        self._backend = backend

    def get(self, name: str) -> str | None:
        """The text; None if there is none. Raises UserError if the keyring cannot be read."""
        try:
            return self._backend.get_password(_SERVICE, name)
        except Exception as error:
            raise _unusable("read", error) from None

    def password(self, service: str, user: str) -> str | None:
        """What another program has stored; None if there is nothing. Raises UserError if the keyring cannot be read."""
        try:
            return self._backend.get_password(service, user)
        except Exception as error:
            raise _unusable("read", error) from None

    def set(self, name: str, text: str) -> None:
        """Store the text. Raises UserError."""
        try:
            self._backend.set_password(_SERVICE, name, text)
        except Exception as error:
            raise _unusable("written", error) from None

    def delete(self, name: str) -> None:
        """Remove the text if it is there. Raises UserError."""
        try:
            if self._backend.get_password(_SERVICE, name) is not None:
                self._backend.delete_password(_SERVICE, name)
        except Exception as error:
            raise _unusable("written", error) from None


def find_keyring() -> SystemKeyring | None:
    """The system's keyring; None if there is none, or if the package `keyring` is not installed."""
    from importlib import import_module  # the package is optional: without it, checkers could not resolve an import

    try:
        keyring = import_module("keyring")
    except ImportError:
        return None
    try:
        chosen = keyring.get_keyring()
    except Exception:  # backends come from other packages and raise what they like: then there is no keyring
        return None
    for backend in getattr(chosen, "backends", (chosen,)):  # a chainer has several
        if type(backend).__module__.startswith(_SYSTEMS_OWN):
            return SystemKeyring(backend)
    return None


def _unusable(done: str, error: Exception) -> UserError:
    """The error of a keyring that failed. Its text may hold what was to be stored, so only its type is named."""
    why = f"the system's keyring cannot be {done}: {type(error).__name__}"
    return UserError(why, "unlock it, or: hookproxy login --no-keyring URL")
