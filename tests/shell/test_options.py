"""The normal form of options."""

from __future__ import annotations

import pytest

from hookproxy.shell import options


@pytest.mark.parametrize(
    ("program", "wanted", "given", "includes"),
    [
        ("rm", "-rf", "-rf x", True), ("rm", "-rf", "-fr x", True), ("rm", "-rf", "-r -f x", True), ("rm", "-rf",
        "x -r -f", True),
        ("rm", "-rf", "--recursive --force x", True), ("rm", "-rf", "--rec --fo x", True), ("rm", "-rf", "-Rf x", True),
        ("rm", "-rf", "-rvf x", True), ("rm", "-rf", "-r x", False), ("rm", "-rf", "-- -rf", False), ("rm",
        "--recursive", "-r x", True),
        ("git", "push --force", "push -f", True), ("git", "push --force", "push origin main --force", True),
        ("git", "push --force", "pull --force", False), ("git", "push --force", "-C x push --force", True),
        ("git", "push --force", "push --force-with-lease", False), ("chmod", "-R 777", "777 -R .", True), ("chmod",
        "-R 777", "-R 755 .", False),
        ("find", "-delete", "-delete", True), ("find", "-delete", "-d -e -l", False),
    ],
)  # fmt: skip
def test_options_count_however_they_are_written(program: str, wanted: str, given: str, includes: bool) -> None:
    rule, command = (options.split(program, text.split()) for text in (wanted, given))
    assert options.includes(rule, command, exactly=False) is includes


def test_an_exact_rule_allows_no_further_operands() -> None:
    rule = options.split("rm", ["-rf", "/"])
    assert options.includes(rule, options.split("rm", ["-r", "-f", "/"]), exactly=True)
    assert not options.includes(rule, options.split("rm", ["-r", "-f", "/", "x"]), exactly=True)
