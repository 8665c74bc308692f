"""The pages over HTTP: routes, and the server on a loopback socket. Files are read in worker threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Final

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from ..audit.view import files, from_end
from ..checks.inspect import inspect
from ..live.messages import Action, AnswerTaken, Settled
from ..model.errors import UserError, printable
from . import history, policy, replay
from .access import MAX_FORM_BYTES, Access, Refused
from .call_filter import CallFilter
from .change_stream import ChangeStreams
from .guard import Guard
from .html import Html, el, page
from .live_view import LiveView
from .mistakes import Mistake, as_mistakes, http_status
from .options import Options
from .pages import call as call_page
from .pages import charts as charts_page
from .pages import history as history_page
from .pages import live as live_page
from .pages import policy as policy_page
from .pages import replay as replay_page
from .pages import trial as trial_page
from .pages.problem import problem
from .state import State
from .trials import Trials, in_thread

if TYPE_CHECKING:
    import socket
    from types import FrameType

    from starlette.requests import Request


_MOST_DIGITS: Final = 18  # of the length of a form
_TOO_LONG: Final = "The form is too long."
_ACTIONS: Final[dict[str, Action]] = {"allow": "allow", "allow_session": "allow_session", "deny": "deny"}
_STATIC: Final = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}


Answering = Callable[[str, str, Action, str, str], Awaitable[AnswerTaken]]
"""Gives a run an answer: run, approval, action, reason, and the place of the person. What cannot be reached does not
accept it."""


class Pages:
    """The handlers of one console."""

    def __init__(self, options: Options, access: Access, state: State, answer: Answering) -> None:
        self._options = options
        self._state = state
        self._answer = answer
        self._access = access
        self._trials = Trials(options)
        self._streams = ChangeStreams(state)

    def close(self) -> None:
        """End the streams of events, and what runs for a page."""
        self._streams.close()
        self._trials.close()

    def app(self) -> Guard:
        """The application."""
        routes = [
            Route("/", self.live),
            Route("/events", self.events),
            Route("/waiting", self.waiting),
            Route("/call", self.call),
            Route("/answer", self.answer, methods=["POST"]),
            Route("/history", self.history),
            Route("/history-charts", self.history_charts),
            Route("/history-call", self.history_call),
            Route("/export", self.export),
            Route("/policy", self.policy),
            Route("/policy-server", self.policy_server, methods=["POST"]),
            Route("/try", self.try_form),
            Route("/try", self.try_call, methods=["POST"]),
            Route("/replay", self.replay_form),
            Route("/replay", self.replay, methods=["POST"]),
            Route("/static/{name}", static),
        ]
        handlers = {UserError: _user_error, Refused: _refused, 404: _not_found}
        inner = Starlette(routes=[Mount(f"/{self._access.folder}", routes=routes)], exception_handlers=handlers)
        return Guard(inner, self._access)

    async def posted(self, request: Request) -> dict[str, str]:
        """The members of a form of ours. Raises Refused."""
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()):
            raise Refused(400, "The length of the form is not a number.")
        if len(length) > _MOST_DIGITS or int(length) > MAX_FORM_BYTES:
            raise Refused(413, _TOO_LONG)
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_FORM_BYTES:
                raise Refused(413, _TOO_LONG)
        return self._access.form(bytes(body))

    # --- live ---

    async def live(self, request: Request) -> Response:
        """The page of the calls that happen now."""
        return _html("Live", "./", live_page.live(CallFilter.from_query(request.query_params)), live=True)

    async def events(self, request: Request) -> Response:
        """The changes of the live page, as events."""
        view = LiveView(self._state, CallFilter.from_query(request.query_params), self._access.form_token)
        return StreamingResponse(self._streams.events(view), media_type="text/event-stream")

    async def waiting(self, request: Request) -> Response:
        """How many approvals wait, for pages that do not follow the calls."""
        return JSONResponse({"waiting": len(self._state.approvals)})

    async def call(self, request: Request) -> Response:
        """One call of now: as it is in flight, or as it ended; else what the audit says."""
        run, call = (request.query_params.get(name, "")[:200] for name in ("run", "call"))
        state = self._state.runs.get(run)
        if state is not None and call in state.calls:
            shown = await in_thread(partial(live_page.call_in_flight, state, state.calls[call]))
            return _html(f"Call {call}", "./", shown)
        found = [one.record for one in self._state.ended if one.run == run and one.record.call == call]
        if not found:
            what = f"the call {printable(call)} is not among the last ones"
            raise Mistake(what, "the history has those that are recorded", HTTPStatus.NOT_FOUND)
        return _html(f"Call {call}", "./", await in_thread(partial(call_page.page, found)))

    async def answer(self, request: Request) -> Response:
        """Give a person's answer to an approval, and say what became of it."""
        form = await self.posted(request)
        key = form.get("run", ""), form.get("approval", "")
        action = _ACTIONS.get(form.get("action", ""))
        if action is None:
            raise Refused(400, "There is no such answer.")
        place = f"web console, {request.headers['host']}"
        over, text = await self._answer_once(key, action, form.get("reason", "").strip(), place)
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"over": over, "text": text})
        message = el("div", el("p", text), class_="message", role="status")
        return _html("Answer", "./", Html(message + el("p", el("a", "Back to the calls", href="./"))))

    async def _answer_once(self, key: tuple[str, str], action: Action, reason: str, place: str) -> tuple[bool, str]:
        """True if the approval waits no more, and a sentence about it. The first answer counts."""
        if key not in self._state.approvals:
            return True, f"Your answer came too late. {live_page.settled(self._state.settled.get(key))}"
        taken = await self._answer(*key, action, reason, place)
        if taken.accepted:
            return True, live_page.settled(Settled(key[1], action))
        return key not in self._state.approvals, f"Your answer was not taken: {taken.why}"

    # --- history ---

    def _query(self, view: history_page.View) -> history.Query:
        """Raises Mistake for times that cannot be read."""
        now = files.now()
        with as_mistakes():
            since = None if view.since == "all" else files.since(view.since, now)
            return history.Query(view.calls, since, files.since(view.until, now) if view.until else None)

    async def history(self, request: Request) -> Response:
        """The table of recorded calls."""
        view = history_page.View.from_query(request.query_params)
        before = from_end.place(request.query_params.get("before", ""))

        def read() -> Html:
            path, query = self._options.audit_path(), self._query(view)
            if not os.path.lexists(path):
                return el("p", f"There is no audit yet. {path} is made with the first call.", class_="empty")
            return history_page.history(view, path, history.listing(path, query, before), is_first=before is None)

        return _html("History", "history", await in_thread(read))

    async def history_charts(self, request: Request) -> Response:
        """The charts of a period, as a part of the page."""
        view = history_page.View.from_query(request.query_params)

        def read() -> Html:
            return charts_page.charts(history.over_time(self._options.audit_path(), self._query(view)))

        return HTMLResponse(await in_thread(read))

    async def history_call(self, request: Request) -> Response:
        """One recorded call."""
        call, session = (request.query_params.get(name, "")[:200] for name in ("call", "session"))

        def read() -> Html:
            path = self._options.audit_path()
            found = history.find(path, call, session)
            if not found:
                hint = "it may be in a file that was removed as too old"
                raise Mistake(f"{path}: there is no call {call!r}", hint, HTTPStatus.NOT_FOUND)
            return call_page.page(found)

        return _html(f"Call {call}", "history", await in_thread(read))

    async def export(self, request: Request) -> Response:
        """The matching calls as a file."""
        view = history_page.View.from_query(request.query_params)
        path, query = await in_thread(self._options.audit_path), self._query(view)
        is_csv = request.query_params.get("format") == "csv"
        pieces = (history.export_csv if is_csv else history.export_lines)(path, query)
        first = await in_thread(partial(next, pieces, b""))  # an audit that cannot be read is an error, no file
        name, kind = ("calls.csv", "text/csv") if is_csv else ("calls.jsonl", "application/jsonl")

        def all_pieces() -> Iterator[bytes]:
            yield first
            yield from pieces

        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(all_pieces(), media_type=f"{kind}; charset=utf-8", headers=headers)

    # --- policy ---

    async def policy(self, request: Request) -> Response:
        """The configuration in force."""
        rule, name = (request.query_params.get(one, "")[:1000] for one in ("rule", "name"))
        decision = rule if rule in policy.RULES else policy.RULES[0]

        def read() -> Html:
            loaded = self._options.load()
            lines = policy.lines_for(loaded, decision, name) if name else None
            form = policy_page.rule_form(decision, name, lines)
            server = policy_page.server_form(self._options.command, self._access.form_token)
            return policy_page.page(loaded, inspect(loaded, self._options.environ), server, form)

        return _html("Policy", "policy", await in_thread(read))

    async def policy_server(self, request: Request) -> Response:
        """The configuration in force, with what hooks see of the server that the command line names."""
        await self.posted(request)
        if not self._options.command:
            raise Refused(404, "The console was started without the command of a server.")
        loaded = await in_thread(self._options.load)
        server = await self._trials.checked_server(loaded)
        report = inspect(loaded, self._options.environ, server)
        tools = policy_page.server_tools(server, report.entries)
        return _html("Policy", "policy", policy_page.page(loaded, report, tools, policy_page.rule_form("", "", None)))

    # --- trials: hooks run for real ---

    async def try_form(self, request: Request) -> Response:
        """The form that tries a call."""
        server, tool, arguments = (request.query_params.get(name, "") for name in ("server", "tool", "arguments"))
        typed = trial_page.Form(server, tool, arguments or "{}")
        return _html("Try a call", "try", trial_page.form(typed, self._access.form_token))

    async def try_call(self, request: Request) -> Response:
        """Run the hooks on a call, and show what each did."""
        form = await self.posted(request)
        typed = trial_page.Form(*(form.get(name, "").strip() for name in ("server", "tool", "arguments", "result")))
        status = HTTPStatus.OK
        try:
            shown = trial_page.outcome(await self._trials.try_call(typed))
        except UserError as error:
            shown, status = problem(error), http_status(error)
        page = Html(trial_page.form(typed, self._access.form_token) + shown)
        return _html("Try a call", "try", page, status=status)

    async def replay_form(self, request: Request) -> Response:
        """The form that replays calls."""
        typed = replay_page.Form(history_page.View.from_query(request.query_params))
        return _html(
            "Replay", "history", replay_page.form(typed, self._options.configurations, self._access.form_token)
        )

    async def replay(self, request: Request) -> Response:
        """Run recorded calls through a configuration, and show which decisions would differ."""
        form = await self.posted(request)
        typed = replay_page.Form(
            history_page.View.from_query(form),
            _whole(form.get("configuration", ""), 0, len(self._options.configurations) - 1),
            form.get("rules", ""),
            _whole(form.get("newest", ""), 1, replay.MOST_CALLS),
        )
        status = HTTPStatus.OK
        try:
            if form.get("runs") != "yes":
                raise Mistake("nothing was replayed", "hooks run for real: tick the box that says so")
            shown = replay_page.outcome(await self._trials.replay(typed, self._query(typed.view)))
        except UserError as error:
            shown, status = problem(error), http_status(error)
        page = Html(replay_page.form(typed, self._options.configurations, self._access.form_token) + shown)
        return _html("Replay", "history", page, status=status)


def _whole(text: str, least: int, most: int) -> int:
    """The number, or the nearest that is allowed."""
    return min(max(int(text), least), most) if text.isascii() and text.isdecimal() and len(text) < 10 else least


def _html(title: str, current: str, main: Html, *, live: bool = False, status: int = 200) -> Response:
    return HTMLResponse(page(title, current, main, live=live), status)


def static(request: Request) -> Response:
    """Our style, script and icon."""
    name = request.path_params["name"]
    if name not in _STATIC:
        return PlainTextResponse("There is no such file.\n", 404)
    content = resources.files(__package__).joinpath("static", name).read_bytes()
    return Response(content, media_type=_STATIC[name])


def _user_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, UserError), error
    return _html("This cannot be shown", "", problem(error), status=http_status(error))


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused), error
    return PlainTextResponse(f"{error.why}\n", error.status)


def _not_found(request: Request, error: Exception) -> Response:
    return _html("There is no such page", "", el("p", "Choose a page above."), status=404)


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Nothing: no signal comes here."""


async def serve(pages: Pages, listener: socket.socket, started: Callable[[], Awaitable[None]]) -> None:
    """Serve until cancelled; then streams and trials are ended. `started` runs as soon as requests are taken."""
    config = uvicorn.Config(
        pages.app(),
        http="h11",  # it bounds the size of a request's head
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=2,  # seconds: what a browser does not read holds up nothing
    )
    server = _Server(config)

    async def until_exit() -> None:
        with anyio.CancelScope(shield=True):  # it ends by itself soon after `should_exit` is set
            await server.serve([listener])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(until_exit)
        try:
            await started()
            await anyio.sleep_forever()
        finally:
            pages.close()
            server.should_exit = True
