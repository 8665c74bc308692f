"""Whatever a request says, a mistake of its author is a 4xx of the console and never a defect of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote, urlencode

import anyio
import pytest

from tests.console.test_web import Site, running

pytestmark = pytest.mark.slow

GET_ROUTES = ("", "waiting", "call", "history", "history-charts", "history-call", "export", "policy", "try", "replay")
POST_ROUTES = ("answer", "policy-server", "try", "replay")
ROUTES = (*GET_ROUTES, "events", *POST_ROUTES, "static/console.css")
MEMBERS = ("server", "tool", "agent", "decision", "text", "since", "until", "before", "run", "call", "session")
MORE_MEMBERS = (
    "format",
    "rule",
    "name",
    "arguments",
    "result",
    "configuration",
    "rules",
    "newest",
    "approval",
    "action",
)
HOSTILE = (
    "",
    "\0",
    "\r\nSet-Cookie: a=b",
    "\x1b[2J\u202e\ufeff",
    "%s%n{0}",
    "../../etc/passwd",
    "[" * 100_000,
    "{" * 1000,
    '{"a":' * 20_000,
    "[" + "[a-" * 300,
    "*a" * 400,
    "'\"><script>alert(1)</script>",
    "9" * 5000,
    "-1",
    "1e999",
    "NaN",
    "²",
    "99999999999999999999-999999999999999999",
    '{"a": "\\ud800", "a": 1e400}',
    '{"content": 5, "isError": "yes"}',
    "a = " + "[" * 5000,
    "[permissions]\ndeny = 5",
    '[permissions]\ndeny = ["(((", "a(", "\\u0000"]',
)
TIMES = (
    *(
        "0001-01-01T00:00:00+00:00",
        "0001-01-01T00:00:00+23:59",
        "0001-01-01",
        "0002-01-01",
        "0001-01-01T00:01:30+00:00",
    ),
    *("9999-12-31T23:59:59.999999+00:00", "9999-12-31T23:59:59-23:59", "9999-12-31", "9998-01-01", "99999999999d"),
    *("1970-01-01", "3000-01-01", "0s", "2026-W01", "²d", "2026-11-26T12:00:00+99:99", "tomorrow"),
)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with running(tmp_path) as made:
        yield made


async def status_of(site: Site, method: str, path: str, body: str | bytes | None = None, **headers: str) -> int:
    headers = {"Cookie": site.cookie, "Origin": f"http://{site.host}", **headers}
    return (await site.send(method, f"/{site.access.folder}/{path}", body, headers))[0]


def of_defects(statuses: dict[str, int]) -> dict[str, int]:
    return {what: status for what, status in statuses.items() if not 200 <= status < 500}


@pytest.mark.parametrize("route", GET_ROUTES)
async def test_no_value_in_an_address_is_a_defect(site: Site, route: str) -> None:
    statuses = {}
    for value in HOSTILE:
        query = urlencode(dict.fromkeys((*MEMBERS, *MORE_MEMBERS), value[:500]) | {"since": "all", "until": ""})
        statuses[value[:20]] = await status_of(site, "GET", f"{route}?{query}")
    for raw in ("%ff%fe", "since=%ff", "=&&=;%", "since=all&before=%00", "a=" * 2000, "call=%ed%a0%80"):
        statuses[raw[:20]] = await status_of(site, "GET", f"{route}?{raw}")
    assert of_defects(statuses) == {}


@pytest.mark.parametrize("route", ["history", "history-charts", "export", "replay"])
async def test_no_time_in_an_address_is_a_defect(site: Site, route: str) -> None:
    statuses = {}
    for time in TIMES:
        for member in ("since", "until"):
            query = urlencode({"since": "all", member: time})
            statuses[f"{member} {time}"] = await status_of(site, "GET", f"{route}?{query}")
    assert of_defects(statuses) == {}


@pytest.mark.parametrize("route", POST_ROUTES)
async def test_no_form_is_a_defect(site: Site, route: str) -> None:
    statuses = {}
    filled = {"tool": "read", "arguments": "{}", "server": "files", "runs": "yes", "since": "all", "newest": "1"}
    for member in (*MEMBERS, *MORE_MEMBERS) if route != "policy-server" else ("command",):
        for value in (*HOSTILE, *(TIMES if route == "replay" and member in ("since", "until") else ())):
            if len(value) > 5000 and member not in ("arguments", "result", "rules"):
                value = value[:5000]
            statuses[f"{member} {value[:20]}"] = (await site.post(route, **{**filled, member: value}))[0]
            if route == "policy-server":
                break
    assert of_defects(statuses) == {}


@pytest.mark.parametrize("route", POST_ROUTES)
async def test_a_body_that_is_not_a_form_of_ours_is_refused(site: Site, route: str) -> None:
    token = site.access.form_token
    bodies: dict[str, tuple[str | bytes, dict[str, str]]] = {
        "empty": ("", {}),
        "json": (f'{{"token": "{token}"}}', {"Content-Type": "application/json"}),
        "bytes": (b"\xff\xfe\0", {}),
        "multipart": ("--x\r\n\r\n--x--", {"Content-Type": "multipart/form-data; boundary=x"}),
        "another token": (f"token={token}x", {}),
        "token twice": (f"token={token}&token=", {}),
        "not ascii": (f"token={quote(token)}é".encode(), {}),
        "fields": (b"&".join([b"a=1"] * 200_000), {}),
    }
    statuses = {what: await status_of(site, "POST", route, body, **headers) for what, (body, headers) in bodies.items()}
    assert statuses == dict.fromkeys(bodies, 403)


@pytest.mark.parametrize("length", ["-1", "1_0", "1, 2", "0x10", " ", "9" * 400, "²"])
async def test_a_length_that_is_not_a_number_is_refused(site: Site, length: str) -> None:
    assert await raw_status(site, f"Content-Length: {length}") in (400, 413)


@pytest.mark.parametrize("route", ROUTES)
async def test_a_wrong_method_is_refused(site: Site, route: str) -> None:
    allowed = {"GET", "HEAD"} if route not in POST_ROUTES or route in GET_ROUTES else set[str]()
    allowed |= {"POST"} if route in POST_ROUTES else set()
    for method in {"GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"} - allowed:
        assert await status_of(site, method, route) == 405, method


@pytest.mark.parametrize(
    "path", ["no-such-page", "static/", "static/..%2f..%2faccess.py", "static/%00", "//", "%ff", "a" * 5000]
)
async def test_a_page_that_is_not_there_is_not_found(site: Site, path: str) -> None:
    assert await status_of(site, "GET", path) in (404, 405)


async def test_an_unknown_call_is_not_found(site: Site) -> None:
    for path in ("call?run=r&call=c", "call", "history-call?call=c&session=s", "history-call"):
        assert await status_of(site, "GET", path) == 404, path


async def test_a_mistake_in_a_form_stays_a_page_with_the_form(site: Site) -> None:
    for form in ({"tool": ""}, {"tool": "read", "arguments": "no"}, {"tool": "read", "result": "[]"}):
        status, text, _ = await site.post("try", **form)
        assert (status, "<textarea" in text, 'role="alert"' in text) == (400, True, True)
    for form in ({"runs": ""}, {"runs": "yes", "since": "never"}, {"runs": "yes", "rules": "deny"}):
        status, text, _ = await site.post("replay", **form)
        assert (status, "<form" in text, 'role="alert"' in text) == (400, True, True)


async def raw_status(site: Site, *lines: str) -> int:
    """The status of the response to a POST with these header lines, as they are."""
    head = [f"POST /{site.access.folder}/try HTTP/1.1", f"Host: {site.host}", f"Origin: http://{site.host}"]
    text = "\r\n".join([*head, f"Cookie: {site.cookie}", *lines, "", "token="])
    with anyio.fail_after(30):
        stream = await anyio.connect_tcp("127.0.0.1", int(site.host.rpartition(":")[2]))
        async with stream:
            await stream.send(text.encode())
            return int((await stream.receive()).split()[1])
