"""What a process can be given as its environment."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.processes import environment

LIMIT = environment.VARIABLE_LIMIT


def test_an_environment_that_fits_comes_back_as_it_is() -> None:
    env = {"A": "b", "LONG": "x" * (LIMIT - len("LONG") - 2)}
    assert environment.fit(env) is env


def test_a_nul_in_a_variable_is_replaced() -> None:
    assert environment.fit({"A": "b\0c"}) == {"A": "b\N{REPLACEMENT CHARACTER}c"}


def test_half_a_surrogate_pair_in_a_variable_is_replaced_and_foreign_bytes_are_kept() -> None:
    env = environment.fit({"HALF": "a\ud800b", "LATIN": os.fsdecode(b"caf\xe9")})
    assert env == {"HALF": "a?b", "LATIN": os.fsdecode(b"caf\xe9")}


@given(st.text(alphabet="aé€😀\0", min_size=1, max_size=50), st.integers(LIMIT // 50, LIMIT // 8))
def test_a_cut_ends_with_a_whole_character_just_below_the_limit(piece: str, times: int) -> None:
    value = piece * times
    fitted = environment.fit({"NAME": value})
    whole = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    size = len(os.fsencode(fitted["NAME"])) + len("NAME=") + 1
    assert size <= LIMIT
    assert whole.startswith(fitted["NAME"])
    assert (fitted["NAME"] == whole) == ("HOOK_TRUNCATED" not in fitted)
    assert fitted["NAME"] == whole or size > LIMIT - 4


def test_variables_keep_their_bytes() -> None:
    env = {"A": "b=c", "LATIN": os.fsdecode(b"caf\xe9"), "EMPTY": ""}
    assert environment.entries(env) == (b"A=b=c", b"LATIN=caf\xe9", b"EMPTY=")


@pytest.mark.parametrize("name", ["", "A=B", "=A"])
def test_an_invalid_name_of_a_variable_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of an environment variable"):
        environment.entries({"FINE": "x", name: "y"})
