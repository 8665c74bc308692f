"""What a person has allowed, as it is sent to a store or a guard, and read from it."""

from __future__ import annotations

from msgspec.json import decode

from .shared_state import Approved
from .similar_calls import SimilarCalls


class SentApproved(Approved, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """It is read strictly: what another version of hookproxy has restricted must not be taken for more."""

    similar: SimilarCalls | None = None


def read_approved(raw: bytes) -> Approved:
    """Raises ValueError, RecursionError: it is of another version of hookproxy."""
    sent = decode(raw, type=SentApproved)
    return Approved(**{name: getattr(sent, name) for name in Approved.__struct_fields__})
