"""Presets of widely used servers: Claude Code's name for each tool that does the same as Claude Code's.

A preset also lists the tools without an alias: hooks for Read or Bash do not run for them (law 4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ..model.aliases import Alias


class Preset(Struct, frozen=True):
    """One server's tools."""

    server: str
    """The server's package, for people."""
    tools: tuple[Alias, ...]
    others: tuple[str, ...]
    """Its other tools that read, write, run or fetch something: hooks know them only by their own names."""
    notes: tuple[str, ...] = ()
    """Tools in which an argument that hooks may check is spelled differently than in Claude Code's tool."""
    packages: tuple[str, ...] = ()
    """Words by which a command line starts it: packages, programs and images, without a version."""
    server_names: tuple[str, ...] = ()
    """What it calls itself in `serverInfo.name`."""

    def aliases_of(self, tool: str) -> tuple[Alias, ...] | None:
        """The tool's aliases, the first that fits counts; empty: it has none; None: the preset does not know it."""
        found = tuple(one for one in self.tools if one.tool == tool)
        return found or (() if tool in self.others else None)


def _as(name: str, arguments: Mapping[str, str], *tools: str) -> tuple[Alias, ...]:
    return tuple(Alias(tool, name, arguments) for tool in tools)


PRESETS: Final = {
    "filesystem": Preset(
        "@modelcontextprotocol/server-filesystem",
        (
            *_as("Read", {"file_path": "path"}, "read_file", "read_text_file", "read_media_file"),
            *_as("Write", {"file_path": "path"}, "write_file"),
            *_as("Edit", {"file_path": "path"}, "edit_file"),
            *_as("LS", {}, "list_directory", "list_directory_with_sizes", "directory_tree"),
            *_as("Glob", {}, "search_files"),
        ),
        others=("read_multiple_files", "move_file", "create_directory", "get_file_info"),
        notes=("edit_file has a list `edits` of oldText and newText, so hooks find no old_string and new_string",),
        packages=("@modelcontextprotocol/server-filesystem", "mcp-server-filesystem", "mcp/filesystem"),
        server_names=("secure-filesystem-server",),
    ),
    # Claude Code has no tool for repositories, and hooks for Bash would find no command line.
    "git": Preset(
        "mcp-server-git",
        tuple(
            Alias(tool, arguments={"path": "repo_path"})
            for tool in (
                *("git_status", "git_diff_unstaged", "git_diff_staged", "git_diff", "git_commit", "git_commit_signed"),
                *("git_add", "git_reset", "git_log", "git_create_branch", "git_checkout", "git_show", "git_init"),
                "git_branch",
            )
        ),
        others=(),
        notes=("the tools keep their names, such as git_commit; only repo_path becomes `path`",),
        packages=("mcp-server-git", "mcp_server_git", "mcp/git"),
        server_names=("mcp-git",),
    ),
    "fetch": Preset(
        "mcp-server-fetch",
        _as("WebFetch", {}, "fetch"),
        others=(),
        packages=("mcp-server-fetch", "mcp_server_fetch", "mcp/fetch"),
        server_names=("mcp-fetch",),
    ),
    "desktop-commander": Preset(
        "@wonderwhy-er/desktop-commander",
        (
            *_as("Bash", {"timeout": "timeout_ms"}, "start_process", "execute_command"),
            # a running shell runs its input as well
            *_as("Bash", {"command": "input", "timeout": "timeout_ms"}, "interact_with_process", "send_input"),
            *_as("Read", {"file_path": "path", "limit": "length"}, "read_file"),
            *_as("Write", {"file_path": "path"}, "write_file"),
            *_as("Edit", {}, "edit_block"),
            *_as("LS", {}, "list_directory"),
            *_as("Glob", {}, "search_files"),
            *_as("Grep", {"glob": "filePattern"}, "search_code", "start_search"),
        ),
        others=(
            *("read_multiple_files", "move_file", "create_directory", "get_file_info", "write_pdf", "write_docx"),
            *("read_process_output", "force_terminate", "kill_process", "set_config_value"),
        ),
        notes=(
            "edit_block may have `range` and `content` instead of old_string and new_string",
            "read_file with isUrl fetches an address, and hooks for WebFetch do not run for it",
            "start_process may choose a `shell` of its own",
            'start_search can also search for names of files: with searchType "files" it does the same as Glob',
        ),
        packages=("@wonderwhy-er/desktop-commander", "desktop-commander", "mcp/desktop-commander"),
        server_names=("desktop-commander",),
    ),
    "playwright": Preset(
        "@playwright/mcp",
        _as("WebFetch", {}, "browser_navigate"),
        others=(
            *("browser_tabs", "browser_click", "browser_evaluate", "browser_run_code", "browser_run_code_unsafe"),
            *("browser_file_upload", "browser_fill_form", "browser_type"),
        ),
        packages=("@playwright/mcp", "playwright-mcp", "mcp-server-playwright"),
        server_names=("Playwright",),
    ),
}
"""The presets, by the value of the key `preset`."""


# --- which preset is for a server ---

_INTERPRETERS: Final = frozenset(
    [
        "npx",
        "bunx",
        "bun",
        "pnpm",
        "yarn",
        "npm",
        "node",
        "deno",
        "uv",
        "uvx",
        "pipx",
        "python",
        "python3",
        "docker",
        "podman",
        "env",
        "sh",
        "bash",
        "cmd",
        "run",
        "tool",
        "x",
        "dlx",
        "exec",
    ]
)
"""Words before the one that says which server it is. What follows that one are the server's own arguments."""


def preset_for(command: Sequence[str], server_name: str) -> str:
    """The name of the preset for a server with this command line or `serverInfo.name`; empty: none."""
    for name, preset in PRESETS.items():
        if not {_package(word) for word in command}.isdisjoint(preset.packages):
            return name
    return next((name for name, preset in PRESETS.items() if server_name in preset.server_names), "")


def _package(word: str) -> str:
    """The package, program or image that a word names, without a version and a folder."""
    return re.sub(r"(?<=.)@[^/@]*$|[=<>~!\[;].*", "", word)
