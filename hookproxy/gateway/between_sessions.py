"""What sessions share: the calls that limits count, approvals that are continued, and what one user has in flight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from msgspec.structs import replace

from ..model.limits import Limit
from ..policy.rate_limits import SharedWindows, Window
from ..policy.shared_state import Shared
from ..protocol.request_state import SharedStates, UsedHere
from ..session.running_calls import OpenCalls
from ..transports.user_load import UserLoad
from .session import GatewaySession, SessionPolicy
from .store import Store, shared_of

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig
    from ..model.principal import Principal
    from ..protocol.request_state import RequestStates, SealKey, UsedTexts
    from ..session.proxy import Report
    from .audit_health import AuditHealth


class BetweenSessions:
    """Shared by all sessions of this gateway, and with a store by those of others."""

    def __init__(
        self, config: Callable[[], GatewayConfig], store: Store | None, health: AuditHealth, report: Report
    ) -> None:
        """`config` returns the configuration in force."""
        self._config = config
        self._store = store
        self._health = health
        self._report = report
        self.seal_keys: Sequence[SealKey] = config().seal_keys
        """Those in force: the first one seals, all of them open. None: each gateway stands alone."""
        self._open_calls = WeakValueDictionary[str, OpenCalls]()  # by user; the user's sessions keep them
        self._loads = WeakValueDictionary[str, UserLoad]()  # over Unix sockets, as above
        self._reports_of_tools: dict[str, None] = {}
        self._windows = SharedWindows()
        self._used: UsedTexts = store or UsedHere()

    def change_policy(self, config: GatewayConfig) -> None:
        """Another configuration is in force. Without keys in it, open sessions keep those that they had."""
        self.seal_keys = config.seal_keys or self.seal_keys

    def policy_of(self, session: GatewaySession) -> SessionPolicy:
        """What holds for a session beside its server's configuration."""
        config, server, identity = self._config(), session.server.name, session.identity
        if self._store is None:
            shared = Shared(window_of=partial(self.window, server, identity.principal.id))
        else:
            seconds = session.server.table.idle_seconds
            shared = shared_of(self._store, server, identity, seconds, config.policy)
            if identity.is_stateless and session.server.loaded.settings.has_flow:
                from .shared_labels import StoreLabels  # only for such configurations

                shared = replace(shared, labels=StoreLabels(self._store, server, identity.principal.id, seconds))
        return SessionPolicy(config.version, shared, self._reports_of_tools, self._health)

    def request_states(self, session: GatewaySession) -> RequestStates | None:
        """What makes the request states of a session; None: they are of this process alone."""
        if not self.seal_keys:
            return None
        owner = session.identity.principal.id, session.server.name
        return SharedStates(lambda: self.seal_keys, owner, self._used)

    def window(self, server: str, user: str, limit: Limit) -> Window:
        """The calls that this limit has counted: of one session, or of all those of one or all users at this server."""
        if limit.of_session:
            return Window(limit)
        return self._windows.of((server, "" if limit.together else user), limit)

    def open_calls_of(self, user: Principal) -> OpenCalls:
        """The judged calls of a user that are in flight."""
        return self._open_calls.setdefault(user.id, OpenCalls(lambda: self._config().gateway.max_requests))

    def load_of(self, user: Principal) -> UserLoad:
        """What waits for the agents of a user."""
        if (load := self._loads.get(user.id)) is None:
            name = user.name
            load = UserLoad(
                lambda: self._config().gateway.max_unread_bytes, lambda text: self._report(f"{name}: {text}")
            )
            self._loads[user.id] = load
        return load
