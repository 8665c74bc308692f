"""What the entry of a server at an address becomes as a command: pure, and the same for every syntax.

    "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}
    "command": "/usr/bin/hookproxy",
    "args": ["run", "--name", "far", "--url", "https://example.com/mcp",
             "--header", "Authorization: %{HOOKPROXY_HEADER_AUTHORIZATION}"],
    "env": {"HOOKPROXY_HEADER_AUTHORIZATION": "Bearer ${TOKEN}", "HOOKPROXY_ENTRY": "…"}

Every user of the machine can read command lines. So a header's value moves into the entry's `env`, spelled as before:
the agent replaces its own references (`${TOKEN}`, `${env:TOKEN}`, `${input:token}`, `{env:TOKEN}`) there as it did in
`headers`. Codex and goose do not: there, a name of a variable becomes hookproxy's own reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from ..model.env_references import HEADER_VARIABLE, REFERENCE, URL_VARIABLE
from . import mcp_remote
from .find_servers import Entry, Kind
from .known_agents import HEADER_KEYS, LOGIN_KEYS, REMOTE_KEYS, REMOTE_TYPES, UNTRANSLATABLE_KEYS

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, section 5.6.2: a token
_OWN_HEADERS: Final = ("accept", "accept-encoding", "connection", "content-length", "content-type", "keep-alive")
_FIXED_HEADERS: Final = (
    "expect",
    "host",
    "last-event-id",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
)
"""`run` does not take these two kinds: it sets the former itself, and the latter change how a message is sent."""

_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AGENT_REFERENCE: Final = re.compile(r"\$\{[^}]*\}|\{(?:env|file):[^}]*\}|\$[A-Za-z_]\w*")
_GOOSE_REFERENCE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_SCHEME_ONLY: Final = re.compile(r"(?:[A-Za-z-]+ )?")
"""What may stand beside a reference on a command line: the name of an authentication scheme."""
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_MIN_SECRET: Final = 16  # characters: a random token of 80 bits has that many, and most words in a path are shorter


_DIGIT: Final = re.compile(r"[0-9]")


class Remote(Struct, frozen=True):
    """What an entry becomes."""

    options: tuple[str, ...]
    """`--url`, `--header` and so on."""
    variables: Mapping[str, str]
    """Variables for its `env`, and their values as they are in the entry."""
    inherited: tuple[str, ...]
    """Variables of the agent that must reach the command: Codex passes only those that it is told to."""
    replaced: str
    """The key whose place the command takes."""
    removed: frozenset[str]
    """The keys that are left out."""
    notes: tuple[str, ...]


class NotTranslatable(Exception):
    """An entry that has no equal as a command. The text says why, after the name of the entry."""


def remote(entry: Entry, syntax: str, replace_mcp_remote: bool) -> Remote | None:
    """What the entry becomes; None if it starts a command, which is wrapped as it is. Raises NotTranslatable."""
    if entry.kind is Kind.REMOTE:
        return of_entry(entry, syntax)
    return of_mcp_remote(entry, syntax) if replace_mcp_remote and entry.kind is Kind.STARTED else None


def of_entry(entry: Entry, syntax: str) -> Remote:
    """What the entry of a server at an address becomes. Raises NotTranslatable."""
    values = entry.values
    keys = [key for key in REMOTE_KEYS if values.get(key)]
    _check_keys(values)
    options = _Options(syntax, values, entry.shape.env)
    options.set_url(values[keys[0]])
    for key in HEADER_KEYS:
        if key in values:
            options.add_headers(key, values[key])
    notes: list[str] = []
    if others := [key for key in LOGIN_KEYS if values.get(key)]:
        notes.append(f"{' and '.join(others)} is left out: hookproxy login URL is the login for hookproxy")
    elif "--header" not in options.options:
        notes.append("if the server asks for a login: hookproxy login URL; a login of the agent does not count")
    if len(keys) > 1:
        notes.append(f"{keys[0]} is used, and not {', '.join(keys[1:])}")
    command_keys = (entry.shape.command, entry.shape.args)  # empty ones may be there
    removed = frozenset({*keys[1:], *HEADER_KEYS, *LOGIN_KEYS, *command_keys} & values.keys())
    return options.remote(keys[0], removed, notes)


def _check_keys(values: Mapping[str, object]) -> None:
    for key in UNTRANSLATABLE_KEYS:
        if values.get(key):
            raise NotTranslatable(f"has {key!r}, by which the agent itself connects or makes credentials")
    for key in ("type", "transport"):
        if key in values and values[key] not in REMOTE_TYPES:
            raise NotTranslatable(f"has the {key} {values[key]!r}, which hookproxy does not know")


def of_mcp_remote(entry: Entry, syntax: str) -> Remote | None:
    """What an entry that starts mcp-remote becomes; None if it starts something else. Raises NotTranslatable."""
    called = mcp_remote.parse(entry.argv)
    if called is None or entry.command is None:
        return None
    if called.unknown:
        raise NotTranslatable(f"gives mcp-remote {called.unknown}, which hookproxy has no equal of")
    options = _Options(syntax, entry.values, entry.shape.env)
    options.set_url(called.url)
    if called.allow_http and "--allow-http" not in options.options:
        options.options.append("--allow-http")
    for name, value in called.headers:
        references = _AGENT_REFERENCE.findall(value)
        if references and all(REFERENCE.fullmatch(reference) for reference in references) and options.is_scheme(value):
            options.add_header(name, options.own_references(value))
        elif references and syntax != "JSON":  # only agents with JSON replace references in `env`
            raise NotTranslatable("mixes a secret with a reference in a header: move the whole value into its env")
        else:
            options.add_hidden_header(name, value)
    removed = frozenset({entry.args_key} & entry.values.keys())
    return options.remote(entry.command.key, removed, [])


class _Options:
    """Collects the options and the variables of one entry."""

    def __init__(self, syntax: str, values: Mapping[str, object], env_key: str) -> None:
        self.syntax = syntax
        self.options: list[str] = []
        self.variables: dict[str, str] = {}
        self.inherited: list[str] = []
        self.notes: list[str] = []
        self.sign = "%" if syntax == "JSON" else "$"  # agents with JSON files would replace `$`
        env, env_keys = values.get(env_key), values.get("env_keys")  # goose keeps the values of env_keys in a keyring
        self.env = set(env) if isinstance(env, dict) else set[str]()
        self.known = self.env | (set(env_keys) if isinstance(env_keys, list) else set())

    def remote(self, replaced: str, removed: frozenset[str], notes: list[str]) -> Remote:
        inherited = tuple(dict.fromkeys(self.inherited))
        return Remote(tuple(self.options), self.variables, inherited, replaced, removed, (*self.notes, *notes))

    def set_url(self, url: object) -> None:
        """Add `--url`; the address is hidden if it may contain a secret, or a reference that the agent replaces."""
        if not isinstance(url, str):
            raise NotTranslatable("has an address that is not a string")
        url = self.own_goose_references(url)
        if self.syntax == "JSON" and _AGENT_REFERENCE.search(url):
            self.options += ["--url", self.hidden(URL_VARIABLE, url)]
            return
        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and bool(parts.netloc) and url.isprintable() and " " not in url
        except ValueError:
            valid = False
        if not valid:
            raise NotTranslatable("has an address that is not one of http or https")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            self.options.append("--allow-http")
            self.notes.append("its address is not https: what is sent, credentials too, can be read on the network")
        if references := REFERENCE.findall(url):
            is_public = self.syntax == "YAML" and self.known.issuperset(references)
        else:
            is_public = not (parts.query or parts.username or parts.fragment or _has_secret(parts.path))
        self.options += ["--url", url if is_public else self.hidden(URL_VARIABLE, url)]

    def add_headers(self, key: str, value: object) -> None:
        """Add the headers under one of HEADER_KEYS."""
        if key == "bearer_token_env_var":
            self.add_header("Authorization", f"Bearer {self.variable(key, value)}")
            return
        if not isinstance(value, dict):
            raise NotTranslatable(f"has {key} that are not a table of names and values")
        for name, text in value.items():
            if key == "env_http_headers":
                self.add_header(name, self.variable(f"{key}.{name}", text))
            elif not isinstance(text, str):
                raise NotTranslatable(f"has a header {name} that is not a string")
            elif self.has_goose_reference(text):
                text = self.own_goose_references(text)
                if not (self.is_scheme(text) and self.known.issuperset(REFERENCE.findall(text))):
                    raise NotTranslatable(f"mixes a secret with a reference in the header {name}")
                self.add_header(name, text)
            else:
                self.add_hidden_header(name, text)

    def variable(self, key: str, name: object) -> str:
        """A reference to a variable of the agent's own environment."""
        if not isinstance(name, str) or not _VARIABLE_NAME.fullmatch(name):
            raise NotTranslatable(f"has no name of a variable under {key}")
        self.inherited.append(name)
        return f"{self.sign}{{{name}}}"

    def own_references(self, text: str) -> str:
        """The text with its `${NAME}` in the form that no agent replaces."""
        return REFERENCE.sub(lambda reference: f"{self.sign}{{{reference[1]}}}", text)

    def own_goose_references(self, text: str) -> str:
        """In goose, `$NAME` is a reference too, if the entry names the variable."""
        if self.syntax != "YAML":
            return text

        def replace(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            return f"${{{name}}}" if name in self.known else match[0]

        return _GOOSE_REFERENCE.sub(replace, text)

    def has_goose_reference(self, text: str) -> bool:
        """True if goose replaces something in the text."""
        names = (match[1] or match[2] for match in _GOOSE_REFERENCE.finditer(text))
        return self.syntax == "YAML" and not self.known.isdisjoint(names)

    def is_scheme(self, text: str) -> bool:
        """True if there is no secret beside the references."""
        return bool(_SCHEME_ONLY.fullmatch(REFERENCE.sub("", text)))

    def add_header(self, name: str, value: str) -> None:
        """Add a header with a value that may be on a command line."""
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _FIXED_HEADERS:
            raise NotTranslatable(f"has a header with the name {name!r}")
        self.options += ["--header", f"{name}: {value}"]

    def add_hidden_header(self, name: str, value: str) -> None:
        """Add a header whose value goes into a variable; one that hookproxy sets itself is left out."""
        if name.lower() in _OWN_HEADERS or name.lower().startswith("mcp-"):
            self.notes.append(f"the header {name} is left out: hookproxy sets it itself")
            return
        if not (value.isascii() and value.isprintable() and value.strip()):
            raise NotTranslatable(f"has a header {name} that is empty, or has characters that a header cannot contain")
        self.add_header(name, self.hidden(f"{HEADER_VARIABLE}{re.sub(r'[^A-Z0-9]', '_', name.upper())}", value))

    def hidden(self, variable: str, value: str) -> str:
        """A reference to a new variable with this value."""
        name, number = variable, 1
        while name in self.variables or name in self.env:
            number += 1
            name = f"{variable}_{number}"
        self.variables[name] = value
        return f"{self.sign}{{{name}}}"


def _has_secret(path: str) -> bool:
    """True if a part of an address's path may be a token or another secret, as some services have it."""
    return any(len(part) >= _MIN_SECRET and (_DIGIT.search(part) or part.lower() != part) for part in path.split("/"))
