"""Metadata of a server behind a gateway, and the challenge that leads to it."""

from __future__ import annotations

import json

import pytest
from mcp.shared.auth import ProtectedResourceMetadata

from hookproxy.authorization.challenges import parameters
from hookproxy.authorization.resource_metadata import protected_resource
from hookproxy.model.errors import UserError

ISSUER = "https://idp.example.com/realm"


@pytest.mark.parametrize(
    ("public_url", "name", "url", "metadata"),
    [
        (
            "https://mcp.example.com",
            "git",
            "https://mcp.example.com/mcp/git",
            "https://mcp.example.com/.well-known/oauth-protected-resource/mcp/git",
        ),
        (
            "https://example.com:8443/gateway/",
            "git",
            "https://example.com:8443/gateway/mcp/git",
            "https://example.com:8443/.well-known/oauth-protected-resource/gateway/mcp/git",
        ),
        (
            "HTTPS://MCP.example.com:443",
            "git",
            "https://mcp.example.com/mcp/git",
            "https://mcp.example.com/.well-known/oauth-protected-resource/mcp/git",
        ),
        (
            "http://127.0.0.1:8765",
            'a/"b',
            "http://127.0.0.1:8765/mcp/a%2F%22b",
            "http://127.0.0.1:8765/.well-known/oauth-protected-resource/mcp/a%2F%22b",
        ),
    ],
)
def test_the_metadata_is_where_rfc_9728_has_it(public_url: str, name: str, url: str, metadata: str) -> None:
    resource = protected_resource(public_url, name, ISSUER, ["mcp:read", "mcp:call"])
    assert (resource.url, resource.metadata_url) == (url, metadata)
    assert metadata.endswith(resource.metadata_path)
    assert json.loads(resource.metadata) == {
        "resource": url,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["mcp:read", "mcp:call"],
        "bearer_methods_supported": ["header"],
    }


def test_a_challenge_is_read_as_our_own_client_reads_it() -> None:
    resource = protected_resource("https://mcp.example.com", "git", ISSUER, ["mcp:read", "mcp:call"])
    assert parameters(resource.challenge("insufficient_scope", "the token lacks a scope")) == {
        "resource_metadata": resource.metadata_url,
        "scope": "mcp:read mcp:call",
        "error": "insufficient_scope",
        "error_description": "the token lacks a scope",
    }


def test_the_metadata_is_read_by_the_sdk_of_agents() -> None:
    resource = protected_resource("https://mcp.example.com", "git", ISSUER)
    read = ProtectedResourceMetadata.model_validate_json(resource.metadata)
    assert (str(read.resource), [str(one) for one in read.authorization_servers]) == (resource.url, [ISSUER])
    assert read.scopes_supported is None


def test_without_an_issuer_no_agent_is_sent_to_look_for_one() -> None:
    resource = protected_resource("https://mcp.example.com", "git", "")
    assert resource.challenge() == 'Bearer realm="hookproxy"'
    assert resource.metadata == b""


@pytest.mark.parametrize(
    ("public_url", "scope"),
    [
        ("mcp.example.com", "a"),
        ("https://mcp.example.com/?x=1", "a"),
        ('https://mcp.example.com/"', "a"),
        ("https://user@mcp.example.com", "a"),
        ("https://mcp.example.com", 'a"b'),
        ("https://mcp.example.com", "a b"),
        ("https://mcp.example.com", "a\r\nSet-Cookie: x"),
        ("https://mcp.example.com", ""),
    ],
)
def test_what_would_break_the_header_is_refused(public_url: str, scope: str) -> None:
    with pytest.raises(UserError):
        protected_resource(public_url, "git", ISSUER, [scope])
