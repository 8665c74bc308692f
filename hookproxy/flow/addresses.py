"""Which words of a text name a place or an account: what an instruction must have to send something somewhere.

It is said by form alone, as what is a domain cannot be known: a file's name with a dot is one, too.
"""

from __future__ import annotations

import re
from typing import Final

_ADDRESS: Final = re.compile(
    r"""(?x)
      \S+://\S+
    | [^\s@]+ @ [^\s@]+
    | (?:[\w-]+\.)+ [^\W\d_]{2,} (?: [:/?\#] \S* )?       # a host, with what follows it in an address
    | (?=[^\W_]*\d) [^\W_]{8,}                            # an account, a key, a code
    | \+? (?:\d [-./()]*){9,}                             # a telephone number: a date has eight digits
    """
)


def is_address(word: str) -> bool:
    """Whether a word names a page, a host, a mailbox, an account or a code; a text with blanks in it does not."""
    return _ADDRESS.fullmatch(word) is not None
