"""`hookproxy interceptors`: offers hooks and rules as MCP interceptors (SEP-2624), and asks servers that offer some.

Exit status of `serve`: 0 the host has gone; 2 it cannot be started. Of `list` and `invoke`: 0 it is listed, or the
message may pass; 1 the interceptor says that it must not; 2 the server gave no such answer.
"""

from __future__ import annotations

import os
import uuid
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..model.errors import EXIT_FINDINGS, UserError, printable
from .common import load_named, show, show_line, split_command, tell, working_directory
from .hook_runtime import redirected_output, run_until_done
from .layout import shortened
from .options import HOOK_OPTIONS, Parser
from .progress import waiting

if TYPE_CHECKING:
    from ..config.load import Loaded
    from ..interceptors.service import Service
    from ..protocol.interceptors import Descriptor, Outcome
    from ..protocol.responses import Members

_SECONDS: Final = 60.0  # for the server's start and all its answers: `npx` may still have to download it


def main(arguments: Sequence[str]) -> int:
    """Do what the subverb says. Returns the exit status."""
    subverbs = {"serve": _serve, "list": _list, "invoke": _invoke}
    if not arguments or arguments[0] not in subverbs:
        raise build_parser().no_subverb(arguments)
    return subverbs[arguments[0]](arguments[1:])


def build_parser() -> Parser:
    """The parser of the verb alone, for its help."""
    return Parser(
        "interceptors",
        "Offer hooks, rules and limits as MCP interceptors (SEP-2624), or ask a server that offers interceptors. See "
        "also: interceptors serve, list, invoke.",
        rest="serve|list|invoke [OPTION...]",
        subverbs=subverb_parsers,
    )


def subverb_parsers() -> dict[str, Parser]:
    """The parsers of the command lines after the subverbs."""
    return {"serve": _serve_parser(), "list": _list_parser(), "invoke": _invoke_parser()}


def _serve_parser() -> Parser:
    parser = Parser(
        "interceptors serve",
        "Be a server of interceptors on standard input and output, or over HTTP: a host that has them judge its "
        "messages has them judged by these hooks, rules and limits. Messages are recorded as calls are.",
    )
    parser.add_common(*HOOK_OPTIONS)
    parser.add_common("--name")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="serve over HTTP at this address of this machine, until it is ended"
    )
    parser.add_common("--fail-closed")
    return parser


def _list_parser() -> Parser:
    parser = Parser(
        "interceptors list",
        "List the interceptors that a server offers. Exit status: 0 it is listed, 2 the server gave no such answer.",
        rest="-- COMMAND [ARG...]",
    )
    parser.add_argument("--event", metavar="METHOD", help="only those for messages of this method, as tools/call")
    parser.add_common("--json", "--verbose")
    return parser


def _invoke_parser() -> Parser:
    parser = Parser(
        "interceptors invoke",
        "Have one interceptor of a server judge a message. Exit status: 0 the message may pass, 1 it must not, 2 the "
        "interceptor gave no answer: hosts then block the message, unless it has failOpen.",
        rest="-- COMMAND [ARG...]",
    )
    parser.add_argument("interceptor", metavar="NAME", help="the interceptor's name")
    parser.add_argument(
        "payload", metavar="PAYLOAD", help="the params or the result, as JSON; - reads standard input, @FILE a file"
    )
    parser.add_argument("--event", metavar="METHOD", required=True, help="the method of the message, as tools/call")
    parser.add_argument("--phase", choices=("request", "response"), required=True, help="which message it is")
    parser.add_argument("--session", metavar="ID", help="the id of the session that the server gets")
    parser.add_common("--json")
    return parser


# --- serve ---


def _serve(arguments: Sequence[str]) -> int:
    options = _serve_parser().parse_args(list(arguments))
    cwd = working_directory()
    loaded = load_named(options, cwd)
    from ..config.load import make_data_folders
    from .offline import require_policy

    require_policy([loaded], "to offer")
    tell(*loaded.notes, *loaded.remarks, *make_data_folders(loaded))
    longest = loaded.settings.max_message_bytes
    if options.listen is not None:
        from ..interceptors import over_http

        listener = over_http.listen(options.listen)

        def started() -> None:
            host, port = listener.getsockname()[:2]
            tell(f"interceptors at http://{f'[{host}]' if ':' in host else host}:{port}/")

        run_until_done(
            partial(_served, loaded, options.name, cwd, lambda it: over_http.serve(it, listener, longest, started))
        )
        return 0
    from ..interceptors import over_stdio

    source, sink = os.dup(0), os.dup(1)
    with redirected_output():
        run_until_done(
            partial(_served, loaded, options.name, cwd, lambda it: over_stdio.serve(it, source, sink, longest))
        )
    return 0


async def _served(loaded: Loaded, name: str | None, cwd: str, serve: Callable[[Service], Awaitable[None]]) -> None:
    import anyio

    from ..interceptors.policy import PolicyInterceptors
    from ..interceptors.service import Service
    from ..model.hooks import Session

    session = Session(str(uuid.uuid4()), name or "server", cwd, os.environ.get("CLAUDE_PROJECT_DIR") or cwd)
    async with anyio.create_task_group() as tasks:
        policy = PolicyInterceptors(loaded, session.in_project(loaded.project), os.environ, tasks, tell)
        try:
            service = Service(policy.offered(), tell)
            await serve(service)
        finally:
            with anyio.CancelScope(shield=True):  # it is bounded by itself
                await policy.aclose()
        tasks.cancel_scope.cancel()


# --- list and invoke ---


def _list(arguments: Sequence[str]) -> int:
    words, command = split_command(arguments)
    options = _list_parser().parse_args(words)
    with waiting("the server's interceptors"):
        descriptors = run_until_done(partial(_asked, command, options.event, None))[0]
    if options.json:
        show(_json({"interceptors": [descriptor.listed() for descriptor in descriptors]}))
        return 0
    if not descriptors:
        tell("the server lists no interceptor" + (f" for {options.event}" if options.event else ""))
    with shortened(verbose=options.verbose, end=0):
        for descriptor in descriptors:
            show_line(_line(descriptor))
    return 0


def _line(descriptor: Descriptor) -> str:
    hooks = "; ".join(f"{', '.join(hook.events)} ({hook.phase})" for hook in descriptor.hooks)
    marks = ["only audits"] if descriptor.mode == "audit" else []
    marks += ["fails open"] if descriptor.fail_open else []
    if any(descriptor.priorities):
        marks.append("priority " + "/".join(map(str, dict.fromkeys(descriptor.priorities))))
    text = f"{descriptor.name}  {descriptor.type}  {hooks}"
    return printable("  ".join(filter(None, (text, ", ".join(marks), descriptor.description))))


def _invoke(arguments: Sequence[str]) -> int:
    words, command = split_command(arguments)
    options = _invoke_parser().parse_args(words)
    payload = _payload(options.payload)
    with waiting("the interceptor"):
        descriptors, answer = run_until_done(partial(_asked, command, None, (options, payload)))
    assert answer is not None, "an interceptor was invoked"
    result, outcome = answer
    if options.json:
        show(_json(result))
    else:
        descriptor = next(each for each in descriptors if each.name == options.interceptor)
        show(_outcome_text(descriptor, outcome))
    return EXIT_FINDINGS if outcome.blocks else 0


def _outcome_text(descriptor: Descriptor, outcome: Outcome) -> str:
    texts = [printable(text) for text in outcome.messages]
    if descriptor.type == "validation":
        word = "may pass" if outcome.valid else "must not pass" if outcome.blocks else f"may pass ({outcome.severity})"
        return "".join(f"{line}\n" for line in (word, *texts))
    if descriptor.type == "sink":
        return "recorded\n"
    if outcome.payload is None:
        return "unchanged\n"
    return f"changed\n{printable(outcome.payload.decode(errors='replace'))}\n"


def _payload(given: str) -> bytes:
    """The payload, as compact JSON. Raises UserError."""
    from ..jsonrpc import normalize
    from .given_json import read_given

    raw = read_given("PAYLOAD", given)
    try:
        return normalize.normalize(raw)
    except ValueError as problem:
        hint = """give it as '{"name": "TOOL", "arguments": {}}'"""
        raise UserError(f"PAYLOAD is not JSON that can be judged: {problem}", hint) from None


def _json(value: object) -> str:
    return raw_json.encode(value).decode() + "\n"


_Invoked = tuple[Mapping[str, object], "Outcome"]


async def _asked(
    command: Sequence[str], event: str | None, invoked: tuple[Namespace, bytes] | None
) -> tuple[tuple[Descriptor, ...], _Invoked | None]:
    """What the server of this command line lists, and what it answers to the invocation. Raises UserError."""
    import anyio

    from ..checks.asked_process import AskedProcess, answer_of

    if not command:
        raise UserError("there is no server to ask", "write -- COMMAND [ARG...] after the options")
    server = AskedProcess(command, os.environ)
    try:
        with anyio.fail_after(_SECONDS):
            return await answer_of(server, partial(_ask, server, event, invoked), "said which interceptors it offers")
    except TimeoutError:
        raise server.error(f"did not answer within {_SECONDS:g} s", "answered") from None


async def _ask(
    server: object, event: str | None, invoked: tuple[Namespace, bytes] | None
) -> tuple[tuple[Descriptor, ...], _Invoked | None]:
    from ..checks.asked_process import AskedProcess, ServerFailed
    from ..checks.conversation import Conversation, ErrorResponse
    from ..protocol import interceptors as wire

    assert isinstance(server, AskedProcess)
    conversation = Conversation(server, {"extensions": {wire.EXTENSION: {}}})
    try:
        beginning = await conversation.begin()
        descriptors: tuple[Descriptor, ...] = ()
        more = {**beginning.params, **({"event": event} if event is not None else {})}
        result = await conversation.request(wire.LIST, more)
        descriptors = wire.read_list(result)
        wire.check_names(descriptors)
        if invoked is None:
            return tuple(each for each in descriptors if event is None or each.concerns(event)), None
        options, payload = invoked
        descriptor = next((each for each in descriptors if each.name == options.interceptor), None)
        if descriptor is None:
            names = ", ".join(repr(each.name) for each in descriptors)
            raise ServerFailed(f"offers no interceptor {options.interceptor!r}; it offers {names or 'none'}")
        context = {"timestamp": _now(), **({"sessionId": options.session} if options.session else {})}
        params = wire.invocation(options.interceptor, options.event, options.phase, payload, _SECONDS, context)
        answer: Members = await conversation.request(wire.INVOKE, {**beginning.params, **params})
        return descriptors, (answer, wire.read_outcome(descriptor, options.phase, answer))
    except ErrorResponse as error:
        raise ServerFailed(f"answered with an error: {printable(str(error))}") from None
    except ValueError as problem:
        raise ServerFailed(f"answered with what cannot be used: {problem}") from None


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="milliseconds")
