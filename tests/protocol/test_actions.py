"""The actions of the router: an action never changes."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from hookproxy.protocol import actions
from hookproxy.protocol.actions import PASS, Dropped, ElicitationSeen, Pass, Refused, StartCall


def test_each_direction_has_its_actions_and_both_can_pass() -> None:
    from_agent, from_server = set(get_args(actions.AgentAction)), set(get_args(actions.ServerAction))
    assert from_agent & from_server == {Pass, StartCall, Dropped}
    reported = {ElicitationSeen}  # of the stateless era: in results and in calls, which have actions of their own
    defined = {one for one in vars(actions).values() if isinstance(one, type) and issubclass(one, msgspec.Struct)}
    assert {one for one in defined if one.__module__ == actions.__name__} == reported | (from_agent | from_server) - {
        Pass
    }


def test_an_action_cannot_change() -> None:
    refused = Refused("why.")
    with pytest.raises(AttributeError, match="immutable"):
        refused.why = "else"  # type: ignore[misc]  # which is the point
    assert (refused.id, refused.unreadable) == (b"null", False)
    assert list(Pass) == [PASS]
