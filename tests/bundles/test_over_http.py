"""Bundles from web servers and from registries: redirects, limits, credentials, and what is not what was named."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping

import pytest

from hookproxy.archives import archive
from hookproxy.bundles import over_http, sources
from hookproxy.bundles.sources import Fetched, NotFetched
from hookproxy.network.get import Document, getter
from tests.support.http_server import Request, Respond, Server, serving
from tests.support.signed_policy import bundle, new_key, packed

FILES = bundle(new_key())
DATA = packed(FILES)
DIGEST = f"sha256:{hashlib.sha256(DATA).hexdigest()}"


def _no_tls() -> ssl.SSLContext:
    raise AssertionError("the address is http")


def answer(routes: Mapping[str, tuple[str, str, bytes]]) -> Respond:
    """Responds by path with status, further headers and body."""

    async def respond(request: Request) -> None:
        status, extra, body = routes.get(request.target, ("404 Not Found", "", b""))
        await request.json(body, status, extra)

    return respond


async def fetched(
    respond: Respond, address: str, credential: str = "", mark: str = "", limit: int = archive.MOST_BYTES
) -> tuple[Fetched, Server]:
    async with serving(respond) as server:
        source = sources.parse(address.format(port=server.port), "stable")
        return await over_http.fetch(source, getter({}, _no_tls, limit), credential, mark), server


WEB = "http://127.0.0.1:{port}/p"


async def test_a_web_servers_bundle_is_fetched_with_its_mark() -> None:
    found, server = await fetched(answer({"/p": ("200 OK", 'ETag: "1"\r\n', DATA)}), WEB, "a-token")
    assert found == Fetched(FILES, '"1"')
    assert server.requests[0].headers["authorization"] == "Bearer a-token"
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("tag", ["*", '"1", "2"', "1", '"a b"', f'"{"1" * 201}"', '"\xe4"'])
async def test_freeze_a_mark_that_would_match_other_versions_or_could_not_be_sent_is_none(tag: str) -> None:
    found, _ = await fetched(answer({"/p": ("200 OK", f"ETag: {tag}\r\n", DATA)}), WEB)
    assert found == Fetched(FILES, "")


async def test_what_has_not_changed_is_not_sent_again() -> None:
    found, server = await fetched(answer({"/p": ("304 Not Modified", "", b"")}), WEB, "u:p", '"1"')
    assert found == Fetched(None, '"1"')
    assert server.requests[0].headers["if-none-match"] == '"1"'
    assert server.requests[0].headers["authorization"] == f"Basic {base64.b64encode(b'u:p').decode()}"


async def test_a_redirect_within_the_origin_is_followed() -> None:
    routes = {"/p": ("302 Found", "Location: /q\r\n", b""), "/q": ("200 OK", "", DATA)}
    found, _ = await fetched(answer(routes), WEB)
    assert found.files == FILES


@pytest.mark.parametrize(
    ("route", "why"),
    [
        (("302 Found", "Location: https://evil.example/p\r\n", b""), "redirects to another origin"),
        (("302 Found", "Location: //evil.example/p\r\n", b""), "redirects to another origin"),
        (("302 Found", "", b""), "redirects too often"),
        (("302 Found", "Location: /p\r\n", b""), "redirects too often"),
        (("304 Not Modified", "", b""), "responded with 304"),
        (("401 Unauthorized", "", b""), "401: it wants a credential"),
        (("404 Not Found", "", b""), "404: there is nothing"),
        (("500 Oops", "", DATA), "responded with 500"),
        (("206 Partial Content", "", DATA), "responded with 206"),
        (("200 OK", "", b"<html>"), "not a bundle"),
        (("200 OK", "", gzip.compress(bytes(archive.MOST_BYTES + 1))), "unpacks to more"),
    ],
)
async def test_what_is_no_bundle_is_refused(route: tuple[str, str, bytes], why: str) -> None:
    with pytest.raises(NotFetched, match=why):
        await fetched(answer({"/p": route}), WEB)


async def test_an_encoded_response_is_not_unpacked_and_a_long_one_not_read() -> None:
    with pytest.raises(ConnectionError, match="encoded"):
        await fetched(answer({"/p": ("200 OK", "Content-Encoding: gzip\r\n", gzip.compress(DATA))}), WEB)
    with pytest.raises(ConnectionError, match="too long"):
        await fetched(answer({"/p": ("200 OK", "", DATA)}), WEB, limit=len(DATA) - 1)


# --- registries ---

OCI = "oci://127.0.0.1:{port}/acme/policy"


def image(*layers: Mapping[str, object]) -> bytes:
    return json.dumps({"schemaVersion": 2, "layers": layers or [layer()]}).encode()


def layer(**changes: object) -> dict[str, object]:
    return {"mediaType": over_http.LAYER, "digest": DIGEST, "size": len(DATA), **changes}


def registry(manifest: bytes, blob: bytes = DATA) -> dict[str, tuple[str, str, bytes]]:
    return {
        "/v2/acme/policy/manifests/stable": ("200 OK", "", manifest),
        f"/v2/acme/policy/blobs/{DIGEST}": ("200 OK", "", blob),
    }


async def test_a_registrys_bundle_is_fetched_by_tag_and_digest() -> None:
    found, server = await fetched(answer(registry(image())), OCI)
    mark = f"sha256:{hashlib.sha256(image()).hexdigest()}"
    assert found == Fetched(FILES, mark)
    assert "application/vnd.oci.image.manifest.v1+json" in server.requests[0].headers["accept"]
    again, server = await fetched(answer(registry(image())), OCI, mark=mark)
    assert again == Fetched(None, mark)
    assert len(server.requests) == 1


async def test_the_layer_of_our_type_is_taken_among_others() -> None:
    other = layer(mediaType="text/plain", digest="sha256:" + "0" * 64)
    found, _ = await fetched(answer(registry(image(other, layer()))), OCI)
    assert found.files == FILES
    found, _ = await fetched(answer(registry(image(layer(mediaType="application/octet-stream")))), OCI)
    assert found.files == FILES


@pytest.mark.parametrize(
    ("routes", "why"),
    [
        (registry(image(), DATA + b"x"), "another blob than the one of its manifest"),
        (registry(image(layer(), layer())), "2 layers"),
        (registry(b'{"layers":[]}'), "0 layers"),
        (registry(b'{"manifests":[]}'), "not an image manifest"),
        (registry(b"[" * 9999), "not an image manifest"),
        (registry(image(layer(digest="sha256:../../x"))), "not an image manifest"),
        (registry(image(layer(size=archive.MOST_BYTES + 1))), "not an image manifest"),
        ({}, "404"),
    ],
)
async def test_what_the_registry_has_not_named_is_refused(
    routes: Mapping[str, tuple[str, str, bytes]], why: str
) -> None:
    with pytest.raises(NotFetched, match=why):
        await fetched(answer(routes), OCI)


async def test_a_manifest_of_another_digest_than_the_one_that_was_asked_for_is_refused() -> None:
    routes = {f"/v2/a/manifests/sha256:{'0' * 64}": ("200 OK", "", image())}
    with pytest.raises(NotFetched, match="another manifest"):
        await fetched(answer(routes), "oci://127.0.0.1:{port}/a@sha256:" + "0" * 64)


def asking_for_token(check: Callable[[Request], Awaitable[bool]]) -> Respond:
    """A registry that names its token server; `check` says whether that gives one."""

    async def respond(request: Request) -> None:
        host = request.headers["host"]
        if request.target.startswith("/token"):
            allowed = await check(request)
            await request.json(b'{"token":"t-1"}' if allowed else b"{}", "200 OK" if allowed else "401 No")
        elif request.headers.get("authorization") == "Bearer t-1":
            await answer(registry(image()))(request)
        else:
            challenge = f'Bearer realm="http://{host}/token",service="r",scope="repository:acme/policy:pull"'
            await request.json(b"", "401 Unauthorized", f"WWW-Authenticate: {challenge}\r\n")

    return respond


async def test_a_token_is_fetched_without_a_credential_or_with_it() -> None:
    async def anonymous(request: Request) -> bool:
        assert request.target == "/token?service=r&scope=repository%3Aacme%2Fpolicy%3Apull"
        return "authorization" not in request.headers

    async def known(request: Request) -> bool:
        return request.headers.get("authorization") == f"Basic {base64.b64encode(b'u:p').decode()}"

    found, _ = await fetched(asking_for_token(anonymous), OCI)
    assert found.files == FILES
    found, _ = await fetched(asking_for_token(known), OCI, "u:p")
    assert found.files == FILES
    with pytest.raises(NotFetched, match="401"):
        await fetched(asking_for_token(known), OCI, "u:wrong")


async def test_a_token_server_that_would_be_asked_unencrypted_is_not_asked() -> None:
    challenge = 'WWW-Authenticate: Bearer realm="http://evil.example/token"\r\n'
    routes = {"/v2/acme/policy/manifests/stable": ("401 Unauthorized", challenge, b"")}
    with pytest.raises(NotFetched, match="unencrypted"):
        await fetched(answer(routes), OCI, "u:p")


@pytest.mark.parametrize(
    ("registry_url", "credential", "realm", "why"),
    [
        ("oci://r.example/a", "", "https://127.0.0.1/token", "token server on this machine"),
        ("oci://r.example/a", "u:p", "https://evil.example.org/token", "does not get the credential of r.example"),
        ("oci://10.0.0.1/a", "u:p", "https://10.9.0.1/token", "does not get the credential of 10.0.0.1"),
        ("oci://registry.gitlab.com/a", "u:p", "https://gitlab.com/jwt/auth", ""),
        ("oci://r.example/a", "", "https://auth.example.org/token", ""),
    ],
)
async def test_a_registry_sends_a_credential_nowhere_else_and_us_not_to_this_machine(
    registry_url: str, credential: str, realm: str, why: str
) -> None:
    asked = []

    async def get(url: str, headers: Mapping[str, str]) -> Document:
        asked.append((url.partition("?")[0], headers.get("Authorization", "")))
        return Document(401, {b"www-authenticate": f'Bearer realm="{realm}"'.encode()}, b"")

    with pytest.raises(NotFetched, match=why or "responded with 401"):
        await over_http.fetch(sources.parse(registry_url, "stable"), get, credential, "")
    assert len(asked) == (1 if why else 2)


async def test_a_blob_on_this_machine_is_not_fetched_for_a_registry_elsewhere() -> None:
    async def get(url: str, headers: Mapping[str, str]) -> Document:
        assert "127.0.0.1" not in url
        if "/blobs/" in url:
            return Document(307, {b"location": b"http://127.0.0.1:9090/metrics"}, b"")
        return Document(200, {}, image())

    with pytest.raises(NotFetched, match="redirects on this machine"):
        await over_http.fetch(sources.parse("oci://r.example/a", "stable"), get, "", "")


async def test_a_blob_may_lie_elsewhere_where_no_token_goes() -> None:
    async with serving(answer({"/storage": ("200 OK", "", DATA)})) as storage:
        moved = f"Location: http://127.0.0.1:{storage.port}/storage\r\n"

        async def respond(request: Request) -> None:
            if request.headers.get("authorization") != f"Basic {base64.b64encode(b'u:p').decode()}":
                await request.json(b"", "401 Unauthorized", 'WWW-Authenticate: Basic realm="r"\r\n')
            elif "/blobs/" in request.target:
                await request.json(b"", "307 Temporary Redirect", moved)
            else:
                await request.json(image())

        found, _ = await fetched(respond, OCI, "u:p")
        assert found.files == FILES
        assert "authorization" not in storage.requests[0].headers
