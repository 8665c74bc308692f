"""What is only watched is taken out of what decides, and nothing of it weakens what is managed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from hookproxy.config.load import KEYS_OF_SETTINGS, Loaded, failing_closed, load, read_layer
from hookproxy.config.managed_merge import merge
from hookproxy.config.monitor import divided, with_watched_rules
from hookproxy.config.policy_digest import parts_of
from hookproxy.hooks.watched import amounts, parts
from hookproxy.model.errors import ConfigError
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import Settings
from hookproxy.trust.check_unchanged import dependencies
from hookproxy.trust.sources import FileContext, Layer, Watched
from tests.support.proxy_rig import group, hook

RULES = [name for name, key in KEYS_OF_SETTINGS.items() if key.startswith("permissions.")] + ["rule_places"]


def loaded(folder: Path, text: str) -> Loaded:
    (folder / "hookproxy.toml").write_text(text, "utf-8")
    environ = {**os.environ, "XDG_STATE_HOME": "/state"}
    return load(str(folder / "hookproxy.toml"), (), None, environ, str(folder))


def watched(folder: Path, text: str) -> Watched:
    found = loaded(folder, text).watched
    assert found is not None
    return found


def commands(of: Loaded | Watched) -> list[str]:
    return [spec.label for each in of.groups for spec in each.hooks]


def test_without_a_mode_nothing_is_only_watched(tmp_path: Path) -> None:
    assert loaded(tmp_path, '[permissions]\ndeny = ["x"]\nmode = "enforce"').watched is None


def test_a_hook_leaves_its_file_alone(tmp_path: Path) -> None:
    text = '[[hooks.PreToolUse]]\ncommand = "{}"\nmode = "{}"\n'
    whole = loaded(tmp_path, text.format("a", "monitor") + text.format("b", "enforce"))
    assert commands(whole) == ["b"]
    assert whole.watched is not None
    assert commands(whole.watched) == ["a"]
    assert whole.watched.groups[0].hooks[0].source.endswith("hooks.PreToolUse[0]")


def test_the_whole_table_of_rules_is_watched(tmp_path: Path) -> None:
    whole = loaded(tmp_path, '[permissions]\nmode = "monitor"\ndefault = "deny"\nallow = ["a"]\nunreadable = "deny"')
    assert [getattr(whole.settings, name) for name in RULES] == [getattr(Settings(), name) for name in RULES]
    assert "allow" not in whole.set_by
    assert whole.watched is not None
    rules = whole.watched.settings
    assert (rules.allow, rules.default_permission, rules.unreadable) == (("a",), "deny", "deny")
    assert rules.rule_places["allow a"].endswith("permissions.allow[0]")


def test_a_limit_is_watched_beside_one_in_force(tmp_path: Path) -> None:
    text = '[[limits]]\ntool = "{}"\ncalls = 1\nper = "hour"\n'
    whole = loaded(tmp_path, text.format("a") + 'mode = "monitor"\n' + text.format("b"))
    assert [limit.tool for limit in whole.settings.limits] == ["b"]
    assert whole.watched is not None
    assert [(limit.tool, limit.by) for limit in whole.watched.settings.limits] == [("a", "limits[0]")]


def test_a_sink_is_watched_beside_one_in_force_with_the_same_sources(tmp_path: Path) -> None:
    text = '[[flow.{}]]\ntool = "{}"\nlabels = ["x"]\n'
    sinks = text.format("sinks", "a") + 'mode = "monitor"\n' + text.format("sinks", "b")
    whole = loaded(tmp_path, text.format("sources", "s") + sinks)
    assert whole.watched is not None
    assert [sink.match.tools for sink in whole.settings.flow_sinks] == [("b",)]
    assert [sink.match.tools for sink in whole.watched.settings.flow_sinks] == [("a",)]
    assert whole.settings.flow_sources == whole.watched.settings.flow_sources != ()


def test_a_hook_file_is_watched_with_its_rules(tmp_path: Path) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "guard"}]}]}
    document = {"hooks": hooks, "permissions": {"deny": ["Bash(rm:*)"]}}
    (tmp_path / "settings.json").write_text(json.dumps(document), "utf-8")
    use = '[[use]]\nfile = "settings.json"\ndialect = "claude"\npermissions = true\nmode = "monitor"\n'
    whole = loaded(tmp_path, use)
    assert not whole.groups
    assert not whole.settings.agent_rules
    assert whole.watched is not None
    assert commands(whole.watched) == ["guard"]
    assert amounts(whole.watched) == "1 hook and 1 rule"


def test_a_second_file_is_watched_in_place_of_this_one(tmp_path: Path) -> None:
    (tmp_path / "next.toml").write_text('[permissions]\ndeny = ["b"]\n[audit]\nenabled = false\n', "utf-8")
    whole = loaded(tmp_path, '[permissions]\ndeny = ["a"]\n[monitor]\nfile = "next.toml"\n')
    assert whole.settings.deny == ("a",)
    assert whole.watched is not None
    assert whole.watched.replaces
    assert whole.watched.settings.deny == ("b",)
    assert whole.watched.settings.audit_file == whole.settings.audit_file
    assert whole.as_if_enforced.settings.deny == ("b",)


def test_parts_would_be_added_to_what_is_in_force(tmp_path: Path) -> None:
    text = '[[hooks.PreToolUse]]\ncommand = "a"\n[[hooks.PreToolUse]]\ncommand = "b"\nmode = "monitor"\n'
    enforced = loaded(tmp_path, text + '[permissions]\nmode = "monitor"\ndeny = ["x"]').as_if_enforced
    assert commands(enforced) == ["a", "b"]
    assert enforced.settings.deny == ("x",)
    assert enforced.watched is None


@pytest.mark.parametrize(
    ("here", "following", "words"),
    [
        ('[permissions]\nmode = "monitor"\n', "", 'this file has a mode = "monitor" as well'),
        ("", '[[hooks.PreToolUse]]\ncommand = "x"\nmode = "monitor"', 'has a mode = "monitor" itself'),
        ("", '[monitor]\nfile = "hookproxy.toml"', "is watched, and watches a policy itself"),
        ("", "managed_only = true", "sets managed_only, which cannot be only watched"),
    ],
)
def test_what_cannot_be_watched_is_named(tmp_path: Path, here: str, following: str, words: str) -> None:
    (tmp_path / "next.toml").write_text(following, "utf-8")
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, f'{here}[monitor]\nfile = "next.toml"\n')
    assert words in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[monitor]\nfile = "hookproxy.toml"', "is watched, and watches a policy itself"),
        ('[monitor]\nfile = "missing.toml"', "there is no such file"),
        ('[monitor]\nfiles = "next.toml"', "file"),
        ('[permissions]\nmode = "watch"', "enforce"),
    ],
)
def test_a_mistake_is_answered_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, text)
    assert words in f"{raised.value.message} {raised.value.hint}"


def test_the_digest_of_the_policy_covers_what_is_watched(tmp_path: Path) -> None:
    script = tmp_path / "guard.py"
    script.write_text("print()", "utf-8")
    text = '[[hooks.PreToolUse]]\nargv = ["python3", "guard.py"]\nmode = "monitor"\n'
    whole = loaded(tmp_path, text)
    assert str(script) in parts_of({}, [whole], dict(os.environ), str(tmp_path))


def test_fail_closed_holds_for_what_is_watched(tmp_path: Path) -> None:
    closed = failing_closed(loaded(tmp_path, '[permissions]\nmode = "monitor"\ndeny = ["x"]')).watched
    assert closed is not None
    assert closed.settings.fail_closed


def test_what_is_watched_must_be_trusted_and_is_covered_by_trust(tmp_path: Path) -> None:
    (tmp_path / "guard.sh").write_text("exit 0", "utf-8")
    (tmp_path / "next.toml").write_text('[[hooks.PreToolUse]]\nargv = ["sh", "guard.sh"]', "utf-8")
    with pytest.raises(ConfigError, match="is not trusted yet"):
        loaded(tmp_path, 'require_trust = true\n[monitor]\nfile = "next.toml"\n')
    context = FileContext({}, str(tmp_path))
    read = read_layer(str(tmp_path / "hookproxy.toml"), context)
    covered = dependencies(read, read.all_groups, context).files
    assert {str(tmp_path / name) for name in ("hookproxy.toml", "next.toml", "guard.sh")} <= set(covered)


# --- what is managed ---


def layer(source: str, *, watches: bool = False, **settings: object) -> Layer:
    set_by = {name: f"{source}: {KEYS_OF_SETTINGS[name]}" for name in settings}
    made = Layer(source, Settings(**settings), set_by)  # type: ignore[arg-type]  # settings by name
    return with_watched_rules(made, RULES) if watches else made


def of(user: Layer, *managed: Layer) -> tuple[Settings, list[str], Watched | None]:
    settings, groups, _, _ = merge(user, managed)
    enforced, in_force, watched = divided(settings, groups, user, managed, RULES)
    return enforced, [spec.label for each in in_force for spec in each.hooks], watched


def test_a_user_cannot_watch_what_is_managed() -> None:
    admin = replace(layer("etc", deny=("x",)), groups=(group(hook("m")),))
    for user in (layer("user", watches=True, deny=("y",)), replace(layer("user"), next=layer("next", allow=("x",)))):
        settings, hooks, watched = of(user, admin)
        assert settings.managed is not None
        assert settings.managed.deny == ("x",)
        assert hooks == ["guard"]
        assert watched is not None
        assert watched.settings.managed is None


def test_the_administrator_watches_managed_rules_beside_those_in_force() -> None:
    in_force, in_view = layer("etc/1", deny=("a",)), layer("etc/2", watches=True, deny=("b",))
    settings, _, watched = of(layer("user"), in_force, in_view)
    assert settings.managed is not None
    assert settings.managed.deny == ("a",)
    assert watched is not None
    assert watched.settings.managed is not None
    assert watched.settings.managed.deny == ("b",)
    assert [part for part in parts(watched) if "deny b (managed)" in part]


def test_a_managed_group_that_is_watched_decides_nothing() -> None:
    admin = replace(layer("etc"), groups=(replace(group(hook("m")), watched=True),))
    _, hooks, watched = of(layer("user"), admin)
    assert hooks == []
    assert watched is not None
    assert [each.managed for each in watched.groups] == [True]


def test_with_managed_only_no_hook_of_a_user_runs_to_be_watched() -> None:
    admin = replace(layer("etc"), managed_only=True)
    marked = replace(group(hook("u")), watched=True)
    user = replace(layer("user"), groups=(marked,))
    assert of(user, admin)[2] is None
    second = replace(layer("user"), next=replace(layer("next"), groups=(group(hook("u")),)))
    watched = of(second, admin)[2]
    assert watched is not None
    assert watched.groups == ()


@pytest.mark.parametrize("is_second", [False, True])
def test_a_python_function_is_not_watched_in_a_process_with_managed_hooks(is_second: bool) -> None:
    function = group(replace(hook(""), type="python", call="guards:check"))
    user = replace(layer("user"), groups=(replace(function, watched=True),))
    if is_second:
        user = replace(layer("user"), next=replace(layer("next"), groups=(function,)))
    with pytest.raises(ConfigError, match="Python function"):
        of(user, layer("etc", deny=("x",)))


def test_limits_of_a_second_file_count_for_themselves() -> None:
    limit = Limit("*", 1, Per.HOUR, "limits[0]")
    watched = of(replace(layer("user", limits=(limit,)), next=layer("next", limits=(limit,))), layer("etc"))[2]
    assert watched is not None
    assert [each.watched for each in watched.settings.limits] == [True]
