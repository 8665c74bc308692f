"""What a person has allowed is read as it was sent, or not at all."""

from __future__ import annotations

import msgspec
import pytest

from hookproxy.policy.sent_approvals import read_approved
from hookproxy.policy.shared_state import Approved
from hookproxy.policy.similar_calls import SimilarCalls

SIMILAR = SimilarCalls("run", "git push", "command", {"folder": b'"/srv"'})


@pytest.mark.parametrize(
    "approved",
    [
        Approved("read"),
        Approved("read", managed=True),
        Approved("run", rule="run(git *)"),
        Approved("run", similar=SIMILAR),
        Approved("run", limits=("a", "b")),
    ],
    ids=str,
)
def test_what_is_sent_is_read_as_the_same(approved: Approved) -> None:
    received = read_approved(msgspec.json.encode(approved))
    assert received == approved
    assert type(received) is Approved


@pytest.mark.parametrize(
    "raw",
    [b'{"tool":"run","only_today":true}', b'{"managed":true}', b'{"tool":"run","similar":{}}', b"[]", b"", b"\xff"],
)
def test_what_another_version_has_sent_allows_nothing(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_approved(raw)
