"""Which words of a text name a place or an account: what an instruction must have to send something somewhere.

It is said by form alone, as what is a domain cannot be known: a file's name with a dot is one, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_ADDRESS: Final = re.compile(
    r"""(?x)
      \S+://\S+
    | [^\s@]+ @ [^\s@]+
    | (?:[\w-]+\.)+ [^\W\d_]{2,} (?: [:/?\#] \S* )?       # a host, with what follows it in an address
    | \d{1,3} (?:\.\d{1,3}){3} (?: [:/?\#] \S* )?         # the number of a host
    | (?=\S*::|(?:[^\s:]*:){7}) [0-9a-fA-F:.]+
    | (?=[^\W_]*\d) [^\W_]{8,}                            # an account, a key, a code
    | \+? (?:\d [-./()]*){9,}                             # a telephone number: a date has eight digits
    """
)
_HOST: Final = re.compile(r"//(?:[^/?#\\\s]*@)?(?:\[([0-9A-Fa-f:.]+)\]|([^/?#\\\s:@\[\]]+))")
_DOTTED: Final = re.compile(r"(?<![\w-])[\w-]+(?:\.[\w-]+)+")  # begins once in a run: linear
_LONGEST_HOST: Final = 253  # characters: of a longer name no resolver knows anything


def is_address(word: str) -> bool:
    """Whether a word names a page, a host, a mailbox, an account or a code; a text with blanks in it does not."""
    return _ADDRESS.fullmatch(word) is not None


def hosts(word: str) -> Iterator[str]:
    """The hosts of the addresses in a word, without user, port and a dot at the end."""
    for in_brackets, name in _HOST.findall(word):
        yield in_brackets or name.rstrip(".")


def domains_above(word: str) -> Iterator[str]:
    """The domains that the hosts in a word are below: whoever has a domain gets what is asked of all names in it."""
    for name in _DOTTED.findall(word):
        parts = name[-_LONGEST_HOST:].split(".")
        yield from (".".join(parts[start:]) for start in range(1, len(parts) - 1))
