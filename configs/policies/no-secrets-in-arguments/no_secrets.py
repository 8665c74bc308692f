"""Refuses calls whose arguments hold what looks like a secret, however deep it lies."""

import base64
import re
import unicodedata
from urllib.parse import unquote

from hookproxy.hooks.api import HookInput, deny

SECRETS = re.compile(
    r"\b(sk|rk|pk)-[\w-]{16,}|\b(sk|rk)_(live|test)_\w{16,}"  # OpenAI, Anthropic, Stripe
    r"|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{20,}"
    r"|\b(AKIA|ASIA)[0-9A-Z]{16}\b"  # Amazon Web Services
    r"|\bxox[abeoprs]-[\w-]{10,}"  # Slack
    r"|\bAIza[\w-]{35}"  # Google
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+"  # a signed token (JWT)
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?i:\b(password|passwd|secret|api[_-]?key|access[_-]?token)\s*[=:]\s*[\"']?[^\s\"'$<{\[]{8,})"
    r"|\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@${<]{3,}@"  # a password in a URL
)
NAMED = re.compile(r"(?i).*(password|passwd|secret|api[_-]?key|access[_-]?token)")
ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")


def texts(value):
    """Every text in a JSON value, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
            if isinstance(item, str) and NAMED.fullmatch(key):
                yield f"{key}={''.join(item.split())}"  # {"password": "..."}


def spellings(text):
    """The text, and what it says in other spellings of it."""
    plain = unicodedata.normalize("NFKC", text)
    plain = "".join(character for character in plain if unicodedata.category(character) != "Cf")  # invisible
    yield plain
    yield unquote(plain)
    for found in ENCODED.findall(plain):
        padded = found.rstrip("=") + "=" * (-len(found.rstrip("=")) % 4)
        try:
            yield base64.b64decode(padded, altchars=b"-_" if "-" in padded or "_" in padded else None).decode("latin-1")
        except ValueError:  # it is not base64
            continue


def check(hook_input: HookInput):
    for text in texts(hook_input.tool_input):
        if any(SECRETS.search(spelling) for spelling in spellings(text)):
            return deny(
                "The arguments hold a key, a token or a password. Leave it out, or name the variable that has it."
            )
    return None
