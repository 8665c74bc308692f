"""Fetches a bundle from a web server, or from an OCI registry by its HTTP API (OCI distribution specification 1.1).

Redirects are followed within the origin only; those of a registry's blob also to another one, without what was sent
to the registry, because what comes must have the hash that the registry has named.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import quote, urlencode, urljoin

import msgspec
from anyio import to_thread
from msgspec import Meta, Struct

from ..archives import archive
from ..model.errors import UserError, printable
from ..network import address
from ..network.get import Document, Get
from .sources import Fetched, NotFetched, Source

LAYER: Final = "application/vnd.hookproxy.policy.v1.tar+gzip"
"""The media type of a bundle in a registry. It may be another one if there is one layer only."""

_MANIFESTS: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_MOST_REDIRECTS: Final = 3  # a registry's storage is one away; a moved page one or two
_ETAG: Final = re.compile(rb'(?:W/)?"[!#-~]{0,200}"')
"""One entity tag (RFC 9110). Whoever delivers once could else have each later version of another server skipped: by `*`
or a list, to which that server responds with 304, or by what cannot be sent."""

_CHALLENGE: Final = re.compile(r'(realm|service|scope)="([^"\\]*)"')


class _Layer(Struct, frozen=True):
    digest: Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]
    size: Annotated[int, Meta(ge=1, le=archive.MOST_BYTES)]
    media_type: str = msgspec.field(default="", name="mediaType")


class _ImageManifest(Struct, frozen=True):
    layers: tuple[_Layer, ...]


class _Token(Struct, frozen=True):
    token: str = ""
    access_token: str = ""


async def fetch(source: Source, get: Get, credential: str, mark: str) -> Fetched:
    """What the source has; `mark` is that of what was fetched last. Raises NotFetched, OSError, UserError.

    `credential` is a token, or `user:password`; empty: none is sent.
    """
    if source.kind == "oci":
        return await _Registry(source, get, credential).fetch(mark)
    headers = {"If-None-Match": mark} if mark else {}
    if credential:
        headers["Authorization"] = authorization(credential)
    document = await _within_origin(source.url, headers, get)
    if document.status == 304 and mark:
        return Fetched(None, mark)
    _check_status(document, source.url)
    tag = document.headers.get(b"etag", b"")
    files = await to_thread.run_sync(_unpacked, document.body)
    return Fetched(files, tag.decode("ascii") if _ETAG.fullmatch(tag) else "")


def authorization(credential: str) -> str:
    """The value of the header for it."""
    if ":" in credential:
        return f"Basic {base64.b64encode(credential.encode()).decode()}"
    return f"Bearer {credential}"


def _unpacked(data: bytes) -> Mapping[str, bytes]:
    try:
        return archive.read(data)
    except ValueError as problem:
        raise NotFetched(f"what is there is not a bundle: {problem}") from None


def _unpacked_blob(data: bytes, digest: str) -> Mapping[str, bytes]:
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
        raise NotFetched("the registry has sent another blob than the one of its manifest")
    return _unpacked(data)


def _check_status(document: Document, url: str) -> None:
    if document.status == 200:
        return
    why = {401: ": it wants a credential", 403: ": it refuses the credential", 404: ": there is nothing"}
    raise NotFetched(f"{address.parse(url).origin} has responded with {document.status}{why.get(document.status, '')}")


async def _within_origin(url: str, headers: Mapping[str, str], get: Get) -> Document:
    place = address.parse(url)
    for _ in range(_MOST_REDIRECTS + 1):
        document = await get(url, headers)
        location = document.headers.get(b"location", b"").decode("latin-1")
        if not 300 <= document.status < 400 or document.status == 304:
            return document
        target = place.same_origin_target(address.parse(url).target, location)
        if target is None:
            raise NotFetched(f"{place.origin} redirects to another origin: {printable(location[:200])}")
        url = f"{place.origin}{target.decode()}"
    raise NotFetched(f"{place.origin} redirects too often")


class _Registry:
    """One fetch from a registry: the first refusal says where a token is to be had, which is then sent."""

    def __init__(self, source: Source, get: Get, credential: str) -> None:
        self._source = source
        self._get = get
        self._credential = credential
        self._authorization: dict[str, str] = {}

    async def fetch(self, mark: str) -> Fetched:
        base = f"{self._source.url}/v2/{self._source.name}"
        url = f"{base}/manifests/{quote(self._source.reference, safe=':')}"
        document = await _within_origin(url, self._headers(), self._get)
        if document.status == 401 and await self._log_in(document):
            document = await _within_origin(url, self._headers(), self._get)
        _check_status(document, url)
        digest = f"sha256:{hashlib.sha256(document.body).hexdigest()}"
        if self._source.reference.startswith("sha256:") and digest != self._source.reference:
            raise NotFetched("the registry has sent another manifest than the one of this digest")
        if digest == mark:
            return Fetched(None, mark)
        layer = _layer(document.body)
        data = await self._blob(f"{base}/blobs/{layer.digest}")
        return Fetched(await to_thread.run_sync(_unpacked_blob, data, layer.digest), digest)

    def _headers(self) -> dict[str, str]:
        return {"Accept": ", ".join(_MANIFESTS), **self._authorization}

    async def _log_in(self, document: Document) -> bool:
        """Get what the registry asks for. False: it asks for nothing that there is. Raises NotFetched."""
        challenge = document.headers.get(b"www-authenticate", b"").decode("latin-1")
        scheme = challenge.partition(" ")[0].lower()
        if scheme == "basic" and self._credential:
            self._authorization = {"Authorization": authorization(self._credential)}
            return True
        asked = dict(_CHALLENGE.findall(challenge))
        realm = asked.pop("realm", "")
        if scheme != "bearer" or not realm:
            return False
        headers = {"Authorization": authorization(self._credential)} if self._credential else {}
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(asked)}"
        self._check_place(url, "names a token server", with_secret=bool(self._credential))
        answered = await self._get(url, headers)
        _check_status(answered, url)
        try:
            token = msgspec.json.decode(answered.body, type=_Token)
        except (ValueError, RecursionError):
            raise NotFetched("the registry's token server has not responded with a token") from None
        text = token.token or token.access_token
        if not text or not text.isascii() or not text.isprintable():
            raise NotFetched("the registry's token server has not responded with a token")
        self._authorization = {"Authorization": f"Bearer {text}"}
        return True

    def _check_place(self, url: str, what: str, *, with_secret: bool = False) -> None:
        """Raise NotFetched unless the registry may send us there: not to this machine, and with a secret not far."""
        try:
            host = address.parse(url).host
        except UserError as problem:
            raise NotFetched(f"the registry {what} that cannot be asked: {problem.message}") from None
        own = address.parse(self._source.url).host
        if address.is_loopback(host) and not address.is_loopback(own):
            raise NotFetched(f"the registry {what} on this machine")
        if with_secret and own != host and _site(own) != _site(host):
            raise NotFetched(f"the registry {what} at {host}, which does not get the credential of {own}")

    async def _blob(self, url: str) -> bytes:
        headers = self._authorization
        origin = address.parse(url).origin
        for _ in range(_MOST_REDIRECTS + 1):
            document = await self._get(url, headers)
            if not 300 <= document.status < 400:
                _check_status(document, url)
                return document.body
            url = urljoin(url, document.headers.get(b"location", b"").decode("latin-1"))
            self._check_place(url, "redirects")
            if address.parse(url).origin != origin:
                headers = {}  # and never again: the way may lead back
        raise NotFetched(f"{origin} redirects too often")


def _site(host: str) -> str:
    """The last two names: registry.gitlab.com and gitlab.com belong together, and two addresses never do."""
    return host if host.replace(".", "").isdigit() or ":" in host else ".".join(host.split(".")[-2:])


def _layer(text: bytes) -> _Layer:
    try:
        layers = msgspec.json.decode(text, type=_ImageManifest).layers
    except (ValueError, RecursionError) as problem:
        raise NotFetched(f"what the registry has there is not an image manifest: {printable(str(problem))}") from None
    ours = [layer for layer in layers if layer.media_type == LAYER] or list(layers)
    if len(ours) != 1:
        raise NotFetched(f"the registry's manifest has {len(ours)} layers, and it is not clear which one is the bundle")
    return ours[0]
