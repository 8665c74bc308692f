"""YAML with very many merges. Other YAML is tested in test_hook_file."""

import pytest

from hookproxy.dialects.shared.yaml_file import MAX_MERGED_MEMBERS, load
from hookproxy.model.errors import ConfigError


def nested(width: int, depth: int) -> str:
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{at}: &a{at}\n  <<: [{', '.join([f'*a{at - 1}'] * width)}]" for at in range(1, depth)]
    return "\n".join(lines)


@pytest.mark.timeout(60)  # seconds: what is not refused takes minutes
def test_merge_keys_in_merge_keys_are_refused_before_they_fill_the_memory() -> None:
    with pytest.raises(ConfigError) as caught:
        load("/a.yaml", nested(10, 12))
    assert caught.value.message == f"/a.yaml: `<<` merges more than {MAX_MERGED_MEMBERS} members"
    assert caught.value.hint == "write the members where they are needed, and do not nest `<<`"


@pytest.mark.slow
@pytest.mark.timeout(60)  # seconds: what is not refused takes minutes
def test_one_large_mapping_merged_often_is_refused_before_it_is_put_together() -> None:
    members = ", ".join(f"k{at}: 1" for at in range(MAX_MERGED_MEMBERS // 2))
    with pytest.raises(ConfigError, match="`<<` merges more than"):
        load("/a.yaml", f"a: &a {{{members}}}\nb:\n  <<: [{', '.join(['*a'] * 20_000)}]\n")


def test_merge_keys_as_people_write_them_are_filled_in() -> None:
    text = "one: &one {a: 1, b: 1}\ntwo: &two\n  <<: *one\n  b: 2\nthree:\n  <<: [*two, {c: 3}]\n  <<: {d: 4}\n"
    assert load("/a.yaml", text)["three"] == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert load("/a.yaml", nested(2, 5))["a4"] == {"k": 1}


def test_a_mapping_that_merges_itself_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="recursion"):
        load("/a.yaml", "a: &a {<<: *a, k: 1}\n")


@pytest.mark.parametrize("text", ["a: {<<: 1}", "a: {<<: [1]}", "a: {<<: [[{b: 1}]]}"])
def test_only_a_mapping_can_be_merged(text: str) -> None:
    with pytest.raises(ConfigError, match="not YAML: expected a mapping"):
        load("/a.yaml", text)
