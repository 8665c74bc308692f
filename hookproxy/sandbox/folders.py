"""Which folder contains which, and which of them belong to the system. Pure: paths are compared as texts.

Paths are real and absolute: whoever compares resolves links first, or a link would have two names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
"""Where the system's programs are, which every server reads."""

SYSTEM_FILES: Final = tuple(
    f"/etc/{name}"
    for name in (
        # names of accounts, hosts and services
        *("passwd", "group", "nsswitch.conf", "hosts", "host.conf", "gai.conf", "resolv.conf", "services", "protocols"),
        # certificates of the system's own trust, without /etc/ssl/private
        *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "ca-certificates", "pki/tls/certs", "pki/ca-trust"),
        *("pki/tls/cert.pem", "pki/tls/openssl.cnf", "crypto-policies"),
        # what programs and their libraries are
        *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-x86_64.path", "ld-musl-aarch64.path"),
        *("alternatives",),
        *("os-release", "debian_version", "mime.types", "fonts", "terminfo", "magic", "locale.alias", "locale.conf"),
        *(
            "localtime",
            "timezone",
            "python3",
            "python3.11",
            "python3.12",
            "python3.13",
            "perl",
            "java",
            "ImageMagick-6",
        ),
        *("profile", "bash.bashrc", "inputrc", "shells", "chromium", "chromium.d", "gitconfig", "gitattributes"),
    )
)
"""What programs read in /etc: names, certificates that everybody trusts, libraries, the time. Never the whole of /etc:
configurations of other programs contain secrets, and the gateway's own stands there."""

_COMMON: Final = frozenset(
    (
        *("/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/private", "/proc", "/root", "/run"),
        *("/srv", "/sys", "/tmp", "/Users", "/var", "/var/lib", "/var/tmp", "/private/tmp", "/private/var"),
    )
)
"""Folders of many owners: no program is installed in the whole of one."""


def is_within(path: str, folder: str) -> bool:
    """Whether the path is the folder, or lies in it."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def within_any(path: str, folders: Iterable[str]) -> bool:
    """Whether the path is one of the folders, or lies in one."""
    return any(is_within(path, folder) for folder in folders)


def overlaps(path: str, other: str) -> bool:
    """Whether one is the other, or lies in it."""
    return is_within(path, other) or is_within(other, path)


def is_common(folder: str, homes: Iterable[str]) -> bool:
    """Whether much else than one program lies there: a folder of the system, a home folder, or what contains one."""
    return folder in _COMMON or any(is_within(home, folder) for home in homes)
