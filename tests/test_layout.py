"""The shape of the code, read from its imports: floors, no circles, small files, a test for each module.

A module imports from lower floors, or its own folder's base. What else it takes from its own floor stands in
BESIDE, so that a new dependency is a decision and not an accident.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "hookproxy"
LONGEST: Final = 300  # lines: what a reader holds in mind; a longer file has two subjects

FLOORS: Final = {
    # what everything may know
    "__init__": 0,  # the version
    "settings": 0,
    "model": 0,
    "decision": 0,
    "errors": 0,
    "hooks_api": 0,  # for hooks: it knows nobody, and nobody here needs it
    "wire": 0,
    "aliases": 0,
    # the core: pure and synchronous
    "legible": 1,
    "redaction": 1,
    "plain": 1,
    "matching": 1,
    "commandline": 1,
    "rules": 1,
    "limits": 1,
    "presets": 1,
    "schema": 1,
    "places": 1,
    "glance": 1,
    "calls": 1,
    "listings": 1,
    "effects": 1,
    "inflight": 1,
    "elicitations": 1,
    "inquiries": 1,
    "greeting": 1,
    "outcomes": 1,
    "questions": 1,
    "seals": 1,
    "forwarding": 1,
    "news": 1,
    "tasks": 1,
    "replies": 1,
    "batches": 1,
    "switchboard": 1,
    "policy": 1,
    "answers": 1,
    "feedback": 1,
    "dialects": 1,
    # the edges: files, processes, descriptors
    "config_errors": 2,
    "config_models": 2,
    "config_table": 2,
    "config_audit": 2,
    "config_patterns": 2,
    "config_tools": 2,
    "config": 2,
    "hookfiles": 2,
    "layers": 2,
    "managed": 2,
    "imports": 2,
    "scripts": 2,
    "sources": 2,
    "trust": 2,
    "truststore": 2,
    "audit": 2,
    "chains": 2,
    "account": 2,
    "ledger": 2,
    "telemetry": 2,
    "records": 2,
    "environment": 2,
    "process": 2,
    "promises": 2,
    "starting": 2,
    "runners": 2,
    "transports": 2,
    # what joins them
    "groups": 3,
    "permissions": 3,
    "aside": 3,
    "held": 3,
    "asking": 3,
    "errands": 3,
    "case": 3,
    "changes": 3,
    "clerks": 3,
    "moments": 3,
    "answering": 3,
    "hooks": 3,
    "turns": 3,
    "intercept": 3,
    "commenting": 3,
    "following": 3,
    "relay": 3,
    "proxy": 3,
    "lifetime": 3,
    # calls without a server
    "observed": 3,
    "trial_desk": 3,
    "trial": 3,
    "absence": 3,
    "replaying": 3,
    # for people
    "reading": 3,  # what `audit` shows
    "checks": 3,  # what `check` looks for
    "completions": 3,  # scripts with which shells complete command lines
    "wrapping": 3,  # what `wrap` and `unwrap` do to a configuration
    "demo": 3,  # what the verb of that name shows
    "cli": 4,
    "__main__": 4,
}

BESIDE: Final = {
    # the nouns, in three parts
    "model": {"aliases", "settings"},
    "settings": {"aliases"},
    "aliases": {"wire"},
    "decision": {"model"},
    # reading for hooks, before matching and judging
    "matching": {"legible"},
    "plain": {"legible"},
    "redaction": {"legible"},
    # the audit: what stands in a line, and how lines get into a file
    "audit": {"account", "ledger", "telemetry"},
    "ledger": {"chains"},
    # permission rules: of texts, of command lines, and all of one configuration
    "commandline": {"matching"},
    "rules": {"commandline", "matching"},
    "limits": {"matching", "rules"},  # whose tools are named as a rule names them
    # hookfile, kinds, told, printed: what all hook files, all hooks' documents and their answers have in common
    "dialects": {
        *("dialects/hookfile", "dialects/identities", "dialects/kinds", "dialects/printed", "dialects/told"),
        *("matching", "legible", "plain"),
    },
    # one dialect in several files: reading files, telling, reading answers
    "dialects/claude": {"dialects/claude_answer", "dialects/claude_told"},
    "dialects/claude_answer": {"dialects/claude_request"},
    "dialects/claw": {"dialects/claw_answer"},
    "dialects/code_assist": {"dialects/code_assist_answer"},
    "dialects/copilot": {"dialects/copilot_answer", "dialects/copilot_kind", "dialects/copilot_told"},
    "dialects/lime": {"dialects/lime_answer"},
    # one dialect in three parts, the last of which has a module for matchers
    "dialects/docker_agent": {"dialects/docker_agent_answer", "dialects/docker_agent_file"},
    "dialects/docker_agent_file": {"dialects/docker_agent_answer", "dialects/docker_agent_pattern"},
    "dialects/hookfile": {"dialects/yamlfile"},  # which imports PyYAML, for those who have such a file
    # our own hooks are claude's, but for names and failures
    "dialects/own": {"dialects/claude", "dialects/claude_told", "dialects/kinds"},
    # the switchboard, from its parts up
    "replies": {"glance"},
    "calls": {"glance", "legible", "replies"},
    "listings": {"legible", "replies"},
    "effects": {"calls", "inquiries", "replies"},
    "inflight": {"glance"},
    "greeting": {"calls", "replies"},
    "outcomes": {"calls", "effects", "elicitations", "legible"},
    "elicitations": {"calls", "effects", "inquiries", "replies"},
    "inquiries": {"legible", "policy", "replies"},
    "batches": {"calls", "effects", "elicitations", "inflight", "replies", "tasks"},
    "switchboard": {
        *("batches", "calls", "effects", "elicitations", "glance", "greeting", "inflight", "listings", "replies"),
        "tasks",
    },
    "news": {"outcomes", "replies"},
    "tasks": {"calls", "effects", "glance", "inflight", "news", "replies"},
    # sentences, and how they get into messages
    "answers": {"legible"},
    "feedback": {"answers", "questions"},
    "seals": {"calls"},
    "forwarding": {"answers", "calls", "questions", "seals"},
    # the models are a module of their own so that pydantic is imported only where hookproxy.toml is read
    "config": {
        *("config_errors", "config_models", "config_patterns", "config_tools", "hookfiles", "layers", "managed"),
        *("sources", "trust", "truststore"),
    },
    "config_patterns": {"config_models"},
    "hookfiles": {"sources"},
    # each imported only where the administrator has a folder, or trust is required
    "layers": {"sources"},
    "managed": {"scripts", "sources"},
    "trust": {"imports", "scripts", "sources", "truststore"},
    "scripts": {"imports", "process"},
    "config_tools": {"config_models"},
    "config_models": {"config_audit", "config_errors", "config_table"},
    "config_audit": {"config_table"},
    # only process and starting start processes
    "starting": {"process"},
    "runners": {"environment", "process", "promises", "starting"},
    "runners/command": {"runners/running", "runners/shell", "runners/watch"},
    "runners/running": {"runners/watch"},
    "runners/child": {"runners/watch"},
    "runners/http": {"runners/connection", "runners/watch"},
    "runners/mcp_tool": {"runners/watch"},
    "runners/python": {"runners/threads", "runners/watch"},
    "runners/threads": {"runners/watch"},
    "runners/warm": {"runners/command", "runners/running", "runners/watch"},
    "runners/worker": {"runners/child", "runners/command", "runners/watch"},
    "transports/pipe": {"transports/direct"},
    # the way of one call, from the outside in
    "lifetime": {"proxy"},
    "proxy": {
        *(
            "answering",
            "asking",
            "case",
            "changes",
            "clerks",
            "errands",
            "following",
            "held",
            "hooks",
            "intercept",
            "moments",
        ),
        "relay",
    },
    "following": {"case", "changes", "commenting"},
    "commenting": {"case"},
    "intercept": {"case", "commenting"},
    "case": {"asking", "hooks"},
    "asking": {"moments"},
    "moments": {"hooks"},
    "answering": {"groups", "moments"},
    "permissions": {"groups"},
    "hooks": {"aside", "groups", "permissions", "turns"},
    "turns": {"aside"},
    # calls that are tried: by the way of a call, from a desk of their own
    "observed": {"hooks", "turns"},
    "trial_desk": {"asking", "case", "hooks", "moments"},
    "trial": {"case", "groups", "intercept", "observed", "trial_desk"},
    "absence": {"observed", "trial"},
    "replaying": {"trial"},
    # what is said before anything runs, by the rules by which it would
    "checks": {"groups"},
    "checks/commands": {"checks/words"},
    "cli/init": {"cli/schema"},  # it writes where the schema lies
    "cli/completion": {"cli/__init__"},  # all verbs, whichever there are
    # one way of showing things, for all verbs that do
    "cli/check": {"cli/page", "cli/stage"},
    "cli/replay": {"cli/page", "cli/stage"},
    "cli/try_": {"cli/stage", "cli/try_json", "cli/try_text"},
    "cli/try_json": {"cli/page", "cli/try_text"},
    "cli/try_text": {"cli/page"},
    # what `audit` shows: of sums, charts
    "reading/charts": {"reading/sums"},
    # servers are found where agents have them, and edited by the words that stand before their own
    "wrapping/finding": {"wrapping/agents"},
    "wrapping/entry": {"wrapping/finding", "wrapping/words"},
    "cli/unwrap": {"cli/wrap"},  # which shows and writes in the same way
    "__main__": {"cli"},
}

MODULES: Final = sorted(path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py"))


@cache
def tree(module: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{module}.py").read_text("utf-8"))


@cache
def imported(module: str) -> frozenset[str]:
    """Dotted names of all that a module imports, wherever in its text; relative ones as absolute ones."""
    package = ["hookproxy", *module.split("/")[:-1]]
    names: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*start, *([node.module] if node.module else [])])
            names.update(f"{origin}.{alias.name}" for alias in node.names)
    return frozenset(names)


def own(module: str) -> Iterator[str]:
    """The modules of ours that a module imports, as `from .dialects import base` or `from .base import X`."""
    for name in imported(module):
        top, *path = name.split(".")
        if top == "hookproxy":
            candidates = ["/".join(path), "/".join(path[:-1])]
            modules = [each for one in candidates for each in (one, f"{one}/__init__".lstrip("/"))]
            found = [each for each in modules if each in MODULES]
            assert found, f"{module} imports {name}, which is not there"
            yield found[0]


def part(module: str) -> str:
    """What stands on a floor: a module, or a folder of them."""
    return module.split("/")[0]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_from_lower_floors(module: str) -> None:
    here = part(module)
    allowed = {f"{here}/base"} | BESIDE.get(here, set()) | BESIDE.get(module, set())
    for other in own(module):
        there = part(other)
        registry = there == here and module.endswith("/__init__")
        below = FLOORS[there] < FLOORS[here]
        assert below or registry or not allowed.isdisjoint({there, other}), f"{module} imports {other}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    TopologicalSorter({module: set(own(module)) - {module} for module in MODULES}).prepare()


def test_what_the_table_of_floors_names_exists() -> None:
    assert {part(module) for module in MODULES} == set(FLOORS)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_short_and_says_what_it_is(module: str) -> None:
    text = (PACKAGE / f"{module}.py").read_text("utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert ast.get_docstring(tree(module)), "a module begins with a docstring"


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/**/*.py")), ids=str)
def test_a_test_file_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_does_something_has_its_tests(module: str) -> None:
    does_something = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree(module)))
    folder, _, name = module.rpartition("/")
    if name == "base" or not does_something:  # shapes and values
        return
    if name == "__init__":
        folder, _, name = folder.rpartition("/")
    beside = Path("tests", folder, f"test_{name}.py")
    flat = Path("tests", f"test_{name}.py")
    assert (ROOT / beside).exists() or (ROOT / flat).exists(), f"{module} has no {beside}"


def test_the_way_of_run_imports_no_sdk() -> None:
    """`mcp` costs half a second, and its models drop what they do not know."""
    todo, seen = ["__main__", "cli/__init__", "cli/run"], set[str]()
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo.extend(own(module))
    heavy = {f"{module}: {name}" for module in seen for name in imported(module) if name.split(".")[0] == "mcp"}
    assert not heavy


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("**/*.py")), ids=str)
def test_no_pattern_repeats_a_group_possessively(path: Path) -> None:
    r"""Python 3.11.2, which is Debian's, goes on from amid a group that failed: `(?:ab|c)*+` takes `a` of `ax`.

    `(?>(?:ab|c)*)` says the same, and is understood by all.
    """
    if path.name == "docker_agent_pattern.py":  # it reads such patterns, and refuses them
        return
    found = [line for line in path.read_text("utf-8").splitlines() if re.search(r"\)(?:[*+?]|\{[0-9,]+\})\+", line)]
    assert not found
