"""Descriptors that are kept for whoever must be served when all others are in use."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hookproxy.network.spare_descriptors import SpareDescriptors


@pytest.fixture
def exhausted() -> Iterator[SpareDescriptors]:
    """All descriptors are in use, four of them as spare ones."""
    spare, (_, hard) = SpareDescriptors(4), resource.getrlimit(resource.RLIMIT_NOFILE)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, hard))
    used = [lowest]
    with suppress(OSError):
        used.extend(os.dup(0) for _ in range(lowest + 1))
    yield spare
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for fd in used:
        os.close(fd)
    spare.close()


def test_a_spare_descriptor_serves_where_there_is_no_other(exhausted: SpareDescriptors) -> None:
    with pytest.raises(OSError, match="Too many open files"):
        os.dup(0)
    assert exhausted.give()
    os.close(os.dup(0))


def test_what_was_given_is_taken_back_when_it_is_there(exhausted: SpareDescriptors) -> None:
    exhausted.give()
    assert exhausted.is_short
    exhausted.refill()
    assert not exhausted.is_short


def test_what_is_lent_comes_back(exhausted: SpareDescriptors) -> None:
    with exhausted.lent(3):
        opened = [os.dup(0) for _ in range(3)]
        for fd in opened:
            os.close(fd)
    assert not exhausted.is_short


def test_nobody_else_takes_what_is_lent_and_none_of_it_is_taken_back(exhausted: SpareDescriptors) -> None:
    assert not exhausted.are_needed()  # nothing is lent
    with exhausted.lent(2):
        assert exhausted.are_needed()
        exhausted.refill()
        assert not exhausted.is_short  # of those that are not lent
        for fd in [os.dup(0) for _ in range(2)]:
            os.close(fd)
    assert not exhausted.are_needed()


def test_what_is_lent_keeps_nobody_out_where_there_are_others() -> None:
    spare = SpareDescriptors(4)
    with spare.lent(2):
        assert not spare.are_needed()
    spare.close()


def test_there_is_nothing_to_give_when_all_is_given(exhausted: SpareDescriptors) -> None:
    assert exhausted.give(10)
    assert not exhausted.give()
