"""Whether a resource template (RFC 6570) may stand for a URI. In doubt it may."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_LONGEST: Final = 8192  # characters of a URI or a template that is compared; a longer one may be anything


def may_expand_to(template: str, uri: str) -> bool:
    """Whether the template may stand for this URI: what stands between its expressions does, in this order."""
    if len(template) > _LONGEST or len(uri) > _LONGEST:
        return True
    at = 0
    first, *rest = _literals(template)
    if not uri.casefold().startswith(first.casefold()):
        return False
    if not rest:
        return len(uri) == len(first)
    at, folded = len(first), uri.casefold()
    for literal in rest[:-1]:
        found = folded.find(literal.casefold(), at)
        if found < 0:
            return False
        at = found + len(literal)
    return folded.endswith(rest[-1].casefold()) and len(folded) - len(rest[-1]) >= at


@lru_cache(maxsize=256)
def _literals(template: str) -> tuple[str, ...]:
    return tuple(_EXPRESSION.split(template)[::2])
