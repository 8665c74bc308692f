"""Presets of widely used servers: Claude Code's name for each tool that does the same as Claude Code's.

A preset also lists the tools without an alias: hooks for Read or Bash do not run for them (law 4). For a database or a
service that is the whole point: whatever its tools are called, they are not this machine's files and commands.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..model.aliases import Alias, with_command_line


class Preset(Struct, frozen=True):
    """One server's tools."""

    server: str
    """The server's package, for people."""
    tools: tuple[Alias, ...] = ()
    others: tuple[str, ...] = ()
    """Its other tools that read, write, run or fetch something: hooks know them only by their own names."""
    notes: tuple[str, ...] = ()
    """Tools in which an argument that hooks may check is spelled differently than in Claude Code's tool."""
    packages: tuple[str, ...] = ()
    """Words that identify it in a command line: packages, programs, modules and images, without a version."""
    alternatives: tuple[Alias, ...] = ()
    """Aliases for calls of some tools with other arguments: each names the arguments that such a call needs."""
    server_names: tuple[str, ...] = ()
    """What it alone calls itself in `serverInfo.name`."""

    def aliases_of(self, tool: str) -> tuple[Alias, ...] | None:
        """The tool's aliases; a list of edits is both `MultiEdit` and `Edit`. Empty: it has none; None: not known."""
        found = [one for one in (*self.alternatives, *self.tools) if one.tool == tool]
        found += [replace(one, name="Edit") for one in found if one.name == "MultiEdit"]
        return tuple(found) if found or tool in self.others else None


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _as(name: str, tools: str, arguments: str = "") -> tuple[Alias, ...]:
    """The same alias for several tools; arguments as `hooks' name=server's name`."""
    renamed: dict[str, str] = {}
    for pair in arguments.split():
        known, _, own = pair.partition("=")
        renamed[known] = own
    edits = renamed.get("edits", "edits") if name == "MultiEdit" else ""
    return tuple(Alias(tool, name, renamed, edits=edits) for tool in tools.split())


PRESETS: Final[Mapping[str, Preset]] = {
    # --- files ---
    "filesystem": Preset(
        "@modelcontextprotocol/server-filesystem",
        (
            *_as("Read", "read_file read_text_file read_media_file", "file_path=path"),
            *_as("Write", "write_file", "file_path=path"),
            *_as("MultiEdit", "edit_file", "file_path=path"),
            *_as("LS", "list_directory list_directory_with_sizes directory_tree"),
            *_as("Glob", "search_files"),
        ),
        others=_names("read_multiple_files move_file create_directory get_file_info"),
        packages=_names(
            "@modelcontextprotocol/server-filesystem mcp-server-filesystem mcp/filesystem aiomcp-server-filesystem "
            "@agent-infra/mcp-server-filesystem"
        ),
        server_names=_names("secure-filesystem-server aiomcp-filesystem-server"),
    ),
    "fast-filesystem": Preset(
        "fast-filesystem-mcp",
        (
            *_as("Read", "fast_read_file fast_extract_lines", "file_path=path"),
            *_as("Write", "fast_write_file fast_large_write_file", "file_path=path"),
            *_as("Edit", "fast_edit_block fast_safe_edit", "file_path=path old_string=old_text new_string=new_text"),
            *_as("MultiEdit", "fast_edit_multiple_blocks fast_edit_blocks", "file_path=path"),
            *_as("LS", "fast_list_directory fast_get_directory_tree"),
            *_as("Grep", "fast_search_files fast_search_code", "glob=file_pattern"),
        ),
        others=_names(
            "fast_read_multiple_files fast_get_file_info fast_create_directory fast_find_large_files fast_copy_file "
            "fast_move_file fast_delete_file fast_batch_file_operations fast_compress_files fast_extract_archive "
            "fast_sync_directories"
        ),
        packages=_names("fast-filesystem-mcp"),
        server_names=_names("fast-filesystem"),
    ),
    "desktop-commander": Preset(
        "@wonderwhy-er/desktop-commander",
        (
            *_as("Bash", "start_process execute_command", "timeout=timeout_ms"),
            # a running shell runs its input as well
            *_as("Bash", "interact_with_process send_input", "command=input timeout=timeout_ms"),
            *_as("Read", "read_file", "file_path=path limit=length"),
            *_as("Write", "write_file", "file_path=path"),
            *_as("Edit", "edit_block"),
            *_as("LS", "list_directory"),
            *_as("Glob", "search_files"),
            *_as("Grep", "search_code start_search", "glob=filePattern"),
        ),
        others=_names(
            "read_multiple_files move_file create_directory get_file_info write_pdf write_docx read_process_output "
            "force_terminate kill_process set_config_value"
        ),
        notes=(
            "edit_block may have `range` and `content` instead of old_string and new_string",
            "read_file with isUrl fetches an address, and hooks for WebFetch do not run for it",
            "start_process may choose a `shell` of its own",
            'start_search can also search for names of files: with searchType "files" it does the same as Glob',
        ),
        packages=_names("@wonderwhy-er/desktop-commander mcp/desktop-commander"),
        server_names=_names("desktop-commander"),
    ),
    "text-editor": Preset(
        "mcp-text-editor",
        (
            *_as("Write", "create_text_file", "content=contents"),
            *_as("MultiEdit", "patch_text_file_contents", "edits=patches"),
            *_as("Edit", "insert_text_file_contents append_text_file_contents", "new_string=contents"),
        ),
        others=_names("get_text_file_contents edit_text_file_contents delete_text_file_contents"),
        notes=(
            "patches have `start`, `end` and `contents`, so hooks find no old_string and new_string",
            "get_text_file_contents and edit_text_file_contents have lists of files: no hooks for Read and Edit run",
        ),
        packages=_names("mcp-text-editor"),
        server_names=_names("mcp-text-editor"),
    ),
    "serena": Preset(
        "serena-agent",
        (
            *_as("Bash", "execute_shell_command"),
            *_as("Bash", "serena_repl", "command=code"),
            *_as("Read", "read_file", "file_path=relative_path"),
            *_as("Write", "create_text_file", "file_path=relative_path"),
            *_as("Edit", "replace_regex", "file_path=relative_path old_string=regex new_string=repl"),
            *_as("Edit", "replace_content", "file_path=relative_path old_string=needle new_string=repl"),
            *_as(
                "Edit",
                "replace_symbol_body insert_after_symbol insert_before_symbol",
                "file_path=relative_path new_string=body",
            ),
            *_as("LS", "list_dir", "path=relative_path"),
            *_as("Glob", "find_file", "pattern=file_mask path=relative_path"),
            *_as(
                "Grep",
                "search_for_pattern",
                "pattern=substring_pattern path=relative_path glob=paths_include_glob",
            ),
        ),
        others=_names(
            "get_symbols_overview find_symbol find_referencing_symbols rename_symbol write_memory read_memory "
            "delete_memory edit_memory delete_lines insert_at_line replace_lines"
        ),
        notes=(
            "replace_symbol_body and insert_after_symbol have no old text, so hooks find no old_string",
            "the code of serena_repl is Python, and it can read and write files that hooks see nothing of",
        ),
        packages=_names("serena serena-agent serena-mcp-server git+https://github.com/oraios/serena"),
        server_names=_names("Serena"),
    ),
    "codemcp": Preset(
        "codemcp",
        others=_names("codemcp"),
        notes=("codemcp is one tool for everything, and only its subtool says what it does",),
        packages=_names("codemcp git+https://github.com/ezyang/codemcp"),
        server_names=_names("codemcp"),
    ),
    "jetbrains": Preset(
        "JetBrains IDEs, @jetbrains/mcp-proxy",
        (
            *_as("Bash", "execute_terminal_command"),
            *_as("Read", "get_file_text_by_path", "file_path=pathInProject"),
            *_as("Write", "create_new_file create_new_file_with_text", "file_path=pathInProject content=text"),
            *_as("Write", "replace_file_text_by_path", "file_path=pathInProject content=text"),
            *_as(
                "Edit",
                "replace_text_in_file",
                "file_path=pathInProject old_string=oldText new_string=newText replace_all=replaceAll",
            ),
            *_as("Edit", "replace_specific_text", "file_path=pathInProject old_string=oldText new_string=newText"),
            *_as("LS", "list_directory_tree", "path=directoryPath"),
            *_as("Glob", "find_files_by_glob", "pattern=globPattern path=subDirectoryRelativePath"),
            *_as("Glob", "find_files_by_name_keyword", "pattern=nameKeyword"),
            *_as("Grep", "search_in_files_by_text", "pattern=searchText path=directoryToSearch glob=fileMask"),
            *_as("Grep", "search_in_files_by_regex", "pattern=regexPattern path=directoryToSearch glob=fileMask"),
        ),
        others=_names(
            "execute_run_configuration open_file_in_editor reformat_file rename_refactoring get_file_problems "
            "get_symbol_info apply_patch get_all_open_file_paths"
        ),
        notes=("execute_run_configuration runs what the project's run configuration says: hooks for Bash do not run",),
        packages=_names("@jetbrains/mcp-proxy"),
    ),
    "morph": Preset(
        "@morphllm/morphmcp",
        _as("Edit", "edit_file", "file_path=path new_string=code_edit"),
        others=_names("codebase_search github_codebase_search"),
        notes=("edit_file has no old text: `code_edit` abbreviates what stays, so hooks find no old_string",),
        packages=_names("@morphllm/morphmcp @morph-llm/morph-fast-apply"),
        server_names=_names("morph-mcp"),
    ),
    "ripgrep": Preset(
        "mcp-ripgrep",
        (*_as("Grep", "search advanced-search count-matches", "glob=filePattern"), *_as("LS", "list-files")),
        packages=_names("mcp-ripgrep"),
        server_names=_names("ripgrep-search"),
    ),
    "markitdown": Preset(
        "markitdown-mcp",
        _as("WebFetch", "convert_to_markdown", "url=uri"),
        notes=("convert_to_markdown also reads files: then the url begins with file:, and hooks for Read do not run",),
        packages=_names("markitdown-mcp markitdown_mcp"),
        server_names=_names("markitdown"),
    ),
    "excel": Preset(
        "excel-mcp-server",
        others=_names(
            "create_workbook set_workbook_settings export_workbook import_workbook import_csv export_csv read_range "
            "write_range clear_range copy_range transform_range replace_cells insert_image read_vba "
            "read_data_from_excel write_data_to_excel excel_read_sheet excel_write_to_sheet"
        ),
        packages=_names("excel-mcp-server @negokaz/excel-mcp-server"),
        server_names=_names("excel-mcp-server excel-mcp"),
    ),
    "word": Preset(
        "office-word-mcp-server",
        _as("Edit", "search_and_replace", "file_path=filename old_string=find_text new_string=replace_text"),
        others=_names(
            "create_document copy_document get_document_text get_document_xml add_paragraph add_heading add_picture "
            "add_table delete_paragraph convert_to_pdf list_available_documents"
        ),
        packages=_names("office-word-mcp-server word_mcp_server"),
        server_names=("Word Document Server",),
    ),
    "pandoc": Preset(
        "mcp-pandoc",
        others=_names("convert-contents"),
        packages=_names("mcp-pandoc"),
        server_names=_names("mcp-pandoc"),
    ),
    "obsidian": Preset(
        "mcp-obsidian",
        (
            *_as("Write", "obsidian_append_content obsidian_put_content", "file_path=filepath"),
            *_as("Read", "obsidian_get_file_contents", "file_path=filepath"),
            *_as("LS", "obsidian_list_files_in_dir", "path=dirpath"),
        ),
        others=_names(
            "read_notes search_notes obsidian_list_files_in_vault obsidian_simple_search obsidian_complex_search "
            "obsidian_patch_content obsidian_delete_file obsidian_batch_get_file_contents obsidian_get_periodic_note "
            "obsidian_get_recent_periodic_notes obsidian_get_recent_changes"
        ),
        notes=("paths are relative to the vault, not to the project",),
        packages=_names("mcp-obsidian"),
        server_names=_names("mcp-obsidian"),
    ),
    # --- commands ---
    "mcp-server-commands": Preset(
        "mcp-server-commands",
        (*_as("Bash", "run_command"), *_as("Bash", "run_process", "command=command_line timeout=timeout_ms")),
        others=_names("run_script"),
        notes=("run_process may have `argv`, a list, instead of a command line: then hooks find no command",),
        packages=_names("mcp-server-commands"),
        server_names=_names("mcp-server-commands"),
    ),
    "agent-infra-commands": Preset(
        "@agent-infra/mcp-server-commands",
        (*_as("Bash", "run_command"), *_as("Bash", "run_script", "command=script")),
        packages=_names("@agent-infra/mcp-server-commands"),
        server_names=("Run Commands",),
    ),
    "bash-command": Preset(
        "bash-command-mcp",
        _as("Bash", "run run_background"),
        others=_names("kill_background tail_background"),
        alternatives=tuple(
            Alias(tool, "Bash", {"command": "cmd"}, needed=frozenset({"cmd"})) for tool in ("run", "run_background")
        ),
        notes=("run may have `cmd` instead of `command`: with a configured preset, hooks see it as it is",),
        packages=_names("bash-command-mcp"),
        server_names=_names("bash-command-mcp"),
    ),
    "mcp-shell-server": Preset(
        "mcp-shell-server",
        _as("Bash", "shell_execute"),
        packages=_names("mcp-shell-server mcp_shell_server"),
    ),
    "mako10k-shell": Preset(
        "@mako10k/mcp-shell-server",
        _as("Bash", "shell_execute terminal_operate"),
        others=_names("read_execution_output delete_execution_outputs terminal_close shell_set_default_workdir"),
        notes=("terminal_operate may have `input` for a running program instead of a command",),
        packages=_names("@mako10k/mcp-shell-server"),
    ),
    "cli": Preset(
        "cli-mcp-server",
        _as("Bash", "run_command"),
        packages=_names("cli-mcp-server"),
        server_names=_names("cli-mcp-server"),
    ),
    "shell": Preset(
        "mcp-server-shell",
        _as("Bash", "execute_command"),
        packages=_names("mcp-server-shell mcp_server_shell"),
        server_names=_names("mcp-shell"),
    ),
    "win-cli": Preset(
        "@simonb97/server-win-cli",
        _as("Bash", "execute_command ssh_execute"),
        others=_names("create_ssh_connection update_ssh_connection delete_ssh_connection read_ssh_connections"),
        notes=("execute_command chooses its `shell`: PowerShell, cmd or Git Bash",),
        packages=_names("@simonb97/server-win-cli"),
        server_names=_names("windows-cli-server"),
    ),
    "iterm": Preset(
        "iterm-mcp",
        _as("Bash", "write_to_terminal"),
        others=_names("send_control_character read_terminal_output"),
        packages=_names("iterm-mcp"),
        server_names=_names("iterm-mcp"),
    ),
    "terminal-controller": Preset(
        "terminal-controller",
        (
            *_as("Bash", "execute_command"),
            *_as("Read", "read_file", "file_path=path"),
            *_as("Write", "write_file", "file_path=path"),
            *_as("Edit", "insert_file_content update_file_content", "file_path=path new_string=content"),
            *_as("LS", "list_directory"),
        ),
        others=_names("change_directory delete_file_content"),
        notes=("insert_file_content and update_file_content name rows, so hooks find no old_string",),
        packages=_names("terminal-controller terminal_controller"),
        server_names=_names("terminal-controller"),
    ),
    "wcgw": Preset(
        "wcgw",
        (
            *_as("Bash", "BashCommand", "run_in_background=is_background"),
            *_as("Read", "ReadImage"),
            *_as("Write", "FileWriteOrEdit", "content=text_or_search_replace_blocks"),
        ),
        others=_names("ReadFiles ContextSave Initialize"),
        notes=(
            "BashCommand may have `send_text` for a running program instead of a command",
            "FileWriteOrEdit writes a whole file or replaces the blocks in its content",
        ),
        packages=_names("wcgw wcgw_mcp"),
        server_names=_names("wcgw"),
    ),
    "ssh": Preset(
        "ssh-mcp",
        _as("Bash", "run-command read-command privileged-command exec sudo-exec"),
        others=_names("open-session signal-process sftp-upload sftp-download sftp-upload-file sftp-download-file"),
        notes=("paths of sftp tools are those of another machine, so hooks for Read and Write do not run",),
        packages=_names("ssh-mcp"),
        server_names=("SSH MCP Server",),
    ),
    "ssh-session": Preset(
        "mcp-ssh",
        _as("Bash", "execute_command execute_command_async"),
        others=_names("read_file write_file send_input send_input_by_session send_keys"),
        notes=("send_input types into a running program of another machine",),
        packages=_names("mcp-ssh mcp-ssh-session"),
        server_names=_names("ssh-session"),
    ),
    "mcp-server-ssh": Preset(
        "mcp-server-ssh",
        _as("Bash", "execute_command"),
        others=_names("file_operations process_manager sftp_download sftp_upload"),
        packages=_names("mcp-server-ssh"),
        server_names=_names("ssh-mcp-server"),
    ),
    "ssh-mcp-server": Preset(
        "ssh-mcp-server",
        _as("Bash", "execute_ssh execute_sudo ssh_execute_ssh ssh_execute_sudo"),
        packages=_names("ssh-mcp-server"),
        server_names=("SSH Server",),
    ),
    "code-runner": Preset(
        "mcp-server-code-runner",
        _as("Bash", "run-code", "command=code"),
        notes=("the code of run-code is in the language of its languageId",),
        packages=_names("mcp-server-code-runner"),
        server_names=("Code Runner",),
    ),
    "python-interpreter": Preset(
        "mcp-python-interpreter",
        (
            *_as("Bash", "run_python_code", "command=code"),
            *_as("Read", "read_file"),
            *_as("Write", "write_file"),
            *_as("LS", "list_directory", "path=directory_path"),
        ),
        others=_names("run_python_file install_package"),
        packages=_names("mcp-python-interpreter"),
        server_names=_names("python-interpreter"),
    ),
    "jupyter": Preset(
        "jupyter-mcp-server",
        (
            *_as("Bash", "execute_code execute_ipython", "command=code"),
            *_as("Bash", "insert_execute_code_cell append_execute_code_cell", "command=cell_source"),
        ),
        others=_names(
            "execute_cell execute_cell_with_progress overwrite_cell_source insert_cell delete_cell read_cell "
            "read_notebook use_notebook list_files"
        ),
        notes=("execute_cell runs what is in a cell: hooks for Bash do not run for it",),
        packages=_names("jupyter-mcp-server datalayer/jupyter-mcp-server"),
        server_names=("Jupyter MCP Server",),
    ),
    "ipython": Preset(
        "ipython-mcp",
        _as("Bash", "execute_code", "command=code"),
        packages=_names("ipython-mcp"),
        server_names=_names("ipython-kernel"),
    ),
    "run-python": Preset(
        "mcp-run-python",
        _as("Bash", "run_python_code", "command=python_code"),
        packages=_names("mcp-run-python @pydantic/mcp-run-python jsr:@pydantic/mcp-run-python"),
    ),
    "e2b": Preset(
        "@e2b/mcp-server, e2b-mcp-server, code-sandbox-mcp",
        (*_as("Bash", "run_code", "command=code"), *_as("Bash", "run_command")),
        notes=("the code and the commands run in a sandbox of the service",),
        packages=_names("@e2b/mcp-server e2b-mcp-server code-sandbox-mcp"),
        server_names=_names("e2b-mcp-server code-sandbox-mcp"),
    ),
    "docker": Preset(
        "mcp-server-docker",
        _as("Bash", "run_command"),
        others=_names(
            "run_container create_container recreate_container start_container stop_container remove_container "
            "fetch_container_logs build_image pull_image push_image remove_image create_network create_volume "
            "remove_volume deploy-compose create-container get-logs list-containers"
        ),
        notes=("the `command` of run_container is started in a container, so hooks for Bash do not run for it",),
        packages=_names("mcp-server-docker docker-mcp"),
        server_names=_names("mcp-server-docker docker-mcp docker-server"),
    ),
    "kubernetes": Preset(
        "mcp-server-kubernetes",
        _as("Bash", "exec_in_pod"),
        others=_names(
            "kubectl_get kubectl_apply kubectl_create kubectl_delete kubectl_patch kubectl_scale "
            "kubectl_rollout kubectl_generic kubectl_logs node_management install_helm_chart upgrade_helm_chart "
            "uninstall_helm_chart port_forward cleanup"
        ),
        packages=_names("mcp-server-kubernetes"),
    ),
    "kubectl": Preset(
        "kubectl-mcp-server",
        _as("Bash", "exec_in_pod"),
        others=_names(
            "kubectl_get kubectl_apply kubectl_patch kubectl_scale kubectl_rollout kubectl_generic kubectl_logs "
            "delete_resource install_helm_chart upgrade_helm_chart uninstall_helm_chart helm_rollback"
        ),
        packages=_names("kubectl-mcp-server kubectl-mcp-tool kubectl-mcp kubectl-mcp-serve"),
    ),
    "windows": Preset(
        "windows-mcp",
        (*_as("Bash", "Powershell-Tool PowerShell Shell-Tool Shell"), *_as("WebFetch", "Scrape-Tool Scrape")),
        others=_names("FileSystem Process Registry App Click Type Shortcut Clipboard"),
        packages=_names("windows-mcp"),
        server_names=_names("windows-mcp"),
    ),
    "macos-automator": Preset(
        "@steipete/macos-automator-mcp",
        _as("Bash", "execute_script", "command=script_content"),
        notes=(
            "the script is AppleScript or JavaScript",
            "execute_script may have `script_path` or `kb_script_id` instead: then hooks find no command",
        ),
        packages=_names("@steipete/macos-automator-mcp"),
        server_names=_names("macos_automator"),
    ),
    "claude-code": Preset(
        "@steipete/claude-code-mcp",
        others=_names("claude_code"),
        notes=("claude_code starts an agent of its own: what that does is not seen here",),
        packages=_names("@steipete/claude-code-mcp"),
        server_names=_names("claude_code"),
    ),
    # Claude Code has no tool for repositories, and hooks for Bash would find no command line.
    "git": Preset(
        "mcp-server-git",
        _as(
            "",
            "git_status git_diff_unstaged git_diff_staged git_diff git_commit git_commit_signed git_add git_reset "
            "git_log git_create_branch git_checkout git_show git_init git_branch",
            "path=repo_path",
        ),
        notes=("the tools keep their names, such as git_commit; only repo_path becomes `path`",),
        packages=_names("mcp-server-git mcp_server_git mcp/git"),
        server_names=_names("mcp-git"),
    ),
    "cyanheads-git": Preset(
        "@cyanheads/git-mcp-server",
        others=_names(
            "git_add git_branch git_checkout git_cherry_pick git_clean git_clone git_commit git_fetch git_init "
            "git_merge git_pull git_push git_rebase git_remote git_reset git_stash git_tag git_worktree"
        ),
        packages=_names("@cyanheads/git-mcp-server"),
        server_names=_names("@cyanheads/git-mcp-server"),
    ),
    # --- pages and browsers ---
    "fetch": Preset(
        "mcp-server-fetch",
        _as("WebFetch", "fetch"),
        packages=_names("mcp-server-fetch mcp_server_fetch mcp/fetch"),
    ),
    "fetch-server": Preset(
        "mcp-fetch-server",
        _as(
            "WebFetch",
            "fetch_html fetch_markdown fetch_txt fetch_json fetch_readable fetch_youtube_transcript",
        ),
        packages=_names("mcp-fetch-server @tokenizin/mcp-npx-fetch"),
        server_names=_names("zcaceres/fetch @tokenizin/mcp-npx-fetch"),
    ),
    "image-fetch": Preset(
        "@kazuph/mcp-fetch",
        _as("WebFetch", "imageFetch"),
        packages=_names("@kazuph/mcp-fetch"),
    ),
    "fetcher": Preset(
        "fetcher-mcp",
        _as("WebFetch", "fetch_url"),
        others=_names("fetch_urls browser_install"),
        notes=("fetch_urls has a list of addresses, so hooks for WebFetch do not run for it",),
        packages=_names("fetcher-mcp"),
    ),
    "playwright": Preset(
        "@playwright/mcp",
        _as("WebFetch", "browser_navigate"),
        others=_names(
            "browser_tabs browser_click browser_evaluate browser_run_code browser_run_code_unsafe browser_file_upload "
            "browser_fill_form browser_type browser_drop"
        ),
        notes=(
            'browser_tabs with action "new" may open a url, and browser_run_code_unsafe runs JavaScript in the server: '
            "hooks for WebFetch and Bash do not run for them",
        ),
        packages=_names("@playwright/mcp playwright-mcp mcr.microsoft.com/playwright/mcp mcp/playwright"),
        server_names=_names("Playwright"),
    ),
    "executeautomation-playwright": Preset(
        "@executeautomation/playwright-mcp-server",
        _as("WebFetch", "playwright_navigate playwright_get"),
        others=_names(
            "playwright_post playwright_put playwright_patch playwright_delete playwright_evaluate "
            "playwright_upload_file playwright_click playwright_fill playwright_save_as_pdf playwright_screenshot"
        ),
        packages=_names("@executeautomation/playwright-mcp-server"),
        server_names=_names("playwright-mcp"),
    ),
    "puppeteer": Preset(
        "@modelcontextprotocol/server-puppeteer",
        _as("WebFetch", "puppeteer_navigate"),
        others=_names("puppeteer_evaluate puppeteer_click puppeteer_fill puppeteer_select"),
        packages=_names("@modelcontextprotocol/server-puppeteer mcp/puppeteer @hisma/server-puppeteer"),
        server_names=_names("example-servers/puppeteer"),
    ),
    "chrome-devtools": Preset(
        "chrome-devtools-mcp",
        _as("WebFetch", "navigate_page new_page"),
        others=_names(
            "evaluate_script click fill fill_form upload_file type_text take_screenshot take_snapshot "
            "take_heapsnapshot get_network_request performance_start_trace lighthouse_audit screencast_start"
        ),
        packages=_names("chrome-devtools-mcp"),
        server_names=_names("chrome_devtools"),
    ),
    "browserbase": Preset(
        "@browserbasehq/mcp-server-browserbase",
        _as("WebFetch", "browserbase_stagehand_navigate"),
        others=_names(
            "browserbase_stagehand_act browserbase_stagehand_extract browserbase_stagehand_observe "
            "browserbase_stagehand_agent browserbase_session_create"
        ),
        packages=_names("@browserbasehq/mcp-server-browserbase @browserbasehq/mcp"),
        server_names=("Browserbase MCP Server",),
    ),
    "browsermcp": Preset(
        "@browsermcp/mcp",
        _as("WebFetch", "browser_navigate"),
        others=_names("browser_click browser_type browser_select_option browser_press_key"),
        packages=_names("@browsermcp/mcp"),
        server_names=("Browser MCP",),
    ),
    "agent-infra-browser": Preset(
        "@agent-infra/mcp-server-browser",
        _as("WebFetch", "browser_navigate browser_new_tab"),
        others=_names("browser_evaluate browser_form_input_fill browser_click browser_select"),
        packages=_names("@agent-infra/mcp-server-browser"),
        server_names=("Web Browser",),
    ),
    "browser-use": Preset(
        "browser-use, mcp-server-browser-use",
        _as("WebFetch", "browser_navigate"),
        others=_names(
            "run_browser_agent run_deep_research retry_with_browser_use_agent browser_click browser_type "
            "browser_extract_content"
        ),
        notes=("run_browser_agent opens pages of its own choice: hooks for WebFetch do not run for them",),
        packages=_names("browser-use mcp-server-browser-use"),
        server_names=_names("browser-use"),
    ),
    "firecrawl": Preset(
        "firecrawl-mcp",
        (
            *_as("WebFetch", "firecrawl_scrape firecrawl_crawl firecrawl_map"),
            *_as("WebSearch", "firecrawl_search"),
        ),
        others=_names(
            "firecrawl_extract firecrawl_batch_scrape firecrawl_agent firecrawl_interact firecrawl_monitor_create "
            "firecrawl_deep_research firecrawl_parse"
        ),
        notes=("firecrawl_extract has a list of addresses, so hooks for WebFetch do not run for it",),
        packages=_names("firecrawl-mcp"),
        server_names=_names("firecrawl-fastmcp firecrawl-mcp"),
    ),
    "brave-search": Preset(
        "@brave/brave-search-mcp-server",
        _as("WebSearch", "brave_web_search"),
        others=_names(
            "brave_local_search brave_video_search brave_image_search brave_news_search brave_summarizer "
            "brave_llm_context brave_place_search"
        ),
        packages=_names("@modelcontextprotocol/server-brave-search @brave/brave-search-mcp-server mcp/brave-search"),
        server_names=_names("brave-search-mcp-server example-servers/brave-search"),
    ),
    "tavily": Preset(
        "tavily-mcp",
        (
            *_as("WebSearch", "tavily_search tavily-search"),
            *_as("WebFetch", "tavily_crawl tavily-crawl tavily_map tavily-map"),
        ),
        others=_names("tavily_extract tavily-extract tavily_research"),
        notes=("tavily_extract has a list of addresses, so hooks for WebFetch do not run for it",),
        packages=_names("tavily-mcp mcp/tavily"),
        server_names=_names("tavily-mcp"),
    ),
    "exa": Preset(
        "exa-mcp-server",
        (*_as("WebSearch", "web_search_exa web_search_advanced_exa"), *_as("WebFetch", "crawling_exa")),
        others=_names("web_fetch_exa company_research_exa get_code_context_exa deep_researcher_start"),
        notes=("web_fetch_exa has a list of addresses, so hooks for WebFetch do not run for it",),
        packages=_names("exa-mcp-server"),
        server_names=_names("exa-search-server"),
    ),
    "context7": Preset(
        "@upstash/context7-mcp",
        others=_names("query-docs get-library-docs resolve-library-id"),
        packages=_names("@upstash/context7-mcp"),
        server_names=_names("Context7"),
    ),
    # --- services and databases: no tool of theirs does what a tool of Claude Code does ---
    "github": Preset(
        "github/github-mcp-server, @modelcontextprotocol/server-github",
        others=_names(
            "create_or_update_file get_file_contents push_files delete_file create_repository fork_repository "
            "create_branch search_code search_repositories search_issues create_issue update_issue issue_write "
            "add_issue_comment create_pull_request update_pull_request merge_pull_request create_pull_request_review "
            "pull_request_read pull_request_review_write run_workflow rerun_workflow_run actions_run_trigger "
            "create_gist update_gist"
        ),
        notes=("paths are those of a repository at GitHub, so hooks for Read and Write do not run",),
        packages=_names(
            "@modelcontextprotocol/server-github github-mcp-server ghcr.io/github/github-mcp-server mcp/github "
            "mcp/github-mcp-server"
        ),
        server_names=_names("github-mcp-server"),
    ),
    "gitlab": Preset(
        "@modelcontextprotocol/server-gitlab, @zereight/mcp-gitlab",
        others=_names(
            "create_or_update_file get_file_contents push_files create_repository fork_repository create_branch "
            "create_issue update_issue delete_issue create_merge_request update_merge_request merge_merge_request "
            "create_note execute_graphql upload_markdown download_attachment create_pipeline"
        ),
        notes=("paths are those of a repository at GitLab, so hooks for Read and Write do not run",),
        packages=_names("@modelcontextprotocol/server-gitlab @zereight/mcp-gitlab mcp/gitlab"),
        server_names=_names("gitlab-mcp-server zereight-gitlab-mcp-server"),
    ),
    "atlassian": Preset(
        "mcp-atlassian",
        others=_names(
            "jira_create_issue jira_update_issue jira_delete_issue jira_add_comment jira_transition_issue "
            "jira_download_attachments confluence_create_page confluence_update_page confluence_delete_page "
            "confluence_upload_attachment confluence_download_attachment"
        ),
        packages=_names("mcp-atlassian ghcr.io/sooperset/mcp-atlassian"),
        server_names=("Atlassian MCP",),
    ),
    "notion": Preset(
        "@notionhq/notion-mcp-server",
        others=_names(
            "API-post-page API-patch-page API-retrieve-a-page API-patch-block-children API-delete-a-block "
            "API-post-search API-update-page-markdown API-retrieve-page-markdown notion-fetch notion-search"
        ),
        packages=_names("@notionhq/notion-mcp-server mcp/notion"),
        server_names=("Notion API",),
    ),
    "slack": Preset(
        "@modelcontextprotocol/server-slack",
        others=_names(
            "slack_post_message slack_reply_to_thread slack_add_reaction slack_get_channel_history "
            "slack_get_thread_replies conversations_add_message conversations_history"
        ),
        packages=_names("@modelcontextprotocol/server-slack slack-mcp-server mcp/slack"),
        server_names=("Slack MCP Server",),
    ),
    "sentry": Preset(
        "@sentry/mcp-server",
        others=_names("update_issue create_project update_project get_doc search_docs get_sentry_resource"),
        packages=_names("@sentry/mcp-server"),
        server_names=("Sentry MCP",),
    ),
    "figma": Preset(
        "figma-developer-mcp",
        others=_names("get_figma_data download_figma_images"),
        notes=("download_figma_images writes files below its localPath, and hooks for Write do not run for it",),
        packages=_names("figma-developer-mcp"),
        server_names=("Figma MCP Server",),
    ),
    "memory": Preset(
        "@modelcontextprotocol/server-memory",
        others=_names(
            "create_entities create_relations add_observations delete_entities delete_observations delete_relations "
            "read_graph search_nodes open_nodes"
        ),
        packages=_names("@modelcontextprotocol/server-memory mcp/memory"),
        server_names=_names("memory-server"),
    ),
    "sqlite": Preset(
        "mcp-server-sqlite",
        others=_names("read_query write_query create_table list_tables describe_table append_insight"),
        packages=_names("mcp-server-sqlite mcp_server_sqlite mcp/sqlite"),
        server_names=_names("sqlite"),
    ),
    "postgres": Preset(
        "@modelcontextprotocol/server-postgres, postgres-mcp",
        others=_names("query execute_sql explain_query list_objects get_object_details"),
        packages=_names("@modelcontextprotocol/server-postgres mcp/postgres postgres-mcp crystaldba/postgres-mcp"),
        server_names=_names("example-servers/postgres postgres-mcp"),
    ),
    "mysql": Preset(
        "mysql-mcp-server, @benborla29/mcp-server-mysql",
        others=_names("execute_sql mysql_query get_schema_info get_table_sample"),
        packages=_names("mysql-mcp-server mysql_mcp_server @benborla29/mcp-server-mysql"),
        server_names=_names("mysql_mcp_server"),
    ),
    "duckdb": Preset(
        "mcp-server-motherduck, duckdb-mcp-server",
        others=_names("query execute_query analyze_data analyze_schema"),
        packages=_names("mcp-server-motherduck duckdb-mcp-server"),
        server_names=_names("mcp-server-motherduck duckdb-mcp-server"),
    ),
    "mongodb": Preset(
        "mongodb-mcp-server",
        others=_names(
            "find aggregate aggregate-db count export insert-many update-many delete-many create-collection "
            "drop-collection drop-database rename-collection create-index drop-index connect"
        ),
        packages=_names("mongodb-mcp-server mcp/mongodb mongodb/mongodb-mcp-server"),
        server_names=("MongoDB MCP Server",),
    ),
    "redis": Preset(
        "redis-mcp-server, @modelcontextprotocol/server-redis",
        others=_names("get set delete list rename hset hget json_set json_get publish search_redis_documents"),
        packages=_names("redis-mcp-server @modelcontextprotocol/server-redis mcp/redis"),
        server_names=("Redis MCP Server", "example-servers/redis"),
    ),
    "neo4j": Preset(
        "mcp-neo4j-cypher",
        others=_names("read_neo4j_cypher write_neo4j_cypher get_neo4j_schema"),
        packages=_names("mcp-neo4j-cypher"),
        server_names=_names("mcp-neo4j-cypher"),
    ),
    "supabase": Preset(
        "@supabase/mcp-server-supabase",
        others=_names(
            "execute_sql apply_migration list_tables deploy_edge_function get_edge_function create_project "
            "create_branch delete_branch merge_branch reset_branch"
        ),
        packages=_names("@supabase/mcp-server-supabase"),
        server_names=_names("supabase"),
    ),
    "neon": Preset(
        "@neondatabase/mcp-server-neon",
        others=_names(
            "run_sql run_sql_transaction prepare_database_migration complete_database_migration create_project "
            "delete_project create_branch delete_branch"
        ),
        packages=_names("@neondatabase/mcp-server-neon"),
        server_names=_names("mcp-server-neon"),
    ),
}
"""The presets, by the value of the key `preset`."""


def preset_aliases(preset: str, tool: str, arguments: Collection[str] | None = None) -> tuple[Alias, ...] | None:
    """Return the aliases that a recognised preset has for a tool, for `familiar_names.aliases_for_call`.

    As there, a list of edits is both `MultiEdit` and `Edit`. Empty: the preset knows the tool, and it has no familiar
    name. None: the preset does not know the tool, or there is no such preset. With the listed arguments of the tool,
    what does not fit them is left out: the server may be another version than the preset.
    """
    known = PRESETS.get(preset)
    found = known.aliases_of(tool) if known is not None else None
    return None if found is None else tuple(_automatic(one, preset, arguments) for one in found if one.name)


def names_in_any_preset(tool: str) -> frozenset[str]:
    """The familiar names that a tool of this name has on some server with a preset."""
    aliases = (preset.aliases_of(tool) or () for preset in PRESETS.values())
    return frozenset(one.name for found in aliases for one in found if one.name)


def _automatic(alias: Alias, preset: str, arguments: Collection[str] | None) -> Alias:
    renamed = alias.arguments
    if arguments is not None:
        renamed = {
            known: own
            for known, own in renamed.items()
            if own in arguments and (known not in arguments or own in alias.needed)
        }
    return with_command_line(replace(alias, arguments=renamed, preset=preset, automatic=True), arguments)


# --- which preset is for a server ---

_RUNNERS: Final = frozenset(
    _names("npx npm bunx bun pnpm yarn node deno uv uvx pipx python python3 py docker podman env sudo cmd sh bash")
)
"""Programs that start another one, which their arguments name."""
_VERSION: Final = re.compile(r"(?<=.)@[^/@]*$|[=<>~!\[;].*|(?<=.):[^/:]+$")
_SCRIPT: Final = re.compile(r"\.(py|pyz|[cm]?[jt]s|exe|cmd|bat|ps1|sh)$", re.IGNORECASE)
_INSTALLED: Final = re.compile(r".*/node_modules/((?:@[^/]+/)?[^/]+)/")


def preset_for(command: Sequence[str], server_name: str) -> str:
    """The name of the preset for a server with this command line or `serverInfo.name`; empty: none.

    The command line counts before what the server says of itself. Of several words that identify a server the first
    one counts: what follows is its own arguments.
    """
    by_package = _by_package()
    for word in _identifying(command):
        name = by_package.get(word)
        if name is not None:
            return name
    return next((name for name, preset in PRESETS.items() if server_name in preset.server_names), "")


@cache
def _by_package() -> Mapping[str, str]:
    return {word: name for name, preset in PRESETS.items() for word in preset.packages}


def _identifying(command: Sequence[str]) -> Iterator[str]:
    """The words of a command line that may say which server it starts: of files only the first, which is started."""
    if not command:
        return
    yield _program(command[0])
    if _program(command[0]) not in _RUNNERS:
        return
    started = False
    for word in command[1:]:
        yield _VERSION.sub("", word)
        is_file = _SCRIPT.search(word) is not None or (word[:1] not in ("-", "@") and ("/" in word or "\\" in word))
        if is_file and not started:
            started = True
            installed = _INSTALLED.match(word.replace("\\", "/"))
            yield installed[1] if installed else _program(word)


def _program(word: str) -> str:
    """The name of a program without its folder and ending."""
    return _SCRIPT.sub("", word.replace("\\", "/").rpartition("/")[2])
