"""Explains what is wrong with the text of a `pack.toml`, as for any other file: the line, the key and the repair."""

from __future__ import annotations

from ..model.errors import ConfigError
from ..model.toml import NotToml
from ..packs.manifest import InvalidManifest, Manifest
from .errors import toml_error


def explained(path: str, problem: InvalidManifest) -> ConfigError:
    """The error to raise for the `pack.toml` at this path."""
    if isinstance(problem.error, NotToml):
        return toml_error(path, problem.text, problem.error)
    from .pydantic_models import explanation  # 100 ms, only for errors

    return explanation(path, problem.text, problem.tables, Manifest, str(problem.error))
