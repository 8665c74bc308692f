"""Hooks that ask a model, against a server that speaks both interfaces: questions, verdicts, tools and failures."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.model.model_endpoint import ModelEndpoint, ModelHook
from hookproxy.model.secret_settings import Source
from hookproxy.runners import agent, agent_tools, prompt
from hookproxy.transports.event_loop import new_loop
from tests.support.model_server import ModelServer, Says, model_server, verdict

pytestmark = pytest.mark.anyio

KEY: Final = "sk-test-0123456789abcdef"
ENV: Final = {"MODEL_KEY": KEY, "PATH": os.defpath}
HOME: Final = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
APIS: Final = ("openai", "anthropic")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": new_loop}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server() as served:
        yield served


@pytest.fixture
def model(server: ModelServer) -> ModelServer:
    server.asked.clear()
    server.answers = [verdict(True)]
    return server


def hook(
    model: ModelServer,
    api: str = "openai",
    text: str = "Is it safe? $ARGUMENTS",
    key: Source | None = None,
    kind: str = "prompt",
) -> HookSpec:
    endpoint = ModelEndpoint(
        "openai" if api == "openai" else "anthropic", model.base(api), "small", key or Source("env", "MODEL_KEY")
    )
    return HookSpec(
        "claude", "f: hooks", Event.PRE_TOOL_USE, "prompt", type=kind, timeout=10, cwd="/",
        model=ModelHook(text, endpoint, "small"),
    )  # fmt: skip


def document(folder: Path | str = "/nowhere", **arguments: object) -> Document:
    members = {"cwd": str(folder), "tool_name": "Bash", "tool_input": arguments}
    return Document(json.dumps(members, ensure_ascii=False).encode() + b"\n", {})


async def run(spec: HookSpec, given: Document | None = None, env: dict[str, str] | None = None) -> HookResult:
    opened = (agent if spec.type == "agent" else prompt).open_runner([spec], lambda _spec, _text: None)
    result: HookResult = await opened.run(spec, given or document(command="ls"), ENV if env is None else env)
    await opened.aclose()
    return result


# --- questions and verdicts ---


@pytest.mark.parametrize("api", APIS)
async def test_a_model_without_an_objection_lets_the_event_pass_and_says_nothing(model: ModelServer, api: str) -> None:
    result = await run(hook(model, api), document(command="ls"))
    assert (result.ended, result.code, result.stdout, result.stderr) == (Ended.EXITED, 0, b"", b"")
    (asked,) = model.asked
    assert asked.body["model"] == "small"
    if api == "openai":
        assert asked.path == "/v1/chat/completions"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        system, question = asked.body["messages"]
        assert asked.body["tool_choice"] == {"type": "function", "function": {"name": "verdict"}}
        assert system["role"] == "system"
    else:
        assert asked.path == "/v1/messages"
        assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (KEY, "2023-06-01")
        (question,) = asked.body["messages"]
        assert asked.body["tool_choice"] == {"type": "tool", "name": "verdict"}
    wanted = 'Is it safe? {"cwd": "/nowhere", "tool_name": "Bash", "tool_input": {"command": "ls"}}'
    assert question == {"role": "user", "content": wanted}


@pytest.mark.parametrize("api", APIS)
async def test_a_model_that_objects_denies_with_its_reason(model: ModelServer, api: str) -> None:
    model.answers = [verdict(False, "It deletes everything.")]
    result = await run(hook(model, api))
    assert (result.ended, result.code, result.stderr) == (Ended.EXITED, 2, b"It deletes everything.")


@pytest.mark.parametrize(
    "text",
    ['{"ok": false, "reason": "no"}', ' \n{"reason":"no","ok":false}\n', '```json\n{"ok": false, "reason": "no"}\n```'],
)
@pytest.mark.parametrize("api", APIS)
async def test_a_verdict_may_be_the_text_of_the_answer(model: ModelServer, api: str, text: str) -> None:
    model.answers = [Says(text)]
    assert (await run(hook(model, api))).stderr == b"no"


@pytest.mark.parametrize("api", APIS)
async def test_of_several_verdicts_a_denial_counts(model: ModelServer, api: str) -> None:
    calls: list[tuple[str, object]] = [
        ("verdict", {"ok": True, "reason": ""}),
        ("verdict", {"ok": False, "reason": "no"}),
    ]
    model.answers = [Says(calls=calls)]
    result = await run(hook(model, api))
    assert (result.code, result.stderr) == (2, b"no")


@pytest.mark.parametrize("api", APIS)
async def test_a_denial_that_is_the_text_beside_a_verdict_counts(model: ModelServer, api: str) -> None:
    said: list[tuple[str, object]] = [("verdict", {"ok": True, "reason": ""})]
    for text, code in {'{"ok": false, "reason": "no"}': 2, '{"ok": true}': 0, "I think that it is safe.": 0}.items():
        model.answers = [Says(text, calls=said)]
        assert (await run(hook(model, api))).code == code


async def test_a_denial_without_a_reason_is_a_denial(model: ModelServer) -> None:
    model.answers = [Says('{"ok": false}')]
    result = await run(hook(model))
    assert (result.code, result.stderr) == (2, b"The model that was asked gave no reason.")


@pytest.mark.parametrize(
    "says",
    [
        Says("Yes."),
        Says(""),
        Says('{"ok": "true"}'),
        Says('{"ok": 1}'),
        Says('{"ok": null}'),
        Says("{}"),
        Says("true"),
        Says('[{"ok": true}]'),
        Says('{"ok": true, "decision": "block"}'),
        Says('{"ok": false, "ok": true, "reason": "x"}'),
        Says('{"ok": true} {"ok": true}'),
        Says('It is {"ok": true}.'),
        Says('{"ok": true, "reason": 7}'),
        Says('{"ok": true, "additionalContext": "x"}'),
        Says(calls=[("verdict", "[]")]),
        Says(calls=[("verdict", '{"ok": true')]),
        Says(calls=[("Bash", {"command": "ls"})]),
        Says(raw=b""),
        Says(raw=b"null"),
        Says(raw=b'{"choices": []}'),
        Says(raw=b'{"choices": [{"message": {"content": 7}}]}'),
        Says(raw=b"\xff\xfe"),
        Says(raw=b"[" * 100_000),
        Says(raw=b" " * 1_100_000),
        Says(status=500, raw=b'{"ok": true}'),
        Says(status=429, raw=b"{}"),
        Says(status=302, headers={"Location": "/v1/chat/completions"}),
        Says(raw=b"<html>{}</html>", headers={"Content-Type": "text/html"}),
        Says(headers={"Content-Encoding": "gzip"}),
    ],
)
async def test_an_answer_that_does_not_fit_is_a_failure_and_never_a_verdict(model: ModelServer, says: Says) -> None:
    model.answers = [says]
    result = await run(hook(model))
    assert (result.ended, result.stdout, result.code) == (Ended.FAILED, b"", 0)
    assert result.detail
    assert "\n" not in result.detail
    assert len(model.asked) == 1, "no redirect is followed, and nothing is asked twice"


@pytest.mark.parametrize("raw", [b"", b"{}", b'{"content": "x"}', b'{"content": [{"text": "x"}]}', b"[]"])
async def test_a_body_that_is_not_a_message_is_a_failure(model: ModelServer, raw: bytes) -> None:
    model.answers = [Says(raw=raw)]
    assert (await run(hook(model, "anthropic"))).ended is Ended.FAILED


async def test_a_model_that_does_not_answer_is_left_after_the_timeout(model: ModelServer) -> None:
    model.answers = [Says(hangs=True)]
    result = await run(replace(hook(model), timeout=0.2))
    assert result.ended is Ended.TIMED_OUT
    model.released.set()
    model.released.clear()


async def test_nobody_listens(model: ModelServer) -> None:
    spec = hook(model)
    assert spec.model is not None
    nowhere = replace(spec.model, endpoint=replace(spec.model.endpoint, url="http://127.0.0.1:9"))
    result = await run(replace(spec, model=nowhere))
    assert result.ended is Ended.FAILED
    assert "could not be asked" in result.detail


async def test_the_event_is_appended_where_the_prompt_does_not_say_its_place(model: ModelServer) -> None:
    await run(hook(model, text="Is it safe?"), document(command="ls"))
    question = model.asked[0].body["messages"][1]["content"]
    assert question.startswith('Is it safe?\n\n{"cwd"')


async def test_what_looks_like_the_place_in_the_event_stays_as_it_is(model: ModelServer) -> None:
    await run(hook(model, text="$ARGUMENTS and $ARGUMENTS"), document(command="echo $ARGUMENTS"))
    question = model.asked[0].body["messages"][1]["content"]
    assert question.count("echo $ARGUMENTS") == 2


async def test_an_event_that_no_model_reads_whole_is_not_judged_by_a_part(model: ModelServer) -> None:
    result = await run(hook(model), document(text="x" * 1_100_000))
    assert (result.ended, result.cut) == (Ended.FAILED, True), "so the call is refused, whatever is configured"
    assert model.asked == []


async def test_a_secret_in_the_reason_does_not_reach_the_agents_model(model: ModelServer) -> None:
    model.answers = [verdict(False, "The file says ghp_" + "Ab1" * 12)]
    assert b"[masked: " in (await run(hook(model))).stderr


# --- the key ---


@pytest.mark.parametrize("content", [KEY, f"{KEY}\n", f"  {KEY}\r\n"])
async def test_a_key_in_a_file_is_read_for_each_question(model: ModelServer, tmp_path: Path, content: str) -> None:
    file = tmp_path / "key"
    file.write_text(content)
    spec = hook(model, key=Source("file", str(file)))
    assert (await run(spec, env={})).ended is Ended.EXITED
    file.write_text("other")
    await run(spec, env={})
    assert [asked.headers["authorization"] for asked in model.asked] == [f"Bearer {KEY}", "Bearer other"]


@pytest.mark.parametrize("value", [None, "", "a\nb", "schlüssel", "a\rX-Header: b"])
async def test_a_key_that_cannot_be_sent_is_a_failure_that_does_not_show_it(
    model: ModelServer, value: str | None
) -> None:
    result = await run(hook(model), env={} if value is None else {"MODEL_KEY": value})
    assert result.ended is Ended.FAILED
    assert "MODEL_KEY" in result.detail
    assert model.asked == []
    assert not value or value not in result.detail


async def test_a_key_that_is_not_in_a_file_is_a_failure(model: ModelServer, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "none", tmp_path, tmp_path / "fifo"):
        result = await run(hook(model, key=Source("file", str(path))))
        assert (result.ended, model.asked) == (Ended.FAILED, [])


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
async def test_a_refusal_that_repeats_the_key_does_not_show_it(model: ModelServer, api: str, status: int) -> None:
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
    model.answers = [Says(status=status, raw=body)]
    spec = hook(model, api)
    result = await run(spec)
    assert result.ended is Ended.FAILED
    assert KEY not in repr(result)
    assert KEY not in repr(spec)


# --- hooks that look into files ---


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("import os\nos.system('rm -rf /')\n")
    (folder / "README").write_text("hello\n")
    (folder / ".env").write_text("TOKEN=secret-in-env\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("secret-in-git")
    (tmp_path / "outside.txt").write_text("secret-outside")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / "binary").write_bytes(b"\0\1")
    os.mkfifo(folder / "fifo")
    return folder


@pytest.mark.parametrize("api", APIS)
async def test_an_agent_reads_files_and_then_gives_its_verdict(model: ModelServer, project: Path, api: str) -> None:
    model.answers = [
        Says("I look.", calls=[("Grep", {"pattern": "rm -rf"}), ("Glob", {"pattern": "**/*.py"})]),
        Says(calls=[("Read", {"file_path": f"{project}/src/app.py"})]),
        verdict(False, "src/app.py removes everything."),
    ]
    result = await run(hook(model, api, kind="agent"), document(project))
    assert (result.code, result.stderr) == (2, b"src/app.py removes everything.")
    last = model.asked[-1].body["messages"]
    texts = json.dumps(last)
    assert "src/app.py:2:os.system" in texts
    assert "1\\timport os" in texts
    if api == "openai":
        assert [message["role"] for message in last[1:]] == ["user", "assistant", "tool", "tool", "assistant", "tool"]
        assert [message["tool_call_id"] for message in last if message["role"] == "tool"] == [
            "call_0",
            "call_1",
            "call_0",
        ]
    else:
        assert [message["role"] for message in last] == ["user", "assistant", "user", "assistant", "user"]
        assert [block["tool_use_id"] for block in last[2]["content"]] == ["toolu_0", "toolu_1"]
        assert last[1]["content"][0] == {"type": "text", "text": "I look."}
    assert "tool_choice" in model.asked[0].body
    assert "verdict" not in json.dumps(model.asked[0].body["tool_choice"])


async def test_an_agent_that_never_ends_is_asked_for_a_verdict_in_its_last_turn(
    model: ModelServer, project: Path
) -> None:
    model.answers = [Says(calls=[("Unknown", {})])]
    result = await run(hook(model, kind="agent"), document(project))
    assert result.ended is Ended.FAILED
    assert "50 turns" in result.detail
    assert len(model.asked) == 50
    assert ["verdict" in json.dumps(asked.body["tool_choice"]) for asked in model.asked] == [False] * 49 + [True]
    assert "error: there is no tool Unknown" in model.asked[-1].text


@pytest.mark.parametrize("calls", [[("Read", {"file_path": "README"})] * 17])
async def test_an_agent_that_calls_too_much_at_once_fails(
    model: ModelServer, project: Path, calls: list[tuple[str, object]]
) -> None:
    model.answers = [Says(calls=calls)]
    result = await run(hook(model, kind="agent"), document(project))
    assert (result.ended, len(model.asked)) == (Ended.FAILED, 1)


@pytest.mark.slow
async def test_a_hook_that_times_out_ends_the_search_of_its_model(model: ModelServer, project: Path) -> None:
    (project / "slow.txt").write_text("a" * 40 + "!\n")
    model.answers = [Says(calls=[("Grep", {"pattern": "(a+)+$"})]), verdict(True)]
    with anyio.fail_after(30):
        result = await run(replace(hook(model, kind="agent"), timeout=0.5), document(project))
    assert result.ended is Ended.TIMED_OUT
    assert len(model.asked) == 1


def answer(folder: Path | str, tool: str, **given: object) -> str:
    """What the program prints."""
    request = json.dumps({"root": str(folder), "tool": tool, "input": given})
    ended = subprocess.run(
        [sys.executable, "-I", "-S", agent_tools.__file__],
        input=request, capture_output=True, text=True, timeout=30, check=True, env={},
    )  # fmt: skip
    return ended.stdout


@pytest.mark.parametrize(
    "path",
    [
        ".env", "./.env", "src/../.env", ".git/config", "../outside.txt", "link.txt", "up/outside.txt", "/etc/passwd",
        "src/../../outside.txt", "", "\0", "up", "fifo", "binary", "none", "src", "README/x", "//etc/passwd",
    ],
)  # fmt: skip
def test_what_lies_outside_or_is_hidden_is_not_read(project: Path, path: str) -> None:
    given = agent_tools_answer(project, "Read", file_path=path)
    assert given.startswith("error: ")
    assert "secret" not in given


def agent_tools_answer(folder: Path, tool: str, **given: object) -> str:
    try:
        return agent_tools.answer(str(folder), tool, given)
    except (agent_tools.Refused, OSError) as error:
        return f"error: {error}"


@pytest.mark.parametrize("path", ["README", "./README", "{project}/README", "{project}//README"])
def test_a_file_is_read_by_its_path_below_the_project(project: Path, path: str) -> None:
    assert agent_tools_answer(project, "Read", file_path=path.format(project=project)) == "1\thello"


def test_a_search_sees_neither_hidden_files_nor_what_links_lead_to(project: Path) -> None:
    assert agent_tools_answer(project, "Grep", pattern="secret") == "nothing matches"
    listed = agent_tools_answer(project, "Glob", pattern="**/*").split("\n")
    assert set(listed) >= {"README", "src/app.py"}
    assert not any("outside" in name or name.startswith(".") for name in listed)


def test_a_search_may_be_about_some_files(project: Path) -> None:
    assert agent_tools_answer(project, "Grep", pattern="o", glob="*.py").startswith("src/app.py:1:import os")
    assert agent_tools_answer(project, "Grep", pattern="hello", path="src") == "nothing matches"
    assert agent_tools_answer(project, "Grep", pattern="hello", path="README") == "README:1:hello"
    assert agent_tools_answer(project, "Glob", pattern="*.py") == "src/app.py"
    assert agent_tools_answer(project, "Glob", pattern="src/**/*.py") == "src/app.py"


@pytest.mark.parametrize(
    "folder", ["/", "", "relative", HOME, f"{HOME}/", os.path.dirname(HOME), f"{HOME}/../{os.path.basename(HOME)}"]
)
def test_without_a_project_nothing_is_read(folder: str) -> None:
    assert answer(folder, "Read", file_path="x").startswith("error: the agent works in no project")


def test_an_answer_is_bounded_and_a_bad_expression_is_said(project: Path) -> None:
    (project / "long.txt").write_text("x" * 1000 + "\n" + "y\n" * 5000)
    assert len(answer(project, "Read", file_path="long.txt")) <= 50_000
    assert answer(project, "Grep", pattern="y").endswith("(there are more)")
    assert answer(project, "Grep", pattern="(").startswith("error: ")
    assert answer(project, "Read", file_path="long.txt", offset=3, limit=1) == "3\ty"
    assert answer(project, "Read", file_path=7).startswith("error: ")
