"""By what a call is the same as one before."""

from __future__ import annotations

import json

import pytest

from hookproxy.model.aliases import Alias
from hookproxy.policy import same_calls

SHELL = Alias("run", "Bash", {"command": "cmd"})


@pytest.mark.parametrize(
    "arguments",
    [
        {"cmd": "make", "description": "Build it once more"},
        {"cmd": "make", "explanation": "", "goal": "x"},
        {"toolSummary": "x", "cmd": " make\n"},
    ],
)
def test_a_command_is_the_same_whatever_is_said_about_it(arguments: dict[str, str]) -> None:
    assert same_calls.compared(SHELL, json.dumps(arguments).encode()) == b'{"cmd":"make"}'


def test_what_a_command_does_besides_tells_it_from_others() -> None:
    arguments = b'{"cmd":"make","cwd":"/a","timeout":5}'
    assert same_calls.compared(SHELL, arguments) == arguments
    described = b'{"description":"make"}'
    assert same_calls.compared(Alias("run", "Bash", {"command": "description"}), described) == described


def test_texts_of_other_tools_are_what_they_do() -> None:
    arguments = b'{"description":" a "}'
    for alias in (None, Alias("note", "Write")):
        assert same_calls.compared(alias, arguments) == arguments


@pytest.mark.parametrize("number", ["1", "1e999", "123456789012345678901234567890"])
def test_the_order_of_members_does_not_count_whatever_their_numbers_are(number: str) -> None:
    one, other = f'{{"a":{number},"b":[{{"c":1,"d":2}}]}}', f'{{"b":[{{"d":2,"c":1}}],"a":{number}}}'
    assert same_calls.canonical(one.encode()) == same_calls.canonical(other.encode())
