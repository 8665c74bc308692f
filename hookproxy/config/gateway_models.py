"""The keys of gateway.toml beyond those of hookproxy.toml, and what each one means, as in `models`.

An unknown key is an error: a misspelled guard must not be missing silently (law 3).
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from ..model.sizes import SIZE
from ..sandbox.table import MEMORY, PROCESSES
from .models import (
    MAX_CALLS,
    MAX_SAME,
    MIN_MESSAGE_BYTES,
    ConfigFile,
    Duration,
    Mode,
    Permissions,
    Roots,
    Size,
    Table,
)

_Text = Annotated[str, Meta(min_length=1)]

_People = Annotated[list[_Text], Meta(min_length=1)]

SERVER_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}\Z"
"""A server's name is a part of a path, of hooks' tool names and of metrics: nothing in it needs quoting."""

INSTANCE_NAME: Final = r"^[A-Za-z0-9_\-]{1,32}\Z"
"""A gateway's name is a part of session ids, and of balancers' configurations: nothing in it needs quoting."""

DEFAULT_SOCKET: Final = "/run/hookproxy/mcp.sock"
"""Where agents look for the gateway on its own machine: in the folder that systemd makes for a service of this name."""


def admin_socket_beside(agents: str) -> str:
    """The administration socket that belongs to a socket for agents, by default."""
    return f"{agents.removesuffix('.sock')}-admin.sock"


class UserRules(Table, frozen=True):
    """Permission rules for some people only. They count like those for all: deny beats ask, ask beats allow, and allow
    beats the default.
    """

    users: Annotated[list[_Text], Meta(min_length=1)]
    """The people: names of users, and names of groups with `@` in front."""
    allow: list[_Text] = field(default_factory=list)
    """Calls that run without asking."""
    ask: list[_Text] = field(default_factory=list)
    """Calls that a person must allow."""
    deny: list[_Text] = field(default_factory=list)
    """Calls that are refused."""
    default: Literal["ask", "deny"] | None = None
    """What happens to calls that no rule is about. It only narrows: of the defaults that hold for a user, the strictest
    counts.
    """
    mode: Mode = "enforce"
    """As in `[permissions]`, whose `mode` holds for these rules, too."""


class GatewayPermissions(Permissions, frozen=True):
    """Permission rules of a gateway: for all, and for some people."""

    for_users: list[UserRules] = field(default_factory=list, name="for")
    """Permission rules for some people: one `[[permissions.for]]` table for each list of people."""


class Oidc(Table, frozen=True):
    """An issuer of tokens (OpenID Connect or OAuth 2)."""

    issuer: _Text
    """Its address, as it stands in its tokens."""
    audience: str = ""
    """What its tokens name as their audience. Default: the address of the server, as agents use it."""
    user_claim: _Text = "sub"
    """The claim that has the user's name."""
    groups_claim: _Text = "groups"
    """The claim that has the user's groups."""
    missing_groups: Literal["doubt", "refuse", "none"] = "doubt"
    """What a token without that claim means. "doubt": nobody knows the user's groups, so rules that deny or ask hold as
    if the user were in all groups, and what allows as if in none. "refuse": it is not accepted. "none": the user has no
    groups, and rules that deny something to a group do not hold."""
    required_scopes: list[_Text] = field(default_factory=list)
    """Scopes that a token must have."""
    any_type: bool = False
    """true accepts also tokens without a type, or of the type JWT, for issuers that do not follow RFC 9068."""
    ca: str = ""
    """Trust the certificates in this file besides the system's, for an issuer of the company."""


class Roles(Table, frozen=True):
    """Who may do more at the gateway than use its servers: names of users, and names of groups with `@` in front.

    The gateway's administrator, who is root or the gateway's own account, may do all of it but approve calls, once
    `approver` names somebody.
    """

    approver: _People = field(default_factory=list)
    """Who answers calls that need approval, on a console: never whoever has asked for the call. Default: the user whose
    agent has asked for it, and the administrator on a console.
    """
    auditor: _People = field(default_factory=list)
    """Who reads the audit and sees the calls of all users on a console, and can change nothing."""
    operator: _People = field(default_factory=list)
    """Who lists and ends sessions, blocks users, and reloads the configuration."""


class Tls(Table, frozen=True):
    """A certificate."""

    certificate: _Text
    """The file with the certificate and its chain, as PEM."""
    key: _Text
    """The file with its private key."""


class StoreTable(Table, frozen=True):
    """What several gateways share: a Valkey or Redis server. It needs the extra `cluster`."""

    url: Annotated[str, Meta(pattern=r"^(redis|rediss|unix)://.")]
    """Its address: "redis://HOST:6379/0", "rediss://HOST:6379/0" with TLS, or "unix:///run/valkey/valkey.sock"."""
    user: str = ""
    """The user as which to log in. Default: the server's default user."""
    password: Annotated[str, Meta(pattern=r"^file:.")] | None = None
    """The file with the password, as for `credentials` of a server."""
    ca: _Text | None = None
    """For rediss://: trust the certificates in this file instead of the system's."""
    prefix: _Text = "hookproxy:"
    """What all keys in it begin with. Gateways with the same prefix count and remember together."""


class AuditExport(Table, frozen=True):
    """Sends the audit files to an OpenTelemetry collector (OTLP logs over HTTP), too. The files are the queue: what
    could not be sent is sent later, also after a restart.
    """

    url: Annotated[str, Meta(pattern=r"^https?://[^/]")]
    """The collector's address for logs, such as "https://collector.example.com:4318/v1/logs"."""
    token: Annotated[str, Meta(pattern=r"^file:.")] | None = None
    """The file with the token that is sent as `Authorization: Bearer`, as for `credentials` of a server."""
    ca: _Text | None = None
    """Trust the certificates in this file instead of the system's."""


class SandboxTable(Table, frozen=True):
    """What the process of a server may reach, besides the system's programs and its own. A relative path starts from
    the folder of gateway.toml, and `~` is the home folder of the account that the server runs as.
    """

    read: list[_Text] = field(default_factory=list)
    """Folders and files that it may read."""
    write: list[_Text] = field(default_factory=list)
    """Folders and files that it may read and write, besides its working folder."""
    network: Literal["all", "none"] = "all"
    """ "none": it reaches no network, and not this machine's own addresses either."""
    env: list[_Text] = field(default_factory=list)
    """Names of variables of the gateway's environment that it gets, such as HTTPS_PROXY."""
    memory: Annotated[str, Meta(pattern=SIZE)] = MEMORY
    """How much memory it may use, such as "1GiB": all of its processes together."""
    processes: Annotated[int, Meta(ge=1, le=1_000_000)] = PROCESSES
    """How many processes and threads it may have."""


class GatewayLimit(Table, frozen=True):
    """`[[limits]]` of a gateway: how many calls are allowed in a period, or how many sessions and how much memory at a
    time. It holds for each user alone, and for calls at each server alone.
    """

    users: list[_Text] = field(default_factory=list)
    """Whom it is about: names of users, and names of groups with `@` in front. Default: everybody."""
    servers: list[_Text] = field(default_factory=list)
    """The servers that it is about, by name; not in `[[servers.NAME.limits]]`, which are about that server. Default:
    all.
    """
    together: bool = False
    """true: all these users count together, and not each one alone."""
    tool: _Text | None = None
    """For limits of calls: a glob over tool names. All matching tools are counted together. Default: all tools."""
    calls: Annotated[int, Meta(ge=1, le=MAX_CALLS)] | None = None
    """How many calls may be forwarded in the period. Calls that hooks or rules refuse do not count."""
    same: Annotated[int, Meta(ge=1, le=MAX_SAME)] | None = None
    """How often the same call may be forwarded: that of one tool with the same arguments, in whatever order these are
    written.
    """
    seconds: Annotated[float, Meta(gt=0, le=31_536_000)] | None = None
    """How many seconds calls may take, all of them together: the call that passes it is the last one. Not with a
    `[gateway.store]`.
    """
    result_bytes: Size | None = None
    """How many bytes the results of calls may have, all of them together: the call that passes it is the last one. Not
    with a `[gateway.store]`.
    """
    bytes: Size | None = None
    """How many bytes the arguments and results of calls may have in the period, all of them together: the call that
    passes it is the last one.
    """
    per: Literal["second", "minute", "hour", "day", "session"] | None = None
    """The length of the period, which may start at any time."""
    window: Duration | None = None
    """The length of the period, in place of `per`, such as "90s" or "10m"."""
    within: Literal["session", "agent", "subagent"] | None = None
    """With any of them, the calls of each session count alone, and not all those of the user: a gateway is not told
    which subagent calls.
    """
    then: Literal["deny", "ask", "comment"] = "deny"
    """What happens to a call that exceeds the limit, as in hookproxy.toml."""
    sessions: Annotated[int, Meta(ge=1)] | None = None
    """How many sessions may be open at a time, at all these servers together. It holds beside `[gateway.per_user]`."""
    memory: Size | None = None
    """How much memory the processes of all these servers may use, as in `[gateway.per_user]`."""
    mode: Mode = "enforce"
    """For limits of calls: "monitor" counts, and records which calls would have been refused; none is."""


class PerUser(Table, frozen=True):
    """What one user may have at a time, at all servers together. `[[limits]]` say more of some users and servers."""

    sessions: Annotated[int, Meta(ge=1)] | None = None
    """How many sessions. Default: 32, which is more than an agent with many servers and subagents opens."""
    memory: Size = "2GiB"
    """How much memory the processes of the user's servers may use, with all that they start. What they share is counted
    in proportion. Nothing is started beyond it, and where servers grow beyond it, the process that has grown most is
    ended. Servers with `share = "all"`, `url` or `from_caller` do not count.
    """


class Total(Table, frozen=True):
    """What all users together may have at a time."""

    sessions: Annotated[int, Meta(ge=1)] = 1024
    """How many sessions."""
    memory: Size | None = None
    """How much memory the processes of all servers may use. Default: three quarters of what the gateway's service may
    use (`MemoryMax=`), or of the machine's.
    """


class GatewayTable(Table, frozen=True):
    """Where the gateway listens, and its limits."""

    listen: Annotated[list[_Text], Meta(min_length=1)] | None = None
    """The addresses. "unix:/run/hookproxy/mcp.sock" is a Unix socket, whose folder must belong to root or to the
    gateway's account, and be writable for nobody else. "http://127.0.0.1:8765" and "https://0.0.0.0:8443" are for
    agents that speak Streamable HTTP, at /mcp/NAME; they need `tokens` or `oidc`. Default: the Unix socket.
    """
    socket_mode: Annotated[str, Meta(pattern=r"^0?[0-7]{3}\Z")] = "0660"
    """Who may connect to the Unix sockets, as for chmod: with "0660" the accounts of the socket's group. Who a user is
    is asked of the kernel in any case.
    """
    socket_group: _Text | None = None
    """The group of the Unix sockets. Default: the group of the gateway's account."""
    admin_socket: Annotated[str, Meta(pattern=r"^/.")] | None = None
    """The path of the Unix socket for `hookproxy sessions`, `users`, `reload`, and for consoles and the audit with
    --gateway. The kernel says who connects there, and `[roles]` what they may do. Default: beside the first Unix socket
    of `listen`, such as /run/hookproxy/mcp-admin.sock; without one, mcp-admin.sock in $RUNTIME_DIRECTORY, or else
    in the folder `admin` of the state folder, which only the gateway's account and root can enter.
    """
    hooks_user: _Text | None = None
    """The account that hooks run as, with its groups and its HOME. The gateway must run as root for it, and the account
    must not be one of the gateway's users. Hooks of the type python, which run inside of the gateway, are not possible
    then. Default: the gateway's own account.
    """
    sandbox: Literal["auto", "bubblewrap", "landlock"] = "auto"
    """What keeps the processes of servers apart from the gateway: bubblewrap, or else Landlock. Default: the first of
    these that works here. If none does, a gateway that starts servers in a sandbox does not start.
    """
    per_user: PerUser = field(default_factory=PerUser)
    """How many sessions one user may have, and how much memory."""
    total: Total = field(default_factory=Total)
    """The same for all users together."""
    queue_seconds: Annotated[float, Meta(ge=0, le=600)] = 10.0
    """How long a session may wait for room where a user, a server or the gateway has as many sessions, or uses as much
    memory, as it may. Then it is refused, over HTTP with the status 429, or 503 where all users together have too much.
    A session over HTTP that its user has not used for 30 seconds makes room for the user's next one.
    """
    max_sessions_per_user: Annotated[int, Meta(ge=1)] | None = None
    """The older name of `sessions` in `[gateway.per_user]`."""
    max_requests: Annotated[int, Meta(ge=1)] = 256
    """How many requests of one user over HTTP may be in flight, at all servers together. A further one is refused with
    the status 429. Over the Unix socket, too, as many calls may wait for hooks, for a person, or for a response that
    hooks see: a further call gets an error that says to try again.
    """
    max_request_bytes: Annotated[int, Meta(ge=MIN_MESSAGE_BYTES)] = 8 * 1024 * 1024
    """How many bytes one message of an agent may have: over HTTP a longer one is refused with the status 413, over the
    Unix socket with an error. Arguments of 8 MiB hold a long file; each takes several times that while it is judged. A
    longer one than `max_message_bytes` is never taken.
    """
    max_unread_bytes: Annotated[int, Meta(ge=1024 * 1024)] = 64 * 1024 * 1024
    """How many bytes of responses may wait for the agents of one user that do not read them, over HTTP and at all
    servers together. Beyond it, further requests are refused with the status 429, and long responses are withheld: the
    agent gets an error in their place. One response may always wait alone.
    """
    instance: Annotated[str, Meta(pattern=INSTANCE_NAME)] = "gateway"
    """The name of this gateway among several, at the head of session ids: balancers find the gateway by it. So that all
    gateways can have the same file, `hookproxy serve --instance NAME` sets it, too.
    """
    seal_keys: list[_Text] = field(default_factory=list)
    """Files with the keys of approvals: every gateway with the same keys continues what another one has asked. The
    first key seals, all of them open. Each has at least 32 random bytes: `openssl rand -base64 -out FILE 32`. A
    relative path starts from the folder of gateway.toml; "$CREDENTIALS_DIRECTORY/NAME" is one of systemd's credentials.
    SIGHUP reads them again. Default: a key that only this process has.
    """
    audit_export: AuditExport | None = None
    """A collector that gets the audit, too. Default: it stays in its files."""
    store: StoreTable | None = None
    """What several gateways share. Default: each gateway counts and remembers alone."""
    log: Literal["text", "json"] = "text"
    """How the log on standard error is written: as lines for people, or as JSON objects, one in each line."""
    probes: Annotated[str, Meta(pattern=r"^http://")] | None = None
    """An address of its own for /healthz, /readyz and /metrics, such as "http://127.0.0.1:9090". It may be any address:
    nothing there is about single users. Default: they are at the addresses for HTTP, and only for this machine; with
    `trusted_proxies`, they are nowhere.
    """
    probe_hosts: list[_Text] = field(default_factory=list)
    """Names by which `probes` may be asked, without a port, such as "gateway.monitoring.svc". Always allowed are
    addresses, "localhost", the machine's name, and the names in `probes` and `public_url`. A request for another name
    is refused, because a web page could have sent it.
    """
    public_url: _Text | None = None
    """The address at which agents reach the HTTP listeners, without /mcp/NAME, if it is another one: that of a reverse
    proxy in front, for example "https://mcp.example.com".
    """
    tokens: _Text | None = None
    """The file with the tokens of users, which `hookproxy token` writes. A relative path starts from the folder of
    gateway.toml.
    """
    oidc: Oidc | None = None
    """An issuer whose tokens are accepted."""
    tls: Tls | None = None
    """The certificate of `https://` listeners."""
    trusted_proxies: list[_Text] = field(default_factory=list)
    """Addresses or networks of reverse proxies that encrypt: from these, `http://` listeners that are not on loopback
    accept connections, and from nobody else.
    """
    drain_seconds: Annotated[float, Meta(ge=0, le=600)] = 30.0
    """How long calls in flight may take after SIGTERM, before they get an error. New sessions are refused meanwhile."""
    drain_delay_seconds: Annotated[float, Meta(ge=0, le=600)] = 0.0
    """How long after SIGTERM everything goes on as before, while /readyz says 503: until balancers that ask it send
    nothing more. Others find out because no connection is accepted any more, and go to another gateway.
    """


class ServerTable(ConfigFile, frozen=True):
    """One MCP server behind the gateway. All keys of hookproxy.toml may stand here too, for this server alone."""

    permissions: GatewayPermissions = field(default_factory=GatewayPermissions)
    """Permission rules for this server, beside those for all servers."""
    limits: list[GatewayLimit] = field(default_factory=list)  # type: ignore[assignment]  # it is only read
    """Limits for this server, beside those for all servers."""
    command: Annotated[list[_Text], Meta(min_length=1)] | None = None
    """The server's command line: the program and its arguments. It is started without a shell."""
    url: _Text | None = None
    """The server's address, in place of a command."""
    headers: dict[_Text, str] = field(default_factory=dict)
    """Headers of each request to `url`. `%{NAME}` stands for the credential of that name."""
    ca: _Text | None = None
    """For `url`: trust the certificates in this file instead of the system's. A relative path starts from the folder of
    gateway.toml, here and in `cert` and `key`."""
    cert: _Text | None = None
    """For `url`: the certificate with which the server recognises the gateway."""
    key: _Text | None = None
    """For `url`: the key of `cert`, if it is in another file."""
    allow_http: bool = False
    """For `url`: true allows http:// to other machines, where everybody may read along."""
    env: dict[_Text, str] = field(default_factory=dict)
    """Environment variables of the server, beside PATH, HOME, USER, LOGNAME and LANG. It gets no others."""
    credentials: dict[_Text, Annotated[str, Meta(pattern=r"^file:.")]] = field(default_factory=dict)
    """Secrets: each one is read from a file when the server is started, as "file:/etc/hookproxy/token" or
    "file:$CREDENTIALS_DIRECTORY/token", and becomes an environment variable of the server, or a part of `headers`.
    Hooks do not get them, and the audit log does not contain them.
    """
    cwd: _Text | None = None
    """The folder in which the server runs, and hooks with it. The server may write it. Default: a folder of its own for
    each server and user below the gateway's state folder, and for hooks the folder of gateway.toml.
    """
    sandbox: Literal["off"] | SandboxTable = field(default_factory=SandboxTable)
    """What the server's process may reach. "off" starts it without a sandbox: then it can do whatever the gateway's
    account can, such as read the gateway's secrets and change its audit.
    """
    user: _Text | None = None
    """The account that the server runs as. The gateway must run as root for it. Default: the gateway's own."""
    share: Literal["session", "user", "all"] = "session"
    """Who shares a process of this server: "session" starts one for each session, "user" one for each user, "all" one
    for everybody.
    """
    roots: Roots | list[_Text] | None = None  # type: ignore[assignment]  # a list is how it was first
    """Which folders the server learns of when it asks its agent for roots. A list is short for `give`, and ["*"] for
    `pass = true`. Default: none, because the server would work in any folder that an agent names, with the rights of
    the gateway; for `from_caller`, what the agent says.
    """
    idle_seconds: Annotated[float, Meta(ge=1)] = 900.0
    """How long a shared process without a session is kept, and how long a session over HTTP may be unused."""
    max_sessions: Annotated[int, Meta(ge=1)] = 1024
    """How many sessions may be open at a time. A further one waits, and is refused after `gateway.queue_seconds`."""
    users: list[_Text] | None = field(default=None, name="allow")
    """Who may use the server: names of users, and names of groups with `@` in front. Default: everybody who may connect
    to the gateway.
    """
    from_caller: bool = False
    """true: the server runs as the user, started by `hookproxy connect NAME -- COMMAND`. It can act on the user's
    files, and must not get any secret.
    """


class PolicyServer(ConfigFile, frozen=True):
    """What a signed policy says about one server of a gateway, beside what it says about all."""

    permissions: GatewayPermissions = field(default_factory=GatewayPermissions)
    """Permission rules for this server."""


class PolicyFile(ConfigFile, frozen=True):
    """The whole of a signed policy's policy.toml: the keys of hookproxy.toml, and what only gateways use."""

    permissions: GatewayPermissions = field(default_factory=GatewayPermissions)
    """Permission rules: for all, and at gateways for some people."""
    servers: dict[Annotated[str, Meta(pattern=SERVER_NAME)], PolicyServer] = field(default_factory=dict)
    """What holds for single servers of gateways: one `[servers.NAME]` table for each."""


class GatewayFile(ConfigFile, frozen=True):
    """The whole of gateway.toml: the keys of hookproxy.toml, for all servers, and the tables below."""

    permissions: GatewayPermissions = field(default_factory=GatewayPermissions)
    """Permission rules for all servers. They are applied to the final arguments, after every rewrite."""
    limits: list[GatewayLimit] = field(default_factory=list)  # type: ignore[assignment]  # it is only read
    """Limits for all servers."""
    gateway: GatewayTable = field(default_factory=GatewayTable)
    """Where the gateway listens, and its limits."""
    roles: Roles = field(default_factory=Roles)
    """Who may approve calls, read the audit, and operate the gateway."""
    servers: dict[Annotated[str, Meta(pattern=SERVER_NAME)], ServerTable] = field(default_factory=dict)
    """The servers, each by its name: one `[servers.NAME]` table for each."""
