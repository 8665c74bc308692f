"""Refuses addresses of hosts that are not in HOSTS."""

import re

from hookproxy.hooks.api import HookInput, deny

HOSTS = {"docs.python.org", "pypi.org", "*.example.com"}  # *.example.com: its subdomains, and not itself
PLAIN = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::(?:80|443))?(?:[/?#][^\s\\]*)?", re.IGNORECASE)
"""An address that all programs read alike: no user, no escapes in the host, no backslash."""
ADDRESS = re.compile(r"(?i)[a-z][a-z0-9+.-]*:\s*[/\\]{1,}|^\s*[/\\]{2}|\bhttps?:")
NAMED = re.compile(
    r"(?i)(^|_)(ur[il]|href|link|address|host|hostname|domain|endpoint|proxy|server|site|webhook)s?$|Ur[il]s?$"
)
CONTENT = {"content", "text", "old_text", "new_text", "oldText", "newText", "old_string", "new_string"}
"""Arguments that are written into a file: an address in them is not fetched."""


def addresses(value, name=""):
    """Each text that holds an address, or has a name that says so."""
    if isinstance(value, str) and name not in CONTENT and (NAMED.search(name) or ADDRESS.search(value)):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from addresses(item, name)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from addresses(item, key)


def is_allowed(text):
    found = PLAIN.fullmatch(text if ":" in text.partition("/")[0] else f"https://{text}")
    if not found:
        return False
    host = found[1].lower()
    return host in HOSTS or any("*." + parent in HOSTS for parent in parents(host))


def parents(host):
    """The domains above a host: example.com and com for www.example.com."""
    parts = host.split(".")
    return [".".join(parts[number:]) for number in range(1, len(parts))]


def check(hook_input: HookInput):
    for text in addresses(hook_input.tool_input):
        if not is_allowed(text):
            return deny(
                f"{text[:200]!r} is not an address that may be reached. Allowed are {', '.join(sorted(HOSTS))}."
            )
    return None
