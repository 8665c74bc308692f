"""Paths, addresses and the URIs of resources: their parts, and when what lies below a place may be opened. Pure.

A folder near the root, a home folder and the beginning of a URI hold what has nothing to do with each other: they are
opened only if they were seen broadly, and the root itself never is. A name that begins with a dot counts for nothing
there: `.ssh` lies beside whatever people work on. A path that a server may read in another way (`..`, `%2e`, a NUL) has
no parts at all.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from .generalise import MOST_LISTED, OPEN_SHARE, Node, Parts

FEWEST: Final = 3
"""Different children that a folder needs to be opened: two may be chance, or the two files that are meant."""

FEWEST_NEAR_ROOT: Final = 12
"""Of `/srv`, a home folder, or all hosts of a URI's scheme: who uses a dozen things in it uses it as a whole. A few
calls of an attacker do not reach it, and each of them must have been allowed."""

FEWEST_HOSTS: Final = 3
"""Different hosts below a registrable domain, until all hosts below it are meant."""

FEWEST_NAMES: Final = 2
"""Different folders in which a name was denied, until it is the name that was denied."""

FEWEST_ENDINGS: Final = 3
"""Different files with an ending that were denied, until it is the ending."""

_HOMES: Final = frozenset({"home", "Users", "users"})
"""Folders at the root that have the home folders of people in them."""

ROOTS: Final = frozenset({("",), ("/",)})
"""Of relative and of absolute paths."""

NEVER: Final = re.compile(r"\.\.|%|[\0-\x1f\x7f*\\;&|`<>()]|\$[({]")
"""What a rule about a place cannot have in it, or what an allow rule never covers: `*` would be a wildcard."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATH: Final = re.compile(r"[/~]|\.{1,2}/|[A-Za-z]:[\\/]|[^\s/]+/[^\s/]")
_HOST: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?::\d+)?(?:[/?#].*)?", re.DOTALL | re.IGNORECASE)
"""As an allow rule reads it: without a user's name before the host."""

_ADDRESS: Final = re.compile(r"[0-9.]+")
_MOST_LABELS: Final = 10

_SECOND_LEVEL: Final = frozenset({
    "ac", "co", "com", "edu", "gov", "govt", "ltd", "mil", "me", "ne", "net", "nom", "or", "org", "plc", "sch",
})  # fmt: skip
"""Labels below the domain of a country under which names are registered: `co.uk`, `com.au`."""

_SHARED: Final = frozenset({
    "amazonaws.com", "appspot.com", "azurewebsites.net", "blogspot.com", "cloudapp.net", "cloudfront.net",
    "core.windows.net", "deno.dev", "firebaseapp.com", "fly.dev", "github.io", "githubusercontent.com", "gitlab.io",
    "googleusercontent.com", "herokuapp.com", "netlify.app", "ngrok.io", "ngrok-free.app", "onrender.com", "pages.dev",
    "r2.dev", "readthedocs.io", "repl.co", "run.app", "s3.amazonaws.com", "surge.sh", "trycloudflare.com",
    "vercel.app", "web.app", "windows.net", "wordpress.com", "workers.dev",
})  # fmt: skip
"""Domains below which anybody gets a host: what was seen of one says nothing about the next."""


def looks_like_path(text: str) -> bool:
    """True if a text seems to be a path: it has a folder, or begins as one."""
    return len(text) <= 4096 and "\n" not in text and "://" not in text and _PATH.match(text) is not None


def path_parts(path: str) -> Parts | None:
    """The parts of a path, first where it starts: `/`, `~`, or `` for a relative one. None: it is never generalised."""
    if not path or NEVER.search(path) or path != path.strip() or "//" in path or (path[-1] == "/" and path != "/"):
        return None
    first, _, rest = path.partition("/")
    if first == "~":
        start = "~"
    elif not first:
        start = "/"
    else:
        start, rest = "", path
    names = rest.split("/")
    if "." in names[start == "" :] or (rest and "" in names[:-1]):
        return None
    return (start, *(name for name in names if name))


def uri_parts(uri: str) -> Parts | None:
    """The parts of a URI: `scheme://host`, and the folders of its path. None: it is never generalised."""
    scheme, slashes, rest = uri.partition("://")
    if not slashes or NEVER.search(uri) or "?" in uri or "#" in uri or "@" in rest.partition("/")[0] or "//" in rest:
        return None
    host, _, path = rest.partition("/")
    names = [name for name in path.split("/") if name]
    return None if "." in names else (f"{scheme}://{host}", *names)


def folder_text(parts: Parts) -> str:
    """The text of the rule about everything below these parts."""
    return place_text(parts).rstrip("/") + "/*"


def place_text(parts: Parts) -> str:
    """The path or URI with these parts."""
    start, *names = parts
    below = "/".join(names)
    if start == "/":
        return f"/{below}"
    return "/".join(filter(None, (start, below)))


def children_needed(parts: Parts, node: Node) -> int | None:
    """How many different children a folder needs to be opened, as `generalise.opened` asks."""
    if not parts or parts in ROOTS or (len(parts) == 1 and parts[0].endswith("://")):
        return None
    if not _is_near_root(parts):
        return FEWEST
    return FEWEST_NEAR_ROOT + sum(name.startswith(".") for name in node.children)


def _is_near_root(parts: Parts) -> bool:
    start, *names = parts
    if start not in ("/", "file://"):
        return start == "~" and not names
    return len(names) == 1 or (len(names) == 2 and names[0] in _HOMES)


def host_of(address: str) -> str:
    """The host of an http address, in small letters; empty: an allow rule cannot cover it."""
    match = _HOST.fullmatch(address)
    return match[1].lower() if match else ""


def resolved(place: str) -> str:
    """A path or the URI of a file as its server may read it: without `..`, percent signs, backslashes and blanks."""
    scheme, slashes, rest = unquote(place).strip().replace("\\", "/").partition("://")
    if not slashes:
        scheme, rest = "", scheme
    path = posixpath.normpath(rest) if rest else rest
    return path if not scheme or scheme == "file" else f"{scheme}://{path}"


def loose_host_of(address: str) -> str:
    """The host that whoever reads an address tolerantly goes to, in small letters and Punycode; empty: none."""
    text = unicodedata.normalize("NFKC", unquote("".join(filter(str.isprintable, address)).strip()))
    rest = _SCHEME.sub("", text.replace("\\", "/"), count=1).lstrip("/")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2].partition(":")[0].strip(".").lower()
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def hosts_text(hosts: Mapping[str, int], barred: Sequence[str]) -> dict[str, frozenset[str]]:
    """The domains that cover these hosts, each with the hosts that it is for: `api.example.com`, or `*.example.com`."""
    below: dict[str, set[str]] = {}
    for host in hosts:
        domain = registrable(host)
        if domain and host != domain:
            below.setdefault(domain, set()).add(host)
    domains: dict[str, frozenset[str]] = {}
    for domain, names in below.items():
        calls = sum(hosts[name] for name in names)
        only_once = sum(hosts[name] == 1 for name in names)
        is_open = only_once > OPEN_SHARE * calls or len(names) > MOST_LISTED
        if len(names) >= FEWEST_HOSTS and is_open and not any(_is_below(host, domain) for host in barred):
            domains[f"*.{domain}"] = frozenset(names)
    covered = frozenset().union(*domains.values()) if domains else frozenset()
    return domains | {host: frozenset({host}) for host in hosts if host not in covered}


def registrable(host: str) -> str:
    """The domain that somebody has registered, as far as that is known; empty: the host stands for itself."""
    labels = host.split(".")
    if _ADDRESS.fullmatch(host) or len(labels) < 2 or len(labels) > _MOST_LABELS or "" in labels:
        return ""
    needed = 3 if len(labels[-1]) == 2 and (labels[-2] in _SECOND_LEVEL or len(labels[-2]) == 2) else 2
    domain = ".".join(labels[-needed:])
    shared = any(".".join(labels[-length:]) in _SHARED for length in range(2, len(labels) + 1))
    return "" if shared or len(labels) < needed else domain


def _is_below(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


# --- what was denied ---


def denied_names(denied: Iterable[str], others: Iterable[str]) -> dict[str, frozenset[str]]:
    """Rules about names that were denied wherever they stand, each with the paths that it explains.

    That is a file (`**/.env`), a folder (`**/secrets/*`) or an ending (`**/*.pem`), which no path has that passed. It
    is the name only if it was denied in several places, and explains most of what was denied there.
    """
    places = {path: parts for path in denied if (parts := path_parts(path)) is not None and len(parts) > 1}
    passed_parts = [parts for path in others if (parts := path_parts(path)) is not None]
    passed = {rule for parts in passed_parts for rule in _name_rules(parts)}
    regions = _regions(places.values(), passed_parts)
    denied_in: dict[Parts, int] = {}
    by_rule: dict[str, set[str]] = {}
    for path, parts in places.items():
        denied_in[regions[parts]] = denied_in.get(regions[parts], 0) + 1
        for rule in _name_rules(parts):
            by_rule.setdefault(rule, set()).add(path)
    rules: dict[str, frozenset[str]] = {}
    left = set(places)
    for rule in sorted(by_rule, key=lambda rule: (-len(by_rule[rule]), rule)):
        paths = by_rule[rule]
        touched = {regions[places[path]] for path in paths}
        fewest = FEWEST_ENDINGS if rule.startswith("**/*.") else FEWEST_NAMES
        explains = 2 * len(paths) >= sum(denied_in[region] for region in touched)
        if len(touched) >= FEWEST_NAMES and len(paths) >= fewest and explains and paths & left and rule not in passed:
            rules[rule] = frozenset(paths)
            left -= paths
    return rules


def _regions(denied: Iterable[Parts], passed: Iterable[Parts]) -> dict[Parts, Parts]:
    """For each of what was denied, the highest folder around it in which nothing passed; itself, if there is none."""
    begun = {parts[:length] for parts in passed for length in range(len(parts) + 1)}
    return {
        parts: next(
            (parts[:length] for length in range(_first(parts), len(parts)) if parts[:length] not in begun), parts
        )
        for parts in denied
    }


def _first(parts: Parts) -> int:
    """The length of the shortest place in which something can be denied as a whole: no root is one."""
    return 1 if "://" in parts[0] and not parts[0].endswith("://") else 2


def _name_rules(parts: Parts) -> Iterator[str]:
    """The rules about one of the names in a path."""
    *folders, last = parts[1:] or ("",)
    yield from (f"**/{name}/*" for name in folders if name)
    if last:
        yield f"**/{last}"
        stem, dot, ending = last.rpartition(".")
        if stem and dot and ending:
            yield f"**/*.{ending}"


def denied_folders(denied: Iterable[str], others: Iterable[str], *, uris: bool) -> tuple[list[str], list[str]]:
    """Rules about the highest folders in which several paths were denied and none passed, and about single paths.

    The second list has the paths beside which others passed, in the same folder.
    """
    parts_of = uri_parts if uris else path_parts
    passed = [parts for path in others if (parts := parts_of(path)) is not None]
    paths = {parts: path for path in denied if (parts := parts_of(path)) is not None and len(parts) > 1}
    below: dict[Parts, list[Parts]] = {}
    for parts, region in _regions(paths, passed).items():
        below.setdefault(region, []).append(parts)
    rules = [
        folder_text(folder) if len(inside) > 1 and folder not in inside else place_text(inside[0])
        for folder, inside in below.items()
    ]
    begun = {parts[:length] for parts in passed for length in range(len(parts) + 1)}
    return rules, [path for parts, path in paths.items() if parts in below and parts[:-1] in begun]
