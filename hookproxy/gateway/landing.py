"""The page for people with a token: which servers there are for them, how their agents connect, and what is denied.

`GET /` and `GET /servers` are the same: HTML for a browser, JSON for all others. A browser cannot send a token by
itself, so who comes without one to `/` gets a form, whose script asks for `/servers` with the token, and keeps it
nowhere.

Law: a person reads what holds for this person, and nothing of commands, accounts, credentials or other people. What the
administrator wrote is text, never markup; no page runs a script but the one here, and nobody keeps a page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..model.env_references import TOKEN_VARIABLE
from ..wrapping.http_entry import new_entry
from ..wrapping.known_agents import AGENTS
from .secrets import secrets_of_if_any

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..model.principal import Principal
    from ..model.settings import Settings
    from ..transports.http.responder import Headers

FORM_PATH: Final = b"/"

_HTML: Final = b"text/html"

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "pre{overflow:auto;padding:.6rem;border:1px solid #8888;border-radius:.3rem}"
    "input{font:inherit;width:30rem;max-width:90%}"
)
_SCRIPT: Final = """
document.querySelector("form").addEventListener("submit", async event => {
  event.preventDefault();
  const headers = {Authorization: "Bearer " + document.querySelector("input").value, Accept: "text/html"};
  const response = await fetch("servers", {headers, cache: "no-store", credentials: "omit"});
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const main = response.ok ? page.querySelector("main") : null;
  if (main) document.querySelector("main").replaceWith(main);
  else document.querySelector("output").textContent = "This token is not accepted (" + response.status + ").";
});
"""


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_digest(_STYLE)}'; script-src 'sha256-{_digest(_SCRIPT)}'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SAFE: Final[Headers] = (
    (b"cache-control", b"no-store"),
    (b"vary", b"accept, authorization"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
HTML_HEADERS: Final[Headers] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY.encode()),
    *_SAFE,
)
JSON_HEADERS: Final[Headers] = ((b"content-type", b"application/json"), *_SAFE)


def wants_html(accept: bytes) -> bool:
    """True for a browser: `text/html` is asked for by its name, and JSON is not preferred to it."""
    weights: dict[bytes, float] = {}
    for entry in accept.lower().split(b","):
        name, *settings = (part.strip(b" \t") for part in entry.split(b";"))
        weights[name] = _weight(settings)
    html = weights.get(_HTML, 0.0)
    return html > 0 and html >= weights.get(b"application/json", 0.0)


def _weight(settings: Sequence[bytes]) -> float:
    written = next((setting[2:] for setting in settings if setting.startswith(b"q=")), b"1")
    try:
        return float(written)
    except ValueError:
        return 0.0


def form() -> bytes:
    """The page for who comes without a token."""
    return _page(
        "<h1>hookproxy</h1><p>This is a gateway for MCP servers. With your token, it says which servers there are for "
        "you, and how your agent connects to them. The administrator gives you the token.</p>"
        '<form><label>Token<br><input type="password" autocomplete="off" required></label> '
        "<button>Show my servers</button></form><p><output></output></p>"
        "<p>Without a browser: <code>"
        f"curl -H &quot;Authorization: Bearer ${TOKEN_VARIABLE}&quot; ADDRESS/servers</code></p>",
        f"<script>{_SCRIPT}</script>",
    )


def respond(config: GatewayConfig, address: str, principal: Principal, *, html: bool) -> tuple[Headers, bytes]:
    """Headers and body of the response to this user. `address` is the gateway's, as agents reach it."""
    servers = [
        _described(server, f"{address.rstrip('/')}/mcp/{server.name}", principal)
        for server in config.servers.values()
        if server.allows(principal) and not config.closed
    ]
    if not html:
        whole = {"user": principal.name, "groups": principal.groups, "token": TOKEN_VARIABLE, "servers": servers}
        whole |= {"closed": config.closed} if config.closed else {}
        return JSON_HEADERS, raw_json.encode(whole) + b"\n"
    return HTML_HEADERS, _page("".join(_html(principal, servers, address, config.closed)))


def _described(server: GatewayServer, url: str, principal: Principal) -> dict[str, object]:
    """What this user may know of a server."""
    name, settings = server.name, server.settings_for(principal)
    removed = secrets_of_if_any(server).removed_from
    rules = {
        kind: [removed(rule) for rule in dict.fromkeys(_rules(settings, kind))] for kind in ("deny", "ask", "allow")
    }
    described: dict[str, object] = {"name": name, "rules": rules, "hooks": sum(_hooks(server))}
    if server.table.from_caller:
        return {**described, "command": f"hookproxy connect {name} -- COMMAND"}
    agents = {
        agent.name: {"title": agent.title, "file": (*agent.project_files, *agent.user_files)[0], "entry": entry}
        for agent in AGENTS
        if agent.http is not None and (entry := new_entry(agent.http, name, url))
    }
    command = f"hookproxy connect {name} --url {url.removesuffix(f'/mcp/{name}')}"
    return {**described, "url": url, "command": command, "agents": agents}


def _rules(settings: Settings, kind: str) -> Iterator[str]:
    for of_whom in filter(None, (settings, settings.managed)):
        yield from getattr(of_whom, kind)
        yield from (rule.text for rule in of_whom.agent_rules if rule.decision == kind)


def _hooks(server: GatewayServer) -> Iterator[int]:
    return (len(group.hooks) for group in server.loaded.groups)


def _html(principal: Principal, servers: Sequence[Mapping[str, object]], address: str, closed: str) -> Iterator[str]:
    groups = f" ({escape(', '.join(principal.groups))})" if principal.groups else ""
    yield f"<h1>Servers for {escape(principal.name)}{groups}</h1>"
    if not servers:
        why = f"Nothing may pass now: {escape(closed)}." if closed else "There is no server for you."
        yield f"<p>{why} Ask the administrator.</p>"
        return
    yield (
        f"<p>Put your token into the variable <code>{TOKEN_VARIABLE}</code> of your agent's environment. "
        f"<code>hookproxy wrap AGENT --gateway {escape(address)}</code> writes the entries for servers that your agent "
        "already has.</p>"
    )
    for server in servers:
        yield f"<h2>{escape(str(server['name']))}</h2>"
        if "url" in server:
            yield f"<p>Address: <code>{escape(str(server['url']))}</code></p>"
        yield f"<p>An agent that speaks only stdio starts <code>{escape(str(server['command']))}</code></p>"
        yield from _html_of_rules(server)
        agents = server.get("agents")
        for agent in agents.values() if isinstance(agents, dict) else ():
            yield f"<details><summary>{escape(agent['title'])}: <code>{escape(agent['file'])}</code></summary>"
            yield f"<pre>{escape(agent['entry'])}</pre></details>"


def _html_of_rules(server: Mapping[str, object]) -> Iterator[str]:
    rules = server["rules"]
    assert isinstance(rules, dict)
    for kind, words in (("deny", "Denied"), ("ask", "A person must allow")):
        if rules[kind]:
            yield f"<p>{words}: {', '.join(f'<code>{escape(rule)}</code>' for rule in rules[kind])}</p>"
    if server["hooks"]:
        yield "<p>Hooks look at the calls, and may refuse further ones.</p>"


def _page(main: str, end: str = "") -> bytes:
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>hookproxy</title><style>{_STYLE}</style>'
    return f"{head}<main>{main}</main>{end}</html>\n".encode(errors="replace")
