"""The Dockerfile: what it installs exists, and its account, ports and command are those of the manifests."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
TEXT: Final = (ROOT / "deploy" / "Dockerfile").read_text()
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def gateways() -> dict[str, Any]:
    documents = yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / "gateways.yaml").read_text())
    [found] = [one["spec"]["template"]["spec"] for one in documents if one["kind"] == "StatefulSet"]
    return dict(found)


def instruction(name: str) -> str:
    """The text of an instruction that stands there once."""
    [found] = re.findall(rf"(?m)^{name} (.+)$", TEXT)
    return str(found)


def test_it_installs_extras_that_exist_on_a_python_that_the_package_supports() -> None:
    [extras] = re.findall(r"\.whl\)\[([a-z,]+)\]", TEXT)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert {"cluster", "gateway", "remote"} <= set(extras.split(","))
    [version] = re.findall(r"python:(\d\.\d+)-slim", instruction("FROM"))
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_its_account_is_that_of_the_pods_and_not_root() -> None:
    own = gateways()["securityContext"]
    assert instruction("USER") == f"{own['runAsUser']}:{own['runAsGroup']}"
    assert f"--uid {own['runAsUser']} --gid {own['runAsGroup']}" in TEXT


def test_it_starts_what_the_pods_start() -> None:
    [container] = gateways()["containers"]
    assert json.loads(instruction("ENTRYPOINT"))[-1] in PROJECT["scripts"]
    assert "command" not in container, "the image's first process is tini"
    command = json.loads(instruction("CMD"))
    assert container["args"][: len(command)] == command
    assert instruction("EXPOSE").split() == [str(one["containerPort"]) for one in container["ports"]]
