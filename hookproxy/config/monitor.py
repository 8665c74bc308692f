"""Takes apart what decides and what is only watched: `mode = "monitor"`, and the second file of `[monitor]`.

While layers are read and merged, hooks, limits and rules of agents carry a mark, so that whatever holds for hooks
(trust, managed_only, digests) holds for watched ones, too. At the end they leave the configuration, and are a policy of
their own: so nothing that decides can meet them. Pure, but for reading the second file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from ..dialects.dialect import Group
from ..model.errors import ConfigError
from ..model.settings import ROOTS_OF_AGENT, Settings
from ..trust.sources import Layer, Watched
from .managed_merge import merge, merged_rules


def with_watched_rules(layer: Layer, names: Collection[str]) -> Layer:
    """The layer of a file whose table `[permissions]` is only watched; `names` are the settings that it makes."""
    defaults = Settings()
    rules = replace(defaults, **{name: getattr(layer.settings, name) for name in names})
    enforced = replace(layer.settings, **{name: getattr(defaults, name) for name in names}, watched_rules=rules)
    set_by = {name: place for name, place in layer.set_by.items() if name not in names}
    return replace(layer, settings=enforced, set_by=set_by)


def check_second(second: Layer, layer: Layer, place: str) -> None:
    """Raise ConfigError if `second` cannot be what `layer` names at this place: the file of `[monitor]`."""
    path = second.source
    if has_watched_parts(second):
        raise ConfigError(place, f'{path} has a mode = "monitor" itself', "remove it there: all of the file is watched")
    if has_watched_parts(layer):
        hint = 'remove mode = "monitor" here, or move what is to be watched to that file'
        raise ConfigError(place, f'names {path}, and this file has a mode = "monitor" as well', hint)
    uses_packs = second.packs is not None and bool(second.packs.use)
    for key, is_set in (
        ("managed_only", second.managed_only),
        ("[policy]", second.policy is not None),
        ("[packs] use", uses_packs),
    ):
        if is_set:
            raise ConfigError(path, f"sets {key}, which cannot be only watched", f"remove {key}")


def has_watched_parts(layer: Layer) -> bool:
    """True if something in the layer has a mode = "monitor"."""
    return _has_parts(layer.settings) or any(group.watched for group in layer.groups)


def _has_parts(settings: Settings | None) -> bool:
    if settings is None:
        return False
    marks = [limit.watched for limit in settings.limits] + [rule.watched for rule in settings.agent_rules]
    marks += [sink.watched for sink in settings.flow_sinks]
    return settings.watched_rules is not None or any(marks)


def divided(
    settings: Settings, groups: Sequence[Group], user: Layer, managed: Sequence[Layer], names: Collection[str]
) -> tuple[Settings, tuple[Group, ...], Watched | None]:
    """What decides of a merged configuration, and the policy that is only watched; None: nothing is.

    `user` and `managed` are the layers, whose second files count in place of their marked parts; `names` as in
    `with_watched_rules`.
    """
    parts = [group for group in groups if group.watched]
    enforced_groups = tuple(group for group in groups if not group.watched)
    enforced = _enforced(settings)
    seconds = [layer.next for layer in (user, *managed) if layer.next is not None]
    if not (parts or seconds or _has_parts(settings) or _has_parts(settings.managed)):
        return settings, enforced_groups, None
    own, own_groups = _watched(settings, names), [group for group in parts if not group.managed]
    if user.next is not None:
        own, own_groups = _as_user(user.next, managed)
    of_managed = None if settings.managed is None else _watched(settings.managed, names)
    managed_groups = [group for group in parts if group.managed]
    if any(layer.next is not None for layer in managed):
        of_managed, managed_groups = _as_managed([layer.next for layer in managed if layer.next is not None])
    if not (
        managed_groups
        or (of_managed is not None and (of_managed.has_rules or of_managed.limits or of_managed.flow_sinks))
    ):
        of_managed = None
    watched = Watched(
        # what pins servers or hides tools and folders is not a decision about a call, and is enforced or not at all
        replace(own, managed=of_managed, lock=None, roots=ROOTS_OF_AGENT, shown_tools=enforced.shown_tools),
        tuple(group.consulting_nobody for group in (*own_groups, *managed_groups)),
        tuple(second.source for second in seconds),
        tuple(note for second in seconds for note in second.notes),
    )
    return enforced, enforced_groups, watched


def _enforced(settings: Settings) -> Settings:
    """The settings without what is only watched in them, and in those for managed rules."""
    return replace(
        settings,
        limits=tuple(limit for limit in settings.limits if not limit.watched),
        agent_rules=tuple(rule for rule in settings.agent_rules if not rule.watched),
        flow_sinks=tuple(sink for sink in settings.flow_sinks if not sink.watched),
        watched_rules=None,
        managed=None if settings.managed is None else _enforced(settings.managed),
    )


def _watched(settings: Settings, names: Collection[str]) -> Settings:
    """The same settings with only the rules and limits that are watched."""
    rules = settings.watched_rules or Settings()
    return replace(
        settings,
        **{name: getattr(rules, name) for name in names},
        limits=tuple(limit for limit in settings.limits if limit.watched),
        agent_rules=tuple(rule for rule in settings.agent_rules if rule.watched),
        flow_sinks=tuple(sink for sink in settings.flow_sinks if sink.watched),
        watched_rules=None,
        pack_rules=(),  # what is only watched has no packs
        managed=None,
    )


def _as_user(second: Layer, managed: Sequence[Layer]) -> tuple[Settings, list[Group]]:
    """The settings and hooks of a second file of the user, as far as the administrator's files let them run."""
    settings, groups = second.settings, second.groups
    if managed:
        settings, groups, _notes, _summary = merge(second, managed)
    return _counting_for_themselves(settings), [group for group in groups if not group.managed]


def _as_managed(seconds: Sequence[Layer]) -> tuple[Settings, list[Group]]:
    """The same for second files of the administrator's."""
    settings, groups, _notes, _summary = merge(Layer(""), seconds)
    assert settings.managed is not None
    return _counting_for_themselves(settings.managed), [group for group in groups if group.managed]


def _counting_for_themselves(settings: Settings) -> Settings:
    return replace(settings, limits=tuple(replace(limit, watched=True) for limit in settings.limits), managed=None)


def enforced(settings: Settings, groups: Sequence[Group], watched: Watched) -> tuple[Settings, tuple[Group, ...]]:
    """What would judge calls if the watched policy were in force, beside or in place of these settings and groups."""
    own = watched.settings
    managed_groups = [group for group in (*groups, *watched.groups) if group.managed]
    user_groups = [group for group in watched.groups if not group.managed]
    if not watched.replaces:
        own = _added(settings, own)
        user_groups = [group for group in groups if not group.managed] + user_groups
    managed = settings.managed
    if own.managed is not None or watched.settings.managed is not None:
        managed = _added(settings.managed or Settings(), watched.settings.managed or Settings())
    return replace(own, managed=managed), (*user_groups, *managed_groups)


def _added(first: Settings, second: Settings) -> Settings:
    """The first settings with the rules and limits of the second ones as well."""
    rules = merged_rules(first, second) or first
    names = ("deny", "ask", "allow", "default_permission", "rule_places")
    return replace(
        first,
        **{name: getattr(rules, name) for name in names},
        agent_rules=first.agent_rules + second.agent_rules,
        limits=first.limits + second.limits,
        flow_sources=tuple(dict.fromkeys(first.flow_sources + second.flow_sources)),
        flow_sinks=first.flow_sinks + second.flow_sinks,
    )
