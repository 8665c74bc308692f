"""Asks a language model, in the interface of OpenAI's chat completions or of Anthropic's messages.

How it works: a `Conversation` keeps the turns in a form of its own; `_FORMS` has for each interface what a request of
them is and what its response means, without I/O; `ask` is one POST over a connection of its own. Redirects are not
followed, proxies of the environment are not used, responses have a bound, and no error repeats anything of a request or
of a response: both may hold the key.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.hooks import HookSpec
from ..model.model_endpoint import ModelEndpoint, ModelHook
from ..model.secret_settings import LONGEST_VALUE, Source
from ..network import address, post
from ..network.connect import tls_context
from .http import check_output_head
from .runner import HookFailed

if TYPE_CHECKING:
    import ssl

_MOST_RESPONSE: Final = 1_048_576  # bytes: a verdict has a hundred, a model's longest text some hundred thousand
_MOST_TOKENS: Final = 4096  # of one answer: Anthropic's interface needs a bound, and a verdict has a hundred
_REFUSED_KEY: Final = (401, 403)
_NOT_THERE: Final = 404


class Tool(Struct, frozen=True):
    """What the model may call."""

    name: str
    description: str
    schema: Mapping[str, object]


class ToolCall(Struct, frozen=True):
    """A call that the model makes."""

    id: str
    name: str
    arguments: bytes
    """JSON, as the model wrote it."""


class Reply(Struct, frozen=True):
    """What the model answers: text, calls of tools, or both."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


class Results(Struct, frozen=True):
    """What the calls of a reply have returned."""

    texts: tuple[tuple[ToolCall, str], ...]


class Conversation:
    """The turns with a model about one event."""

    def __init__(self, asked: ModelHook, system: str, question: str, tools: Sequence[Tool]) -> None:
        self._asked = asked
        self._system = system
        self._tools = tools
        self._turns: list[str | Reply | Results] = [question]
        self.size = len(question)
        """Characters of all turns."""

    async def ask(self, env: Mapping[str, str], only: str = "") -> Reply:
        """Ask for the next reply; `only`: it must be a call of this tool. Raises HookFailed.

        The key is read from `env` or its file. On cancel, the connection is closed.
        """
        endpoint = self._asked.endpoint
        form = _FORMS[endpoint.api]
        body = raw_json.encode(form.request(self._asked.model, self._system, self._turns, self._tools, only))
        reply = form.reply(await _post(endpoint, form, body, _key(endpoint.key, env)))
        self._turns.append(reply)
        self.size += len(reply.text) + sum(len(call.arguments) for call in reply.calls)
        return reply

    def add_results(self, texts: Sequence[tuple[ToolCall, str]]) -> None:
        """The results of all calls of the last reply."""
        self._turns.append(Results(tuple(texts)))
        self.size += sum(len(text) for _call, text in texts)


async def _post(endpoint: ModelEndpoint, form: _Form, body: bytes, key: str) -> bytes:
    place = address.parse(endpoint.url + form.path)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "hookproxy",
        **form.headers(key),
    }
    response = post.CollectedResponse(_MOST_RESPONSE, _check_head)
    try:
        request = post.request_head(b"POST", place, headers, body)
        return await post.send_alone(place, request, response, {}, _tls)
    except TimeoutError:
        raise
    except post.ResponseTooLong:
        raise HookFailed(f"the model's answer has more than {_MOST_RESPONSE} bytes") from None
    except (OSError, UnicodeError) as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        raise HookFailed(f"the model at {place.origin} could not be asked: {why}") from None


def _check_head(status: int, headers: dict[bytes, bytes]) -> None:
    """Raise HookFailed for a response that is not an answer."""
    if status in _REFUSED_KEY:
        raise HookFailed(f"the model's endpoint refused the key (status {status}): check [model] key")
    if status == _NOT_THERE:
        raise HookFailed("the model's endpoint has no such path or model (status 404): check [model] url and name")
    check_output_head(status, headers)


@cache
def _tls() -> ssl.SSLContext:
    return tls_context(None, None, None)


def _key(source: Source | None, env: Mapping[str, str]) -> str:
    """The key; empty if the endpoint needs none. Raises HookFailed, which does not contain it."""
    if source is None:
        return ""
    key = env.get(source.what, "") if source.kind == "env" else _of_file(source.what)
    key = key.strip()
    if not key:
        raise HookFailed(f"the key of [model] is missing: {source} is empty or not set")
    if not key.isascii() or not key.isprintable():
        raise HookFailed(f"the key of [model] in {source} cannot be sent in a header")
    return key


def _of_file(path: str) -> str:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise HookFailed(f"the key of [model] cannot be read: {path} is not a file")
            return file.read(LONGEST_VALUE + 1).decode(errors="replace")
    except OSError as error:
        raise HookFailed(f"the key of [model] cannot be read: {path}: {error.strerror}") from None


def model_of(spec: HookSpec) -> ModelHook:
    """What a hook of these types asks: it has it."""
    assert spec.model is not None, "only such hooks have these types"
    return spec.model


# --- the interfaces ---

_Turns = Sequence[str | Reply | Results]
_Request = Callable[[str, str, _Turns, Sequence[Tool], str], dict[str, object]]


class _Form(Struct, frozen=True):
    """One interface."""

    path: str
    headers: Callable[[str], Mapping[str, str]]
    """Those that carry the key, which may be empty."""
    request: _Request
    """The body for a model, a system prompt, turns, tools, and the tool that must be called."""
    reply: Callable[[bytes], Reply]
    """What a response means. Raises HookFailed."""


class _Function(Struct):
    name: str
    arguments: str


class _FunctionCall(Struct):
    function: _Function
    id: str = ""


class _Message(Struct):
    content: str | None = None
    tool_calls: list[_FunctionCall] | None = None


class _Choice(Struct):
    message: _Message


class _Completion(Struct):
    choices: list[_Choice]


_COMPLETION: Final = msgspec.json.Decoder(_Completion)


def _openai_headers(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _openai_request(model: str, system: str, turns: _Turns, tools: Sequence[Tool], only: str) -> dict[str, object]:
    messages: list[dict[str, object]] = [{"role": "system", "content": system}]
    for turn in turns:
        match turn:
            case str(question):
                messages.append({"role": "user", "content": question})
            case Reply(text, calls):
                made = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments.decode(errors="replace")},
                    }
                    for call in calls
                ]
                messages.append(
                    {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}
                )
            case Results(texts):
                messages += ({"role": "tool", "tool_call_id": call.id, "content": text} for call, text in texts)
    functions = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
        }
        for tool in tools
    ]
    choice: object = {"type": "function", "function": {"name": only}} if only else "auto"
    return {"model": model, "messages": messages, "tools": functions, "tool_choice": choice}


def _openai_reply(body: bytes) -> Reply:
    try:
        completion = _COMPLETION.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise HookFailed("the model's endpoint answered with something else than a chat completion") from None
    if not completion.choices:
        raise HookFailed("the model's endpoint answered without a choice")
    message = completion.choices[0].message
    calls = (
        ToolCall(call.id, call.function.name, call.function.arguments.encode()) for call in message.tool_calls or ()
    )
    return Reply(message.content or "", tuple(calls))


class _Block(Struct):
    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))


class _Answer(Struct):
    content: list[_Block]


_ANSWER: Final = msgspec.json.Decoder(_Answer)


def _anthropic_headers(key: str) -> Mapping[str, str]:
    return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}


def _anthropic_request(model: str, system: str, turns: _Turns, tools: Sequence[Tool], only: str) -> dict[str, object]:
    messages: list[dict[str, object]] = []
    for turn in turns:
        match turn:
            case str(question):
                messages.append({"role": "user", "content": question})
            case Reply(text, calls):
                blocks: list[dict[str, object]] = [{"type": "text", "text": text}] if text else []
                blocks += (
                    {"type": "tool_use", "id": call.id, "name": call.name, "input": msgspec.Raw(call.arguments)}
                    for call in calls
                )
                messages.append({"role": "assistant", "content": blocks})
            case Results(texts):
                results = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in texts]
                messages.append({"role": "user", "content": results})
    return {
        "model": model,
        "max_tokens": _MOST_TOKENS,
        "system": system,
        "messages": messages,
        "tools": [{"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in tools],
        "tool_choice": {"type": "tool", "name": only} if only else {"type": "auto"},
    }


def _anthropic_reply(body: bytes) -> Reply:
    try:
        answer = _ANSWER.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise HookFailed("the model's endpoint answered with something else than a message") from None
    calls = (ToolCall(block.id, block.name, bytes(block.input)) for block in answer.content if block.type == "tool_use")
    return Reply("".join(block.text for block in answer.content if block.type == "text"), tuple(calls))


_FORMS: Final[Mapping[str, _Form]] = {
    "openai": _Form("/chat/completions", _openai_headers, _openai_request, _openai_reply),
    "anthropic": _Form("/v1/messages", _anthropic_headers, _anthropic_request, _anthropic_reply),
}
