"""Addresses of policies: what each means, and what is refused before anything is asked."""

from __future__ import annotations

import pytest

from hookproxy.bundles.sources import Source, parse
from hookproxy.model.errors import UserError


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("https://p.example/{ring}.tar.gz", Source("https", "https://p.example/canary.tar.gz")),
        ("https://p.example/policy.tar", Source("https", "https://p.example/policy.tar")),
        ("http://127.0.0.1:80/x", Source("https", "http://127.0.0.1:80/x")),
        ("oci://ghcr.io/acme/policy", Source("oci", "https://ghcr.io", "acme/policy", "canary")),
        ("oci://r.example:5000/a:{ring}-2", Source("oci", "https://r.example:5000", "a", "canary-2")),
        ("oci://localhost:5000/a", Source("oci", "http://localhost:5000", "a", "canary")),
        ("oci://r.example/a@sha256:" + "0" * 64, Source("oci", "https://r.example", "a", "sha256:" + "0" * 64)),
        ("git+https://h.example/p", Source("git", "https://h.example/p", "", "refs/heads/canary")),
        ("https://h.example/p.git", Source("git", "https://h.example/p.git", "", "refs/heads/canary")),
        ("https://h.example/p.git#main", Source("git", "https://h.example/p.git", "", "refs/heads/main")),
        ("git+ssh://git@h.example/p", Source("git", "ssh://git@h.example/p", "", "refs/heads/canary")),
        ("ssh://git@h.example:22/p", Source("git", "ssh://git@h.example:22/p", "", "refs/heads/canary")),
        ("git@h.example:a/p.git", Source("git", "ssh://git@h.example/a/p.git", "", "refs/heads/canary")),
        ("git+file:///srv/p#refs/tags/v1", Source("git", "file:///srv/p", "", "refs/tags/v1")),
    ],
)
def test_an_address_names_a_source(text: str, source: Source) -> None:
    assert parse(text, "canary") == source


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("policy.tar.gz", "is not the address of a policy"),
        ("/srv/policy.tar.gz", "is not the address of a policy"),
        ("ftp://h.example/p", "is not the address of a policy"),
        ("ext::sh -c id", "is not the address of a policy"),
        ("git+ext://sh", "is not the address of a policy"),
        ("http://p.example/x", "unencrypted"),
        ("git+http://p.example/x", "unencrypted"),
        ("https://user:secret@p.example/x", "contains credentials"),
        ("git+https://token@p.example/x", "contains credentials"),
        ("https://p.example/x#y", "fragment"),
        ("https://", "is not an address"),
        ("https://p.example:99999/", "not an address|Port|port"),
        ("https://p.example/a b", "blank"),
        ("oci://ghcr.io", "names no repository"),
        ("oci://ghcr.io/Acme", "names no repository"),
        ("oci://ghcr.io/../a", "names no repository"),
        ("oci://ghcr.io/a:b c", "no tag"),
        ("oci://ghcr.io/a@sha256:12", "no tag"),
        ("git+file://host/srv", "not an absolute path"),
        ("git+ssh:///p", "names no host"),
        ("git+ssh://-oProxyCommand=id/p", "names no host"),
        ("git+ssh://-x@h.example/p", "names no host"),
        ("git+https://h.example/p#--upload-pack=id", "is not a branch"),
        ("git+https://h.example/p#a..b", "is not a branch"),
        ("git+https://h.example/p#+refs/heads/*", "is not a branch"),
        ("git+https://h.example/p\n", "blank|control"),
    ],
)
def test_what_is_no_address_is_refused_with_a_hint(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why) as caught:
        parse(text, "stable")
    assert caught.value.hint
    assert "--" not in caught.value.hint
    assert "secret" not in str(caught.value)
