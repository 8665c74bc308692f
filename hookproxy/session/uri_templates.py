"""Whether a resource template (RFC 6570) may stand for a URI, however the URI is spelled. In doubt it may."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from ..jsonrpc.unicode_text import normalized

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_LONGEST: Final = 8192  # characters of a URI or a template that is compared; a longer one may be anything
_BLANKS: Final = re.compile("[\x00-\x20\x7f]")  # browsers strip some of them, and other readers others
_SLASHES: Final = re.compile(r"/(?:\./|/)*")
_HOST: Final = re.compile(r"^([a-z][a-z0-9+.-]*:/)(?:[^/@]*@)?(?:localhost(?=[:/]|$))?([^/:]*)(?::\d*)?(?=/|$)")


def may_expand_to(template: str, uri: str) -> bool:
    """Whether the template may stand for this URI: what stands between its expressions does, in this order.

    Spellings that some reader takes for the same URI are the same: escapes, blanks, slashes, dots, ports, case.
    """
    if len(template) > _LONGEST or len(uri) > _LONGEST:
        return True
    if stands_for(template, uri):
        return True
    first, *rest = map(_plain, _literals(template))
    return _has((_without_port(first), *rest), _plain_uri(uri))


def stands_for(template: str, uri: str) -> bool:
    """As `may_expand_to` for the URI as it is spelled."""
    if len(template) > _LONGEST or len(uri) > _LONGEST:
        return False
    return _has([literal.casefold() for literal in _literals(template)], uri.casefold())


def _has(literals: Sequence[str], uri: str) -> bool:
    first, *rest = literals
    if not rest:
        return uri == first
    if not uri.startswith(first):
        return False
    at = len(first)
    for literal in rest[:-1]:
        start = uri.find(literal, at)
        if start < 0:
            return False
        at = start + len(literal)
    return uri.endswith(rest[-1]) and len(uri) - len(rest[-1]) >= at


def _plain(text: str) -> str:
    text = normalized("NFKC", _BLANKS.sub("", unquote(unquote(text)))).casefold()
    return _SLASHES.sub("/", text.replace("\\", "/"))


@lru_cache(maxsize=16)  # a URI is compared with each template
def _plain_uri(uri: str) -> str:
    kept: list[str] = []
    for part in _plain(uri).split("/"):
        if part != ".." or len(kept) < 2:  # the first one is the scheme
            kept.append(part)
        else:
            kept.pop()
    return _without_port("/".join(kept))


def _without_port(uri: str) -> str:
    return _HOST.sub(r"\1\2", uri)


@lru_cache(maxsize=256)
def _literals(template: str) -> tuple[str, ...]:
    return tuple(_EXPRESSION.split(template)[::2])
