"""How `--help` looks: examples for each verb, the names of dialects, and lines that break between words only.

On a terminal it is short: a page with a line for each option that there is room for, and the names of the others. The
whole is what `--help --verbose` shows there, and what a pipe and the reference get.
"""

from __future__ import annotations

import re
import textwrap
from argparse import SUPPRESS, ArgumentParser, HelpFormatter
from itertools import chain
from typing import TYPE_CHECKING, Final

from .layout import Page
from .words import wrap

if TYPE_CHECKING:
    from argparse import Action, _MutuallyExclusiveGroup
    from collections.abc import Iterable, Sequence

EXAMPLES: Final = {
    "run": (
        "hookproxy run --hooks ~/.claude/settings.json -- npx -y some-mcp-server",
        "hookproxy run --name tickets --url https://mcp.example.com/mcp",
    ),
    "setup": ("hookproxy setup --dry-run", "hookproxy setup zed --hooks .claude/settings.json"),
    "init": ("hookproxy init guard", "hookproxy init audit --user"),
    "top": ("hookproxy top", "hookproxy top --server git --decision refused"),
    "check": ("hookproxy check .claude/settings.json", "hookproxy check -- uvx mcp-server-git"),
    "try": (
        """hookproxy try write_file '{"path": ".env"}'""",
        "hookproxy try delete_file @arguments.json --hooks .claude/settings.json",
    ),
    "test": ("hookproxy test --config hookproxy.toml --mutate", "hookproxy test tests/deny.toml --junit results.xml"),
    "explain": (
        "hookproxy explain --user anna --server git git_push",
        "hookproxy explain write_file --config hookproxy.toml",
    ),
    "wrap": ("hookproxy wrap zed --server git --config hookproxy.toml", "hookproxy wrap cursor --gateway --dry-run"),
    "unwrap": ("hookproxy unwrap claude-desktop", "hookproxy unwrap --all --dry-run"),
    "uninstall": ("hookproxy uninstall --dry-run", "hookproxy uninstall --yes"),
    "audit": ("hookproxy audit --since 2h --decision '*deny'", "hookproxy audit audit.jsonl --follow"),
    "audit show": ("hookproxy audit show 3f2a91-7", "hookproxy audit show 3f2a91-7 audit.jsonl"),
    "audit stats": ("hookproxy audit stats --since 7d", "hookproxy audit stats audit.jsonl --tool 'git_*'"),
    "audit verify": (
        "hookproxy audit verify audit.jsonl --key audit.key",
        "hookproxy audit verify audit.jsonl --public-key audit.pub",
    ),
    "audit receipt": (
        "hookproxy audit receipt 3f2a91-7 >receipt.json",
        "hookproxy audit receipt 3f2a91-7 audit.jsonl",
    ),
    "replay": (
        "hookproxy replay audit.jsonl --config new.toml",
        "hookproxy replay audit.jsonl --since 7d --tool 'git_*'",
    ),
    "learn": ("hookproxy learn --output learned.toml", "hookproxy learn audit.jsonl --since 7d --server git"),
    "console": ("hookproxy console --open", "hookproxy console --compare new.toml -- uvx mcp-server-git"),
    "trust": ("hookproxy trust hookproxy.toml", "hookproxy trust --dry-run claude=.claude/settings.json"),
    "lock": ("hookproxy lock --agent cursor", "hookproxy lock --check --name git -- uvx mcp-server-git"),
    "convert": (
        "hookproxy convert .claude/settings.json --to cursor",
        "hookproxy convert hooks.json --to gemini --user --fail-closed --write",
    ),
    "hook": (
        "hookproxy hook --as claude -- ./guard.sh",
        "hookproxy hook --as claude --matcher Bash --run ./a.sh --run ./b.sh",
    ),
    "guard": ("hookproxy guard --foreground", "hookproxy guard --config ~/.config/hookproxy/hookproxy.toml"),
    "guard install": ("hookproxy guard install claude codex", "hookproxy guard install cursor --fail-closed --dry-run"),
    "guard uninstall": ("hookproxy guard uninstall claude", "hookproxy guard uninstall --all"),
    "guard status": ("hookproxy guard status", "hookproxy guard status --json"),
    "guard stop": ("hookproxy guard stop", "hookproxy guard stop > /dev/null"),
    "secrets": ("hookproxy secrets scan notes.md", "hookproxy secrets scan - < notes.md"),
    "secrets scan": (
        "hookproxy secrets scan ~/.local/state/hookproxy/audit.jsonl",
        "hookproxy secrets scan notes.md --json",
    ),
    "login": ("hookproxy login https://mcp.example.com/mcp", "hookproxy login --list"),
    "logout": ("hookproxy logout https://mcp.example.com/mcp", "hookproxy logout --all"),
    "serve": ("hookproxy serve --config /etc/hookproxy/gateway.toml", "hookproxy serve --config gateway.toml"),
    "connect": (
        "hookproxy connect tickets",
        "hookproxy connect tickets --url https://mcp.example.com --token-file token",
    ),
    "reload": ("hookproxy reload", "hookproxy reload --socket /run/hookproxy/mcp.sock"),
    "token": (
        "hookproxy token new alice --file tokens --group developers",
        "hookproxy token list --file tokens",
    ),
    "token new": (
        "hookproxy token new alice --file tokens --group developers",
        "hookproxy token new build --file tokens --expires 90 --note 'nightly build'",
    ),
    "token list": ("hookproxy token list --file tokens", "hookproxy token list --file /etc/hookproxy/tokens"),
    "token revoke": (
        "hookproxy token revoke alice --file tokens",
        "hookproxy token revoke 3f2a91c7 --file tokens",
    ),
    "demo": ("hookproxy demo", "hookproxy demo | less"),
    "schema": ("hookproxy schema > hookproxy.schema.json", "hookproxy schema --gateway --path"),
    "completion": (
        "source <(hookproxy completion bash)",
        "hookproxy completion fish > ~/.config/fish/completions/hookproxy.fish",
    ),
    "pack": ("hookproxy pack new my-hooks", "hookproxy pack update --dry-run"),
    "pack new": ("hookproxy pack new my-hooks", "hookproxy pack new my-hooks --output my-hooks.tar.gz"),
    "pack sign": (
        "hookproxy pack sign my-hooks --key ~/.ssh/id_ed25519",
        "hookproxy pack sign my-hooks --key signing-key --output my-hooks.tar.gz",
    ),
    "pack verify": ("hookproxy pack verify my-hooks", "hookproxy pack verify my-hooks.tar.gz --keys signing-key.pub"),
    "pack list": ("hookproxy pack list", "hookproxy pack list | less"),
    "pack update": (
        "hookproxy pack update --dry-run",
        "hookproxy pack update my-hooks --from my-hooks.tar.gz --install",
    ),
    "pack remove": ("hookproxy pack remove my-hooks", "hookproxy pack remove no-leaks"),
    "policy": ("hookproxy policy status", "hookproxy policy update --quiet"),
    "policy status": ("hookproxy policy status", "hookproxy policy status --config /etc/hookproxy/gateway.toml"),
    "policy update": ("hookproxy policy update", "hookproxy policy update --quiet"),
    "policy rollback": (
        "hookproxy policy rollback",
        "hookproxy policy rollback --config /etc/hookproxy/gateway.toml",
    ),
    "policy resume": ("hookproxy policy resume", "hookproxy policy resume --config /etc/hookproxy/gateway.toml"),
    "policy sign": (
        "hookproxy policy sign policy --key signing-key",
        "hookproxy policy sign policy --key signing-key --ring canary --days 7",
    ),
    "policy pack": (
        "hookproxy policy pack policy --key signing-key --output stable.tar.gz",
        "hookproxy policy pack policy --output stable.tar.gz",
    ),
    "policy keys": (
        "hookproxy policy keys policy --key old-key new-key.pub",
        "hookproxy policy keys policy --key signing-key signing-key.pub second-key.pub",
    ),
    "policy verify": (
        "hookproxy policy verify stable.tar.gz --keys signing-key.pub",
        "hookproxy policy verify policy --keys signing-key.pub --ring canary",
    ),
    "interceptors": (
        "hookproxy interceptors serve --hooks .claude/settings.json",
        "hookproxy interceptors list -- ./interceptors.py",
    ),
    "interceptors serve": (
        "hookproxy interceptors serve",
        "hookproxy interceptors serve --hooks .claude/settings.json --name files",
    ),
    "interceptors list": (
        "hookproxy interceptors list -- ./interceptors.py",
        "hookproxy interceptors list --event resources/read --json -- ./interceptors.py",
    ),
    "interceptors invoke": (
        "hookproxy interceptors invoke pii - --event tools/call --phase request -- ./a",
        "hookproxy interceptors invoke pii - --event tools/call --phase response -- ./a",
    ),
    "sandbox": (
        "hookproxy sandbox learn --probe -- uvx mcp-server-git",
        "hookproxy sandbox learn --name files -- mcp-server-filesystem /srv/projects",
    ),
    "sandbox learn": (
        "hookproxy sandbox learn --probe -- uvx mcp-server-git",
        "hookproxy sandbox learn --seconds 600 --output git.toml -- mcp-server-git",
    ),
    "sessions": ("hookproxy sessions", "hookproxy sessions --user anna --server git --json"),
    "sessions end": ("hookproxy sessions end 7f3a", "hookproxy sessions end --user anna"),
    "users": ("hookproxy users", "hookproxy users --socket /run/hookproxy/mcp-admin.sock"),
    "users block": (
        "hookproxy users block anna",
        "hookproxy users block anna --socket /run/hookproxy/mcp-admin.sock",
    ),
    "users allow": (
        "hookproxy users allow anna",
        "hookproxy users allow anna --socket /run/hookproxy/mcp-admin.sock",
    ),
}
"""Two command lines for each verb; each is one that the verb's parser accepts."""

_USAGE_PARTS: Final = re.compile(
    r"\[(?:[^][]|\[[^]]*\])*\](?:\.\.\.)?|\S+"
)  # an optional part is broken only between alternatives


class WholeWords(HelpFormatter):
    """Breaks no word, no name with hyphens and no optional part of the usage, however narrow the terminal is."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in self._split_lines(text, width - len(indent)))

    def _format_usage(
        self,
        usage: str | None,
        actions: Iterable[Action],
        groups: Iterable[_MutuallyExclusiveGroup],
        prefix: str | None,
    ) -> str:
        if usage is None:
            return super()._format_usage(usage, actions, groups, prefix)
        lines, first = ["usage:"], True
        parts = (part.replace(" | ", "\n| ").split("\n") for part in _USAGE_PARTS.findall(usage))
        for part in chain.from_iterable(parts):
            if not first and len(lines[-1]) + 1 + len(part) > self._width:
                lines.append(" " * len("usage:"))
            lines[-1] += f" {part}"
            first = False
        return "\n".join(lines) + "\n\n"


def more_help(parser: ArgumentParser) -> str:
    """What follows the options: the names of dialects where one can be given, and the verb's examples."""
    parts = []
    metavars = [str(action.metavar) for action in parser._actions if action.help != SUPPRESS]
    if any("DIALECT" in metavar for metavar in metavars):
        from ..dialects.registry import DIALECTS

        width = WholeWords(parser.prog)._width
        names = textwrap.wrap(", ".join(DIALECTS), width - 2, break_on_hyphens=False)
        parts.append("dialects:\n" + "\n".join(f"  {line}" for line in names))
    if examples := EXAMPLES.get(parser.prog.removeprefix("hookproxy ")):
        parts.append("examples:\n" + "\n".join(f"  {example}" for example in examples))
    return "".join(f"\n{part}\n" for part in parts)


# --- on a terminal ---

_FIRST_VERBS: Final = ("run", "setup", "init", "check", "try", "test", "wrap", "audit")
"""What a new user needs, in the order of the list of verbs."""

_WIDEST_LABEL: Final = 30  # columns of an option beside which its text begins: at 80, the text keeps the larger part
_LEAST_TEXT: Final = 12  # columns: less is no text, only its first word
_ENDS: Final = re.compile(r"[;:,.]? (?=\()|[;:,] |\. ")  # where a text for which there is no room may end
_SENTENCE: Final = re.compile(r"(?<=[.:]) (?=[A-Z`])")
_CUT: Final = " ..."


def short_help(parser: ArgumentParser, usage: str, page: Page) -> str:
    """The help of a verb with this usage, in as many lines as the page may have. All options are named."""
    head, examples, tail = (Page(page.width, page.encoding) for _ in range(3))
    head.row(("usage: ", ""), usage)
    head.line()
    head.row(("", ""), _SENTENCE.split(" ".join((parser.description or "").split()))[0])
    head.line()
    if commands := EXAMPLES.get(parser.prog.removeprefix("hookproxy ")):
        examples.line()
        examples.line("examples:")
        for command in commands:
            examples.verbatim(f"  {command}")
    tail.line()
    tail.line(f"{parser.prog} --help --verbose says more of each")
    actions = [action for action in parser._actions if action.dest != "help" and action.help != SUPPRESS]
    room = page.most - head.count - tail.count
    options = _option_lines(actions, page.width, room - examples.count)
    if len(options) + examples.count > room:  # a narrow terminal
        return head.text + "".join(_option_lines(actions, page.width, room)) + tail.text
    return head.text + "".join(options) + examples.text + tail.text


def _option_lines(actions: Sequence[Action], width: int, room: int) -> list[str]:
    """A line for each option, or for as many as there is room for, and the names of the others."""
    formatter = WholeWords("")
    forms = [formatter._format_action_invocation(action).rpartition(", ")[2] for action in actions]
    beside = min(max(map(len, forms), default=0), _WIDEST_LABEL)
    lines = [
        f"  {form.ljust(beside)}  {_cut(formatter._expand_help(action), width - max(len(form), beside) - 4)}".rstrip()
        for form, action in zip(forms, actions, strict=True)
    ]
    for shown in range(len(actions), -1, -1):
        names = ", ".join(form.partition(" ")[0] for form in forms[shown:])
        others = [f"  {line}".rstrip() for line in wrap(f"and {names}", width - 2)] if names else []
        if shown + len(others) <= room or not shown:
            break
    return [f"{line}\n" for line in (*lines[:shown], *others)]


def _cut(text: str, room: int) -> str:
    """The text in so many columns: whole, or else up to the last clause or word for which there is room."""
    text = " ".join(text.split())
    if len(text) <= room:
        return text
    if room < _LEAST_TEXT:
        return ""
    ends = [found.start() for found in _ENDS.finditer(text)]
    for end in reversed(ends):
        if room // 2 <= end <= room - len(_CUT) and text.count("(", 0, end) == text.count(")", 0, end):
            return text[:end] + _CUT
    end = text.rfind(" ", 0, room - len(_CUT) + 1)
    return text[:end] + _CUT if end > 0 else ""


def short_list(usage: str, page: Page) -> str:
    """The list of verbs for a terminal: a line for those that come first, and the names of the others."""
    head, verbs, end = usage.split("\n\n", 3)[:2], *usage.split("\n\n", 3)[2:]
    rows = {line.split()[0]: line for line in verbs.splitlines()}
    for part in head:
        page.line(part)
        page.line()
    for verb in _FIRST_VERBS:
        page.row((rows[verb][:14], ""), rows[verb][14:])
    page.row(("  and         ", ""), ", ".join(verb for verb in rows if verb not in _FIRST_VERBS))
    page.begin_end()
    page.line()
    for line in end.splitlines():
        page.line(line)
    page.line("  hookproxy help --verbose   all verbs, each with what it does")
    return page.text
