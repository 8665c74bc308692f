"""Handler types, the ways in which a hook can run: how hookproxy.toml and hook files spell them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...model.errors import ConfigError
from ...model.hooks import HookSpec
from ...model.late_pattern import late_pattern
from ...model.model_endpoint import ModelHook
from ..dialect import Dialect
from . import hook_file as shared_hook_file
from . import labels
from .hook_file import Table

KEYS: Final = (
    "type", "command", "argv", "concurrent", "call", "url", "headers", "allowed_env_vars",
    "warm", "warm_max_age", "warm_spares", "expression", "file", "policy", "schema", "reason",
)  # fmt: skip
"""The keys of `[[hooks.EVENT]]` that say how a hook runs."""

AGENT_HOOKS: Final = "agent-hooks"
"""The type of programs that get the input and give the output of AGENT-HOOKS-0.1. They run as commands."""
_TYPES: Final = ("command", "worker", "python", "http", "cel", "cedar", "opa", AGENT_HOOKS)
_KEYS_OF_TYPE: Final = {
    "command": ("command", "argv", "warm", "warm_max_age", "warm_spares"),
    "worker": ("command", "argv", "concurrent"),
    "python": ("call",),
    "http": ("url", "headers", "allowed_env_vars"),
    AGENT_HOOKS: ("command", "argv", "warm", "warm_max_age", "warm_spares"),
    "cel": ("expression", "reason"),
    "cedar": ("file", "policy", "schema", "reason"),
    "opa": ("url", "headers", "allowed_env_vars", "reason"),
}
_LONGEST_EXPRESSION: Final = 10_000  # characters of a CEL expression: what is longer should be Cedar or OPA
_LABEL_LENGTH: Final = 40  # characters of an expression that its label shows: people recognise it
_MAX_SPARES: Final = 16
_PYTHON_FUNCTION: Final = late_pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_LOOPBACK: Final = late_pattern(r"localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1")
_URL: Final = late_pattern(r"[!-\[\]-~]+")
"""Printable ASCII without blanks and backslashes, because URL parsers differ about them."""
_HEADER_NAME: Final = late_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN_HEADERS: Final = frozenset(
    [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "accept-encoding",
    ]
)
HEADER_VARIABLE: Final = late_pattern(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
"""A variable in the value of a header: `$NAME` or `${NAME}`."""


ReadPolicyFile = Callable[[str], tuple[str, str]]
"""Reads the file that a policy names; returns its absolute path and its text. Raises ConfigError."""


def no_policy_files(path: str) -> tuple[str, str]:
    """The ReadPolicyFile of hooks that stand in no file. Raises ConfigError."""
    raise ConfigError(path, "cannot be read from here", "write the policies themselves, as policy")


class HttpTarget(Struct, frozen=True):
    """Where the document of an HTTP hook goes."""

    url: str
    headers: tuple[tuple[str, str], ...]
    allowed_env_vars: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What does not work as its author may expect, each a sentence without a place."""

    @property
    def host(self) -> str:
        """The host name, which is the hook's label."""
        from urllib.parse import urlsplit  # 3 ms, only if there is such a hook

        return (urlsplit(self.url).hostname or "") if self.url else ""


_NO_HTTP_TARGET: Final = HttpTarget("", (), ())
"""The target of hooks of other types."""


class Handler(Struct, frozen=True):
    """How a hook runs. The fields have the same meaning as in `HookSpec`."""

    type: str
    label: str
    argv: tuple[str, ...] = ()
    shell: str = ""
    call: str = ""
    http_target: HttpTarget = _NO_HTTP_TARGET
    server: str = ""
    tool: str = ""
    input: bytes = b"{}"
    concurrent: bool = False
    warm_max_age: float = 600.0
    warm_spares: int = 1
    expression: str = ""
    policy: str = ""
    policy_file: str = ""
    policy_schema: str = ""
    deny_reason: str = ""
    model: ModelHook | None = None
    timeout: float = 0.0
    """Seconds that such hooks have if their entry does not say it; 0: the file's default."""


def read_handler(entry: Table, folder: str, read_file: ReadPolicyFile = no_policy_files) -> Handler:
    """The handler of a `[[hooks.EVENT]]` table. Raises ConfigError."""
    handler = entry.choice("type", _TYPES, "command")
    misplaced = [key for key in KEYS[1:] if key in entry.members and key not in _KEYS_OF_TYPE[handler]]
    if misplaced:
        types = " or ".join(f'type = "{name}"' for name, keys in _KEYS_OF_TYPE.items() if misplaced[0] in keys)
        raise entry.error(misplaced[0], f"is not for a hook of type {handler!r}", f"it is for {types}")
    if handler == "python":
        return _python(entry)
    if handler == "http":
        return read_http(entry, "allowed_env_vars", strict=True)
    if handler in _POLICIES:
        return _POLICIES[handler](entry, read_file)
    command, argv = entry.text("command"), entry.texts("argv") or ()
    if bool(command.strip()) == bool(argv):
        raise ConfigError(entry.where, "needs exactly one of command and argv", 'write command = "./guard.sh"')
    warm = entry.flag("warm")
    for key in ("warm_max_age", "warm_spares"):
        if key in entry.members and not warm:
            raise entry.error(key, "is only for warm hooks", "write warm = true")
    return Handler(
        "warm" if warm else "command" if handler == AGENT_HOOKS else handler,
        labels.argv_label(list(argv)) if argv else labels.command_label(command),
        argv=shared_hook_file.resolve_program(argv, folder),
        shell=command if not argv else "",
        concurrent=entry.flag("concurrent"),
        warm_max_age=entry.plausible_seconds("warm_max_age", 600.0),
        warm_spares=_spares(entry),
    )


def read_http(entry: Table, allowed_key: str, *, strict: bool = False) -> Handler:
    """The handler of an HTTP entry. See `read_http_target`."""
    target = read_http_target(entry, allowed_key, strict=strict)
    return Handler("http", target.host, http_target=target)


def read_mcp_tool(entry: Table) -> Handler:
    """The handler of an entry that calls a tool of an MCP server. Raises ConfigError."""
    for key in ("server", "tool"):
        entry.require(key, 'write "server": "NAME" and "tool": "NAME"')
        if not entry.text(key):
            raise entry.error(key, "is empty", f"name the {key}, or remove the entry")
    try:
        arguments = json.dumps(entry.table("input").members).encode()
    except (RecursionError, ValueError) as error:
        raise entry.error(
            "input", f"cannot be written as JSON: {error}", "use strings, numbers, lists and objects"
        ) from None
    tool = entry.text("tool")
    return Handler("mcp_tool", tool, server=entry.text("server"), tool=tool, input=arguments)


def make_warm(
    dialect: Dialect, hooks: tuple[HookSpec, ...], place: str, options: Mapping[str, object]
) -> tuple[HookSpec, ...]:
    """The hooks of a `[[use]]`, with its `warm` options: commands start before they are needed. Raises ConfigError."""
    entry = Table(place, "", options)
    if not entry.flag("warm"):
        for key in options:
            if key != "warm":
                raise ConfigError(f"{place}.{key}", "is only for warm hooks", "write warm = true")
        return hooks
    if not dialect.constant_environment:
        message = (
            f"is not possible: the variables of {dialect.name} hooks depend on the call, so they cannot start before it"
        )
        raise ConfigError(f"{place}.warm", message, "remove it")
    age, spares = entry.plausible_seconds("warm_max_age", 600.0), _spares(entry)
    return tuple(
        replace(hook, type="warm", warm_max_age=age, warm_spares=spares) if hook.type == "command" else hook
        for hook in hooks
    )


def _cel(entry: Table, _read_file: ReadPolicyFile) -> Handler:
    entry.require("expression", "write expression = 'arguments.path.startsWith(\"/srv/\")'")
    expression = entry.text("expression")
    if not expression.strip():
        raise entry.error("expression", "is empty", "write 'true' to allow every call, or remove the hook")
    if len(expression) > _LONGEST_EXPRESSION:
        problem = f"has {len(expression)} characters, and at most {_LONGEST_EXPRESSION} are read"
        raise entry.error("expression", problem, "write several hooks: each of them may refuse")
    text = " ".join(expression.split())
    label = text if len(text) <= _LABEL_LENGTH else f"{text[: _LABEL_LENGTH - 1]}…"
    return Handler("cel", f"cel: {label}", expression=expression, deny_reason=_deny_reason(entry))


def _cedar(entry: Table, read_file: ReadPolicyFile) -> Handler:
    written, policy = entry.text("file"), entry.text("policy")
    if bool(written) == bool(policy.strip()):
        raise ConfigError(entry.where, "needs exactly one of file and policy", 'write file = "tools.cedar"')
    path = ""
    if written:
        path, policy = read_file(written)
    schema = read_file(entry.text("schema"))[1] if entry.text("schema") else ""
    label = written.rpartition("/")[2] or "cedar"
    return Handler(
        "cedar", label, policy=policy, policy_file=path, policy_schema=schema, deny_reason=_deny_reason(entry)
    )


def _opa(entry: Table, _read_file: ReadPolicyFile) -> Handler:
    target = read_http_target(entry, "allowed_env_vars", strict=True)
    from urllib.parse import urlsplit  # as above

    path = urlsplit(target.url).path
    if not path.startswith(_OPA_DATA) or not path[len(_OPA_DATA) :].strip("/"):
        hint = 'write the address of a rule, such as "http://localhost:8181/v1/data/mcp/allow"'
        raise entry.error("url", f"does not name a rule of OPA: its path begins with {_OPA_DATA}", hint)
    label = f"opa: {path[len(_OPA_DATA) :].strip('/')}"
    return Handler("opa", label, http_target=target, deny_reason=_deny_reason(entry))


_OPA_DATA: Final = "/v1/data/"
"""OPA's data API, of which a path is a rule. Its other APIs answer otherwise."""

_POLICIES: Final = {"cel": _cel, "cedar": _cedar, "opa": _opa}


def _deny_reason(entry: Table) -> str:
    reason = entry.text("reason")
    if "reason" in entry.members and not reason.strip():
        raise entry.error("reason", "is empty", "write why such calls are refused, or remove it")
    return reason


def _python(entry: Table) -> Handler:
    entry.require("call", 'write call = "guards.paths:check"')
    call = entry.text("call")
    if not _PYTHON_FUNCTION.fullmatch(call):
        raise entry.error("call", f"{call!r} does not name a function", 'write it as "package.module:function"')
    return Handler("python", call, call=call)


def _spares(entry: Table) -> int:
    spares = entry.members.get("warm_spares", 1)
    if isinstance(spares, bool) or not isinstance(spares, int) or not 1 <= spares <= _MAX_SPARES:
        raise entry.error(
            "warm_spares", f"must be a number from 1 to {_MAX_SPARES}, not {spares!r}", "write warm_spares = 1"
        )
    return spares


def read_http_target(entry: Table, allowed_key: str, *, strict: bool = False) -> HttpTarget:
    """The URL and the headers of an HTTP hook. `allowed_key` lists the variables that headers may use.

    A variable that is not in the list is replaced by nothing, as Claude Code's document says, and plain http leaves
    this machine if the file says so. Both get a note; `strict`, for our own files: both raise ConfigError. So do a text
    that is not a URL, and a header that cannot be sent.
    """
    entry.require("url")
    url, allowed = entry.text("url"), entry.texts(allowed_key) or ()
    headers, notes = entry.table("headers"), list[str]()
    target = HttpTarget(_url(entry, url), (), allowed)
    if url[:5].lower() == "http:" and not is_loopback(target.host):
        if strict:
            hint = "write https://; http:// is only for localhost"
            raise entry.error("url", "would send the document unencrypted", hint)
        if not _is_private(target.host):
            notes.append(f"the document goes to {target.host} unencrypted: write https://")
    values: dict[str, str] = {}
    for name in headers.members:
        values[name], unlisted = _listed_only(_header(headers, name), allowed)
        if unlisted and strict:
            hint = f"add {unlisted[0]!r} to {allowed_key}"
            raise headers.error(name, f"uses ${unlisted[0]}, which is not in {allowed_key}", hint)
        notes += [
            f"the header {name} uses ${variable}, which is not in {allowed_key}, so it is empty"
            for variable in unlisted
        ]
    return HttpTarget(target.url, tuple(values.items()), allowed, tuple(notes))


def _listed_only(value: str, allowed: tuple[str, ...]) -> tuple[str, list[str]]:
    """A header's value without the variables that are not allowed, and their names."""
    unlisted: list[str] = []

    def replaced(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name in allowed:
            return found[0]
        unlisted.append(name)
        return ""

    return HEADER_VARIABLE.sub(replaced, value), unlisted


def is_loopback(host: str) -> bool:
    """Whether the host is this machine."""
    return _LOOPBACK.fullmatch(host) is not None


def _is_private(host: str) -> bool:
    """Whether the host is an address of a private network, in which people often have no certificates."""
    from ipaddress import ip_address

    try:
        return ip_address(host).is_private
    except ValueError:
        return False


def _url(entry: Table, url: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_valid = urlsplit(""), False
    if not _URL.fullmatch(url) or parts.scheme not in ("http", "https") or not parts.hostname or not port_is_valid:
        raise entry.error("url", f"{url!r} cannot be the URL of a hook", 'write "https://host/path"')
    if "@" in parts.netloc:
        raise entry.error("url", "contains a user name or a password", "send an Authorization header")
    return url.partition("#")[0]


def _header(headers: Table, name: str) -> str:
    value = headers.text(name)
    if not _HEADER_NAME.fullmatch(name) or name.lower() in _FORBIDDEN_HEADERS:
        raise headers.error(repr(name), "is not a header that a hook can send", "write letters, digits and - only")
    if not value.isascii() or not value.isprintable():
        raise headers.error(
            name, "contains line ends or characters other than ASCII", "encode it, for example in base64"
        )
    return value
