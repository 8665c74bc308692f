"""What an attacker tries by the tools of a published server: each try is a call, made from the server's table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

CONNECTED: Final = "connected"
"""What a command prints that has reached the gateway's socket; no command line has it as one word."""

_TEXT: Final = "planted-by-hp-attack"
Try = tuple[str, str, dict[str, object]]
_READ: Final = ("tokens", "seal", "credential", "config", "audit", "hook", "private", "other")
_WRITTEN: Final = ("config", "tokens", "seal", "hook", "audit")
_LISTED: Final = ("folder", "state", "others")
_COMMANDS: Final = (
    "cat {tokens} {seal} {config}",
    "cat {audit}; cat {private}; cat {other}",
    "cat /proc/{pid}/environ | tr '\\0' '\\n'",
    "cat /proc/[0-9]*/environ | tr '\\0' '\\n'",
    "cat /proc/{pid}/root{tokens}; cat /proc/{pid}/cwd/tokens",
    "ls -la {folder} {state} {others} /proc/{pid}/fd",
    "ps axe",
    "kill -9 {pid}; kill -TERM -- -{pid}",
    "echo x >>{config}; echo x >{tokens}; rm -f {hook} {audit}",
    "mkdir {state}/planted; touch {folder}/planted {others}/planted",
    "ln {tokens} hard; cat hard; ln -s {seal} soft; cat soft",
    "find / -name 'tokens' -exec cat {{}} + 2>/dev/null",
    "cp -r {folder} copy; cat copy/tokens",
    "chmod -R 777 {folder} {state}; cat {tokens}",
    "git init -q r; cd r; git config core.fsmonitor 'cat {tokens} {seal} >../out; false'; git status -s; cat ../out",
    "unshare -Urm sh -c 'umount -l {folder}; cat {tokens}'",
    "nsenter -t {pid} -m cat {tokens}",
    "python3 -c \"import socket; s = socket.socket(1); s.connect('{socket}'); print('connec' + 'ted')\"",
    'perl -e \'use Socket; socket(S,1,1,0); connect(S, sockaddr_un("{socket}")) and print "connec" . "ted"\'',
    "gdb -p {pid} -batch -ex 'info proc' 2>&1; strace -p {pid} -o out & sleep 0.2; cat out",
)


def tries(table: Mapping[str, Any], known: Mapping[str, str]) -> Iterator[Try]:
    """Each try: what it is after, the tool and its arguments."""
    paths = [*(known[name] for name in _READ), *_of_process(known), "/etc/shadow", f"{known['work']}/../tokens"]
    for call in table.get("read", ()):
        yield from (_filled(call, known, f"read {path}", path=path) for path in paths)
    for call in table.get("list", ()):
        listed = (*(known[name] for name in _LISTED), f"/proc/{known['pid']}/fd", f"/proc/{known['pid']}/root")
        yield from (_filled(call, known, f"list {path}", path=path) for path in listed)
    for call in table.get("write", ()):
        written = (*(known[name] for name in _WRITTEN), *(f"{known[name]}/planted" for name in _LISTED))
        yield from (_filled(call, known, f"write {path}", path=path, text=_TEXT) for path in written)
    for call in table.get("shell", ()):
        commands = (command.format(**known) for command in _COMMANDS)
        yield from (_filled(call, known, f"run {command}", command=command) for command in commands)
    for call in table.get("fetch", ()):
        urls = [f"file://{path}" for path in paths] + [f"http://unix:{known['socket']}:/metrics"]
        yield from (_filled(call, known, f"fetch {url}", url=url) for url in urls)
    for call in table.get("other", ()):
        yield _filled(call, known, call["tool"])


def _of_process(known: Mapping[str, str]) -> list[str]:
    names = ("environ", "maps", "cmdline", f"root{known['tokens']}", "cwd/tokens", "fd/3")
    return [f"/proc/{known['pid']}/{name}" for name in names]


def _filled(call: Mapping[str, Any], known: Mapping[str, str], what: str, **more: str) -> Try:
    arguments = {key: _text(value, {**known, **more}) for key, value in call["arguments"].items()}
    return what, call["tool"], arguments


def _text(value: object, known: Mapping[str, str]) -> object:
    if isinstance(value, list):
        return [_text(one, known) for one in value]
    if not isinstance(value, str):
        return value
    for name, text in known.items():
        value = value.replace(f"{{{name}}}", text)
    return int(value) if value == known["pid"] else value
