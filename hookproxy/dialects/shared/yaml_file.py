"""Reads a YAML file as strictly as JSON: plain values, unique keys that are strings, and a limit for `<<`."""

from __future__ import annotations

from typing import Final

import yaml

from ...model.errors import ConfigError

MAX_MERGED_MEMBERS: Final = 10_000
"""Members that `<<` may merge into the mappings of a file. A few lines of nested merges would make billions."""

_MERGE: Final = "tag:yaml.org,2002:merge"


def load(path: str, text: str, begin: str = "write `hooks:`, and the events under it") -> dict[str, object]:
    """The members of the mapping in the file; `begin` says how one begins. Raises ConfigError that names the line."""
    try:
        value = _Loader(path, text).get_single_data()
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        raise ConfigError(
            f"{path}:{line}", f"not YAML: {problem.problem}", _repair(str(problem.problem), line)
        ) from None
    except (yaml.YAMLError, LookupError, AttributeError, RecursionError, ValueError) as problem:
        # LookupError, AttributeError: from PyYAML's constructors, for invalid dates and numbers
        raise ConfigError(path, f"cannot be read as YAML: {problem}", "write plain strings, in quotes") from None
    if not isinstance(value, dict):
        raise ConfigError(path, "must contain one YAML mapping", begin)
    return value


def _repair(problem: str, line: int) -> str:
    """What to do about what the parser says of a line."""
    if "'\\t'" in problem:
        return "write blanks in the place of the tab: YAML is indented with them alone"
    if "<block end>" in problem:
        return f"begin line {line} in the column of the other lines of its list or table"
    if problem.startswith(("expected ',' or", "could not find expected ':'")):
        return f"close the bracket or the quote that is open in line {line}, or in the lines before it"
    return f"correct line {line} or the lines before it"


class _Loader(yaml.SafeLoader):
    def __init__(self, path: str, text: str) -> None:
        super().__init__(text)
        self._path = path
        self._merged = 0

    def compose_mapping_node(self, anchor: dict[object, yaml.Node]) -> yaml.MappingNode:
        """Like PyYAML's, but refuses duplicate keys, of which PyYAML silently uses the last. `<<` is not merged yet."""
        node = super().compose_mapping_node(anchor)
        keys = [key for key, _ in node.value if key.tag != _MERGE]  # `<<` may occur several times
        _check_keys(self._path, [(self.construct_object(key, deep=True), key.start_mark.line + 1) for key in keys])
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge as YAML 1.1's `<<` does, and limit how many members it merges: own members win, then the first source.

        Not PyYAML's: from 6.0.4 on it takes members of the same short name for one, and the merged one wins.
        """
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        own: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            if key.tag != _MERGE:
                own.append((key, value))
                continue
            for source in reversed(value.value if isinstance(value, yaml.SequenceNode) else [value]):
                if not isinstance(source, yaml.MappingNode):
                    raise yaml.constructor.ConstructorError(
                        None, None, f"expected a mapping for `<<`, and this is a {source.id}", source.start_mark
                    )
                self._count(source)
                merged += source.value
        node.value = merged + own

    def _count(self, source: yaml.MappingNode) -> None:
        """Flatten a mapping that is to be merged, and count its members before they are merged."""
        self.flatten_mapping(source)
        self._merged += len(source.value)
        if self._merged > MAX_MERGED_MEMBERS:
            hint = "write the members where they are needed, and do not nest `<<`"
            raise ConfigError(self._path, f"`<<` merges more than {MAX_MERGED_MEMBERS} members", hint)


def _check_keys(path: str, keys: list[tuple[object, int]]) -> None:
    """Raise ConfigError for a key that is not a string or occurs twice. Each key comes with its line."""
    seen: set[str] = set()
    for key, line in keys:
        if not isinstance(key, str):
            raise ConfigError(f"{path}:{line}", f"the key {key!r} is not a string", "put it in quotation marks")
        if key in seen:
            raise ConfigError(f"{path}:{line}", f"the key {key!r} appears twice in one mapping", "remove one of them")
        seen.add(key)
