"""Lets asyncio and anyio be imported without TLS, of which OpenSSL alone takes 4.5 MB and 10 ms of each start.

Both import `ssl` whatever is done with them, and most runs reach no server over https. So stand-ins take the place of
`ssl` and of asyncio's module about TLS. Whoever uses anything of them, such as `runners/http`, gets the real modules at
that moment: a stand-in imports its module, and has all that the module has from then on.
"""

import sys

_MODULES = ("ssl", "asyncio.sslproto")
_ANNOTATES = "anyio.streams.tls"
"""It takes `SSLContext` from `ssl` when it is imported, for annotations only."""


class _StandIn(type(sys)):  # type: ignore[misc]  # the type of modules, without importing `types`
    """A module that is imported when something of it is used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system asks each module for such names
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name == "SSLContext" and sys._getframe(1).f_globals.get("__name__") == _ANNOTATES:
            return object
        return getattr(_imported(self), name)


def _imported(stand_in: _StandIn) -> object:
    """Import the module of a stand-in, which then has all that the module has."""
    name = str(stand_in.__name__)
    if sys.modules.get(name) is stand_in:
        del sys.modules[name]
    __import__(name)
    module = sys.modules[name]
    for own_name, value in vars(module).items():
        setattr(stand_in, own_name, value)
    if name == "ssl" and _ANNOTATES in sys.modules:
        setattr(sys.modules[_ANNOTATES], "SSLContext", module.SSLContext)  # noqa: B010 - checkers do not know it
    return module


def postpone() -> None:
    """Put the stand-ins in place, unless asyncio or `ssl` is imported already."""
    if "asyncio" not in sys.modules and "ssl" not in sys.modules:
        sys.modules.update({name: _StandIn(name) for name in _MODULES})
