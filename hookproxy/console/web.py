"""The pages over HTTP: routes, and the server on a loopback socket. Files are read in worker threads."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from http import HTTPStatus
from importlib import resources
from itertools import chain
from typing import TYPE_CHECKING, Final, get_args
from urllib.parse import urlencode

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from ..audit.view import from_end
from ..audit.view.table import refusal_text
from ..checks.inspect import inspect
from ..checks.report import Report
from ..config.load import Loaded
from ..live.messages import Action, AnswerTaken, Settled
from ..model.errors import UserError, printable
from ..transports.uvicorn_server import serving
from . import history, policy, trials
from .access import MAX_FORM_BYTES, SECURITY_HEADERS, Access, Refused
from .call_filter import CallFilter
from .charts import charts
from .html import prepare, render
from .live_view import ChangeStreams, LiveView, settled
from .mistakes import Mistake, http_status
from .options import Options
from .policy import Lines
from .state import State
from .trials import MOST_CALLS, Replayed, Trials, TypedCall, TypedReplay, in_thread
from .visible import pretty

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..audit.records import CallRecord, HookRun
    from ..trial.report import TrialReport


_MOST_DIGITS: Final = 18  # of the length of a form
_LONGEST_LINK: Final = 4000  # bytes of arguments in a link: browsers do not take longer addresses for certain
_TOO_LONG: Final = "The form is too long."
_ACTIONS: Final[dict[str, Action]] = {action: action for action in get_args(Action)}
_STATIC: Final = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}


Answering = Callable[[str, str, Action, str, str, str], Awaitable[AnswerTaken]]
"""Gives a run an answer: run, approval, action, reason, the place of the person, and changed arguments. What cannot be
reached does not accept it."""


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
        form = self._access.form(bytes(body))
        return {name: value.replace("\r\n", "\n") for name, value in form.items()}  # as it was typed

    # --- live ---

    async def live(self, request: Request) -> Response:
        """The page of the calls that happen now."""
        return _html("live.html", "Live", "./", live=True, calls=CallFilter.from_query(request.query_params))

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
        state, title = self._state.runs.get(run), f"Call {call}"
        if state is not None and (flying := state.calls.get(call)) is not None:
            session = state.session(flying.session)
            show = partial(_html, "call_in_flight.html", title, "./", call=flying, session=session, now=time.time())
            return await in_thread(show)
        ended = [known.record for known in self._state.ended if known.run == run and known.record.call == call]
        if not ended:
            what = f"the call {printable(call)} is not among the last ones"
            raise Mistake(what, "the history has those that are recorded", HTTPStatus.NOT_FOUND)
        return await in_thread(partial(_call_page, ended, "./"))

    async def answer(self, request: Request) -> Response:
        """Give a person's answer to an approval, and say what became of it."""
        form = await self.posted(request)
        key = form.get("run", ""), form.get("approval", "")
        action = _ACTIONS.get(form.get("action", ""))
        if action is None:
            raise Refused(400, "There is no such answer.")
        place = f"web console, {request.headers['host']}"
        texts = form.get("reason", "").strip(), place, form.get("arguments", "").strip()
        over, text = await self._answer_once(key, action, *texts)
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"over": over, "text": text})
        return _html("message.html", "Answer", "./", text=text, back=True)

    async def _answer_once(
        self, key: tuple[str, str], action: Action, reason: str, place: str, arguments: str
    ) -> tuple[bool, str]:
        """True if the approval no longer waits, and a sentence about it. The first answer counts."""
        if (waiting := self._state.approvals.get(key)) is None:
            late = settled(self._state.settled.get(key), about_lock=key in self._state.about_lock)
            return True, f"Your answer came too late. {late}"
        taken = await self._answer(*key, action, reason, place, arguments)
        if taken.accepted:
            return True, settled(Settled(key[1], action), about_lock=waiting.approval.is_about_lock)
        return key not in self._state.approvals, f"Your answer was not taken: {taken.why}"

    # --- history ---

    async def history(self, request: Request) -> Response:
        """The table of recorded calls. Charts are only on its first page."""
        view = history.View.from_query(request.query_params)
        before = from_end.place(request.query_params.get("before", ""))

        def show() -> Response:
            path, query = self._options.audit_path(), view.query()
            if not os.path.lexists(path):
                text = f"There is no audit yet. {path} is made with the first call."
                return _html("message.html", "History", "history", text=text, back=False)
            values = {"view": view, "path": path, "listing": history.listing(path, query, before)}
            return _html("history.html", "History", "history", periods=history.PERIODS, is_first=not before, **values)

        return await in_thread(show)

    async def history_charts(self, request: Request) -> Response:
        """The charts of a period, as a part of the page."""
        view = history.View.from_query(request.query_params)
        return HTMLResponse(
            await in_thread(lambda: charts(history.over_time(self._options.audit_path(), view.query())))
        )

    async def history_call(self, request: Request) -> Response:
        """One recorded call."""
        call, session = (request.query_params.get(name, "")[:200] for name in ("call", "session"))

        def show() -> Response:
            path = self._options.audit_path()
            records = history.find(path, call, session)
            if not records:
                hint = "it may be in a file that was removed as too old"
                raise Mistake(f"{path}: there is no call {call!r}", hint, HTTPStatus.NOT_FOUND)
            return _call_page(records, "history")

        return await in_thread(show)

    async def export(self, request: Request) -> Response:
        """The matching calls as a file."""
        view = history.View.from_query(request.query_params)
        path, query = await in_thread(self._options.audit_path), view.query()
        is_csv = request.query_params.get("format") == "csv"
        pieces = (history.export_csv if is_csv else history.export_lines)(path, query)
        first = await in_thread(partial(next, pieces, b""))  # an audit that cannot be read is an error, not a file
        name, kind = ("calls.csv", "text/csv") if is_csv else ("calls.jsonl", "application/jsonl")
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(chain([first], pieces), media_type=f"{kind}; charset=utf-8", headers=headers)

    # --- policy ---

    async def policy(self, request: Request) -> Response:
        """The configuration in force."""
        rule, name = (request.query_params.get(member, "")[:1000] for member in ("rule", "name"))
        decision = rule if rule in policy.RULES else policy.RULES[0]

        def show() -> Response:
            loaded = self._options.load()
            lines = policy.lines_for(loaded, decision, name) if name else None
            return self._policy_page(
                loaded, inspect(loaded, self._options.environ), rule=decision, name=name, lines=lines
            )

        return await in_thread(show)

    async def policy_server(self, request: Request) -> Response:
        """The configuration in force, with what hooks see of the server that the command line names."""
        await self.posted(request)
        if not self._options.command:
            raise Refused(404, "The console was started without the command of a server.")
        loaded = await in_thread(self._options.load)
        server = await self._trials.checked_server(loaded)
        return self._policy_page(loaded, inspect(loaded, self._options.environ, server))

    def _policy_page(
        self, loaded: Loaded, report: Report, rule: str = "", name: str = "", lines: Lines | None = None
    ) -> Response:
        values = {"loaded": loaded, "report": report, "rule": rule, "name": name, "lines": lines}
        token, command = self._access.form_token, self._options.command
        return _html("policy.html", "Policy", "policy", policy=policy, token=token, command=command, **values)

    # --- trials: hooks run for real ---

    async def try_form(self, request: Request) -> Response:
        """The form that tries a call."""
        server, tool, arguments = (request.query_params.get(name, "") for name in ("server", "tool", "arguments"))
        return self._try_page(TypedCall(server, tool, arguments or "{}"))

    async def try_call(self, request: Request) -> Response:
        """Run the hooks on a call, and show what each did."""
        form = await self.posted(request)
        typed = TypedCall(*(form.get(name, "").strip() for name in ("server", "tool", "arguments", "result")))
        try:
            report = await self._trials.try_call(typed)
        except UserError as error:
            return self._try_page(typed, error=error)
        return self._try_page(typed, report, hook_runs=[trials.as_record(run) for run in report.trial.observation.runs])

    def _try_page(
        self,
        typed: TypedCall,
        report: TrialReport | None = None,
        hook_runs: Sequence[HookRun] = (),
        error: UserError | None = None,
    ) -> Response:
        token, shown = self._access.form_token, {"report": report, "hook_runs": hook_runs, "error": error}
        return _html("try.html", "Try a call", "try", http_status(error), typed=typed, token=token, **shown)

    async def replay_form(self, request: Request) -> Response:
        """The form that replays calls."""
        return self._replay_page(TypedReplay(history.View.from_query(request.query_params)))

    async def replay(self, request: Request) -> Response:
        """Run recorded calls through a configuration, and show which decisions would differ."""
        form = await self.posted(request)
        typed = TypedReplay(
            history.View.from_query(form),
            _whole(form.get("configuration", ""), 0, len(self._options.configurations) - 1),
            form.get("rules", ""),
            _whole(form.get("newest", ""), 1, MOST_CALLS),
        )
        try:
            if form.get("runs") != "yes":
                raise Mistake("nothing was replayed", "hooks run for real: tick the box that says so")
            return self._replay_page(typed, await self._trials.replay(typed))
        except UserError as error:
            return self._replay_page(typed, error=error)

    def _replay_page(
        self, typed: TypedReplay, replayed: Replayed | None = None, error: UserError | None = None
    ) -> Response:
        return _html(
            "replay.html",
            "Replay",
            "history",
            http_status(error),
            typed=typed,
            configurations=list(enumerate(self._options.configurations)),
            most_calls=MOST_CALLS,
            token=self._access.form_token,
            replayed=replayed,
            error=error,
        )


def _call_page(records: Sequence[CallRecord], current: str) -> Response:
    """All records of a call, and what may be done next."""
    last = records[-1]
    trial = {"server": last.server, "tool": last.tool}
    if 0 < len(arguments := bytes(last.arguments)) <= _LONGEST_LINK:
        trial["arguments"] = pretty(arguments)
    links = {"rule_name": policy.rule_name, "trial": urlencode(trial, errors="replace")}
    return _html("call.html", f"Call {last.call}", current, records=records, refusal_text=refusal_text, **links)


class Guard:
    """Checks each request, and gives each response the headers that keep a browser from doing what no page needs."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or let it pass."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        try:
            app = self._app
            if self._access.check(request.method, scope["path"], request.headers, request.query_params):
                app = self._first_page()
        except Refused as refused:
            app = PlainTextResponse(f"{refused.why}\n", refused.status)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await app(scope, receive, send_with_headers)

    def _first_page(self) -> HTMLResponse:
        response = HTMLResponse(render("first.html", address=f"/{self._access.folder}/"))
        response.headers["Set-Cookie"] = self._access.set_cookie
        return response


def _whole(text: str, least: int, most: int) -> int:
    """The number, or the nearest that is allowed."""
    return min(max(int(text), least), most) if text.isascii() and text.isdecimal() and len(text) < 10 else least


def _html(template: str, title: str, current: str, status: int = HTTPStatus.OK, /, **values: object) -> Response:
    """A whole page. `current` is the address of its place in the navigation."""
    return HTMLResponse(render(template, title=title, current=current, **values), status)


def static(request: Request) -> Response:
    """Our style, script and icon."""
    name = request.path_params["name"]
    if name not in _STATIC:
        return PlainTextResponse("There is no such file.\n", 404)
    content = resources.files(__package__).joinpath("static", name).read_bytes()
    return Response(content, media_type=_STATIC[name])


def _user_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, UserError), error
    return _html("problem.html", "This cannot be shown", "", http_status(error), error=error)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused), error
    return PlainTextResponse(f"{error.why}\n", error.status)


def _not_found(request: Request, error: Exception) -> Response:
    text = "Choose a page above."
    return _html("message.html", "There is no such page", "", HTTPStatus.NOT_FOUND, text=text, back=False)


async def serve(pages: Pages, listener: socket.socket, started: Callable[[], Awaitable[None]]) -> None:
    """Serve until cancelled; then streams and trials are ended. `started` runs as soon as requests are taken."""
    async with serving(pages.app(), listener):
        try:
            await started()
            await in_thread(prepare)
            await anyio.sleep_forever()
        finally:
            pages.close()
