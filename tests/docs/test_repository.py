"""The files that other programs read from the repository: workflows, templates, and hooks for pre-commit."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from hookproxy.cli.main import VERBS
from hookproxy.dialects.registry import DIALECTS

ROOT: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return content


def runs(workflow: dict[str, Any]) -> list[str]:
    return [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_only_and_runs_scripts_that_exist(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    scripts = [word for line in runs(workflow) for word in line.split() if word.startswith("./")]
    assert scripts
    assert all((ROOT / script).is_file() for script in scripts)


def test_the_tests_run_on_each_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [one.rpartition(" ")[2] for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)]
    jobs = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == named
    assert set(jobs["macos"]["strategy"]["matrix"]["python"]) <= set(named)


def test_a_release_is_published_without_a_password() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_each_field_of_a_template_has_a_label(path: Path) -> None:
    template = read(path)
    assert {"name", "description", "body"} <= template.keys()
    assert all(one["attributes"].get("label") or one["attributes"].get("value") for one in template["body"])


def test_pre_commit_checks_the_hook_files_that_setup_finds() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    program, verb = hook["entry"].split()
    assert (program, verb in VERBS) == ("hookproxy", True)
    pattern = re.compile(hook["files"])
    for dialect in DIALECTS.values():
        for place in () if dialect.executables else dialect.project_files:
            assert pattern.search(place.replace("*", "x")), place
            assert pattern.search("sub/" + place.replace("*", "x")), place
    assert pattern.search("hookproxy.toml")
    assert not pattern.search("package.json")


def test_our_own_pre_commit_runs_scripts_that_exist() -> None:
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert all((ROOT / hook["entry"]).is_file() for hook in local["hooks"])
