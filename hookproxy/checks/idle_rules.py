"""Rules that decide nothing: a stronger rule comes first, or they name a server or a tool that is not there.

A misspelled rule is silent otherwise (law 3). What only may be idle is not named: no list of tools is complete.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..config.toml_repairs import quoted
from ..dialects.shared.hook_file import suggestion
from ..hooks import idle
from ..hooks.select import TOOL_EVENTS
from ..model.aliases import FAMILIAR_NAMES
from ..model.settings import Settings
from ..policy import matchers, methods
from ..policy.rule_repairs import argument_repair, glob_meant, unclear_argument

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer
    from .report import CheckedServer, ConfiguredHook

_OF_SERVER: Final = re.compile(r"mcp__([^*?\[\]]+?)__")
_SIMILAR: Final = 0.8  # of two names: `git_psuh` and `git_push`, but not `git_pull`
_OF_ONE_SERVER: Final = ": servers."
"""In the place of a rule for one server of a gateway: what it shadows may decide at other servers."""
_SHORT_ESCAPES: Final = frozenset("\b\t\n\f\r")
"""What TOML makes of a backslash and a letter."""
_VERBS: Final = {"deny": "refuses", "ask": "asks about"}


def shadowed_rules(settings: Settings) -> Iterator[str]:
    """A sentence for each rule that never decides, because a stronger one is about every call that it is about.

    It begins with the rule's place.
    """
    strengths = (("deny", settings.deny), ("ask", settings.ask), ("allow", settings.allow))
    for at, (kind, texts) in enumerate(strengths):
        for number, text in enumerate(texts):
            place = settings.rule_places.get(f"{kind} {text}", f"permissions.{kind}[{number}]")
            if text in texts[:number]:
                yield f"{place}: {text!r} stands twice (remove one)"
                continue
            stronger = ((other, rule) for other, rules in strengths[:at] for rule in rules)
            for other, rule in stronger:
                stands = settings.rule_places.get(f"{other} {rule}", other)
                if _covers(rule, text) and not (_OF_ONE_SERVER in stands and _OF_ONE_SERVER not in place):
                    effect = f"{other} {rule!r} of {stands.partition(': ')[0]} {_VERBS[other]} all that it is about"
                    allows = (kind, other, rule) == ("allow", "deny", "*")
                    repair = "remove one of both" + ', or write default = "deny" in the place of "*"' * allows
                    yield f"{place}: {text!r} has no effect: {effect} ({repair})"
                    break


def _covers(rule: str, other: str) -> bool:
    """Whether a rule is about every call that the other one is about."""
    stronger, weaker = matchers.rule(rule), matchers.rule(other)
    if stronger.specifier:
        return stronger.text == weaker.text
    return stronger.may_name_tool(weaker.text.partition("(")[0])


def rules_of_no_method(settings: Settings) -> Iterator[str]:
    """A sentence for each rule or limit that names a method which is not judged. It begins with the rule's place."""
    for place, kind, text in _rules_and_limits(settings):
        if why := _no_method(matchers.rule(text).text.partition("(")[0]):
            yield f"{place}: {kind} {text!r} is about no method that can be judged ({why})"


def rules_like_expressions(settings: Settings) -> Iterator[str]:
    """A sentence for each rule, limit or glob over tools that looks like a regular expression, which it is not.

    It begins with the rule's place. A dot is a dot: `write_.*` is about no `write_file`.
    """
    for place, kind, text in _globs(settings):
        name = idle.name_of(text)
        if glob := glob_meant(name):
            what = f"is read as a glob, in which a dot is only a dot: write {text.replace(name, glob, 1)!r}"
            yield f"{place}: {kind} {text!r} {what}"


def arguments_that_match_nothing(settings: Settings) -> Iterator[str]:
    """A sentence for each rule whose words about arguments can match nothing as they are written.

    It begins with the rule's place.
    """
    for place, kind, text in _rules(settings):
        if why := idle.why_unmatched(text):
            yield f"{place}: {kind} {text!r} {why}"


def if_that_matches_nothing(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about an `if` whose words about arguments can match nothing as they are written."""
    text = hook.spec.only_if
    if text and (repair := argument_repair(text)):
        yield f"if {text!r} matches no arguments as it is meant: {repair}"


def unclear_rules(settings: Settings) -> Iterator[str]:
    """A sentence for each rule that is about less than many think who write it so. It begins with its place.

    Reads which folders there are: a rule about a folder is not one about what is in it.
    """
    for place, kind, text in _rules(settings):
        name, _, argument = text.strip().removesuffix(")").partition("(")
        others = {f"{name}({argument} *)", f"{name}({argument}:*)"}
        if (why := unclear_argument(text)) and others.isdisjoint(getattr(settings, kind)):
            yield f"{place}: {kind} {text!r}: {why}"
        elif argument.startswith(("/", "~/")) and os.path.isdir(os.path.expanduser(argument)):
            yield f"{place}: {kind} {text!r} is about the folder: {f'{name}({argument}/**)'!r} is about its files"


def default_that_refuses_all(settings: Settings, *, has_hooks: bool) -> Iterator[str]:
    """A sentence about `default = "deny"` where neither a rule nor a hook lets anything pass."""
    passes = settings.allow or settings.ask or settings.agent_rules or has_hooks
    if settings.default_permission == "deny" and not passes:
        repair = 'say what may pass, such as allow = ["read_*"], or hookproxy init allow-list -- COMMAND'
        yield f'permissions.default: "deny", and no rule and no hook allows anything: every call is refused ({repair})'


def rules_with_escapes(settings: Settings) -> Iterator[str]:
    """A sentence for each rule or limit with a control character, which nobody has typed: `"C:\\temp"` has a tab."""
    for place, kind, text in _rules_and_limits(settings):
        if set(text) & _SHORT_ESCAPES:
            repair = "a backslash within double quotes begins an escape: write it in single quotes"
            yield f"{place}: {kind} {text!r} has a control character ({repair})"


def misspelt_rules(settings: Settings, server: CheckedServer | None) -> Iterator[str]:
    """A sentence for each rule whose name is probably misspelt, where no list of tools says it for certain."""
    if server is not None and server.coverage is not None:
        return
    from ..policy.presets import PRESETS

    own = {name for alias in settings.aliases for name in (alias.tool, *alias.names)}
    rules = [*_rules_and_limits(settings)]
    for text, near in idle.misspelt(dict.fromkeys(text for _, _, text in rules), own):
        if any(True for _ in PRESETS.naming(idle.name_of(text))):
            continue
        yield from (
            f"{place}: {kind} {text!r} may be misspelt ({near})" for place, kind, other in rules if other == text
        )


def misspelt_aliases(settings: Settings) -> Iterator[str]:
    """A sentence for each alias that is a familiar name but for its case, by which no hook or rule knows the tool."""
    familiar = {name.casefold(): name for name in FAMILIAR_NAMES}
    for alias in settings.aliases:
        meant = familiar.get(alias.name.casefold(), alias.name)
        if not alias.preset and meant != alias.name:
            yield f"tools.{alias.tool}.as: hooks for {meant} do not see {alias.name!r}: write as = {quoted(meant)}"


def misspelt_matcher(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence for each name in a matcher or `if` of hookproxy.toml that is nobody's, and very like a familiar one.

    Both heed case, as rules do not: a hook for `bash` sees no tool that is known as `Bash`.
    """
    if not hook.group.match_all_names or hook.spec.event not in TOOL_EVENTS:
        return
    from ..policy.presets import PRESETS

    own = {name for alias in hook.settings.aliases for name in (alias.tool, *alias.names)}
    spec = hook.spec
    named = [("matcher", name) for name in matchers.plain_names(spec.matcher)]
    if spec.only_if:
        named.append(("if", idle.name_of(spec.only_if)))
    for key, name in named:
        if name in own or "/" in name or name.startswith("mcp__") or any(True for _ in PRESETS.naming(name)):
            continue
        if name not in FAMILIAR_NAMES and (near := idle.near_name(name, "", ())):
            heeding = "matchers heed" if key == "matcher" else "an `if` heeds"
            yield f"{key} {name!r} may be misspelt ({near} {heeding} case)"


def _rules(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The place, the kind and the text of each rule."""
    for kind in ("deny", "ask", "allow"):
        for text in getattr(settings, kind):
            yield settings.rule_places.get(f"{kind} {text}", f"permissions.{kind}"), kind, text


def _globs(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """As `_rules_and_limits`, with the globs over names of tools in other tables."""
    yield from _rules_and_limits(settings)
    for kind, entries in (("source", settings.flow_sources), ("sink", settings.flow_sinks)):
        yield from ((entry.place, kind, tool) for entry in entries for tool in entry.match.tools)
    if (secrets := settings.secrets) is not None:
        yield from (("[[secrets.restore]]", "tool", table.tool) for table in secrets.restore)
        yield from (("[[secrets.off]]", "tool", table.tool) for table in secrets.off)


def _rules_and_limits(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The place, the kind and the text of each rule and limit."""
    yield from _rules(settings)
    yield from ((limit.place or limit.by, "limit", limit.tool) for limit in settings.limits)


def matcher_of_no_method(hook: ConfiguredHook) -> Iterator[str]:
    """A sentence about each name in a matcher that is a method which is not judged."""
    for name in hook.spec.matcher.split("|"):
        if why := _no_method(name):
            yield f"matcher {name!r} is about no method that can be judged ({why})"


def _no_method(name: str) -> str:
    """What to write instead of a method that is not judged; empty: the name is judged, or that of a tool."""
    if "/" not in name or methods.glob_names_method(name):
        return ""
    if name == "subscriptions/listen":
        return "write resources/subscribe, as which it is known"
    if name in methods.UNSEEN:
        return "a call is known by the name of its tool" if name == methods.TOOLS_CALL else "it always passes"
    return suggestion(name, methods.JUDGED, _SIMILAR)


def rules_of_nobody(servers: Mapping[str, GatewayServer]) -> Iterator[str]:
    """A sentence for each rule that names a server that there is not, or a tool that is called a little otherwise.

    It begins with the rule's place in the file.
    """
    tools = {tool: name for name, server in servers.items() for tool in known_tools(server.command)}
    seen = set[str]()
    for server in servers.values():
        for kind, text, place in _rules_of_server(server):
            if place in seen:
                continue
            seen.add(place)
            name = matchers.rule(text).text.partition("(")[0]
            if (named := _OF_SERVER.match(name)) and named[1] not in servers:
                near = suggestion(named[1], servers) or f"there is {', '.join(servers)}"
                yield f"{place}: {kind} {text!r} is about a server {named[1]}, and there is none ({near})"
            elif name not in tools and (near := suggestion(name, tools, _SIMILAR)):
                yield f"{place}: {kind} {text!r} is about no tool that is known here ({near})"


def _rules_of_server(server: GatewayServer) -> Iterator[tuple[str, str, str]]:
    """The kind, the text and the place of each rule."""
    settings = server.loaded.settings
    tables: list[tuple[Mapping[str, Sequence[str]], Mapping[str, str]]] = [
        ({kind: getattr(settings, kind) for kind in ("deny", "ask", "allow")}, settings.rule_places)
    ]
    tables += [
        ({kind: getattr(rules, kind) for kind in ("deny", "ask", "allow")}, places)
        for rules, places in server.rules_for_users
    ]
    for table, places in tables:
        for kind, texts in table.items():
            for text in texts:
                if place := places.get(f"{kind} {text}"):
                    yield kind, text, place


def known_tools(command: Sequence[str]) -> list[str]:
    """The tools of the preset for a server with this command line, which may not be all of its tools."""
    if not command:
        return []
    from ..policy.presets import PRESETS, preset_for

    name = preset_for(command, "")
    return [] if not name else [*(alias.tool for alias in PRESETS[name].tools), *PRESETS[name].others]
