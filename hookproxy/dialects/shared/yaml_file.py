"""A hook file in YAML, read as strictly as JSON: plain values, keys that are texts and stand once, an end to `<<`."""

from __future__ import annotations

from typing import Final

import yaml

from ...model.errors import ConfigError

MOST_MERGED: Final = 10_000
"""Members that `<<` may bring into the mappings of a file: nested in each other, a few lines of it make billions."""

_MERGE: Final = "tag:yaml.org,2002:merge"


def load(path: str, text: str) -> dict[str, object]:
    """The members of the mapping that the file holds. Raises ConfigError that names the line."""
    try:
        value = _Loader(path, text).get_single_data()
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        hint = f"mend what stands before or in line {line}"
        raise ConfigError(f"{path}:{line}", f"not YAML: {problem.problem}", hint) from None
    except (yaml.YAMLError, LookupError, AttributeError, RecursionError, ValueError) as problem:
        # the middle two: of PyYAML's own constructors, for dates and numbers that only look like some
        raise ConfigError(path, f"cannot be read as YAML: {problem}", "write plain texts, in quotes") from None
    if not isinstance(value, dict):
        raise ConfigError(path, "must hold one YAML mapping", "write `hooks:`, and the events below it")
    return value


class _Loader(yaml.SafeLoader):
    """PyYAML's loader of plain values."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(text)
        self._path = path
        self._merged = 0

    def compose_mapping_node(self, anchor: dict[object, yaml.Node]) -> yaml.MappingNode:
        """As PyYAML does, which lets the last of twin keys win in silence; `<<` is not filled in yet."""
        node = super().compose_mapping_node(anchor)
        keys = [key for key, _ in node.value if key.tag != _MERGE]  # `<<` may stand often
        _check_keys(self._path, [(self.construct_object(key, deep=True), key.start_mark.line + 1) for key in keys])
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """As PyYAML does, which fills in `<<` however much that is."""
        for key, value in node.value:
            if key.tag == _MERGE:
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    self._count(source)
        super().flatten_mapping(node)

    def _count(self, source: yaml.Node) -> None:
        """Fill in one that is to be merged, and see how much it is, before all of them are put together."""
        if isinstance(source, yaml.MappingNode):  # else PyYAML has an error for it
            self.flatten_mapping(source)
            self._merged += len(source.value)
        if self._merged > MOST_MERGED:
            hint = "write the members where they are needed instead of nesting `<<`"
            raise ConfigError(self._path, f"`<<` brings more than {MOST_MERGED} members into its mappings", hint)


def _check_keys(path: str, keys: list[tuple[object, int]]) -> None:
    """Raise ConfigError for a key that is no text, or stands twice; each comes with its line."""
    seen: set[str] = set()
    for key, line in keys:
        if not isinstance(key, str):
            raise ConfigError(f"{path}:{line}", f"the key {key!r} is no text", "put it in quotation marks")
        if key in seen:
            raise ConfigError(
                f"{path}:{line}", f"the key {key!r} stands twice in one mapping", "take one of the two out"
            )
        seen.add(key)
