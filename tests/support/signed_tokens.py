"""Keys of an issuer, and JWTs that they sign: right ones, and every wrong one that a test asks for."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from joserfc.jwa import JWSAlgModel
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry, serialize_compact

AUDIENCE = "https://mcp.example.com"


class _AnySignature(JWSRegistry):
    def get_alg(self, name: str) -> JWSAlgModel:
        return self.algorithms[name]


_REGISTRY = _AnySignature(strict_check_header=False)


@cache
def rsa_key() -> RSAKey:
    """One for each process: to make it takes 100 ms."""
    return RSAKey.generate_key(2048)


@dataclass
class SigningKey:
    kid: str
    algorithm: str = "ES256"
    key: RSAKey | ECKey | OKPKey = field(default_factory=ECKey.generate_key)

    def public(self, **members: Any) -> dict[str, Any]:  # noqa: ANN401  # any JSON
        return {**self.key.as_dict(private=False), "kid": self.kid, **members}

    def token(self, issuer: str, *, header: dict[str, Any] | None = None, **claims: Any) -> str:  # noqa: ANN401
        """An access token of alice that is valid for an hour; a claim or a header that is None is left out."""
        return self.sign(present({**self.claims(issuer), **claims}), **(header or {}))

    def claims(self, issuer: str) -> dict[str, Any]:
        now = time.time()
        alice = {"sub": "alice", "groups": ["developers"]}
        return {"iss": issuer, "aud": AUDIENCE, "exp": now + 3600, "iat": now, **alice}

    def sign(self, claims: object, **header: Any) -> str:  # noqa: ANN401
        full = present({"alg": self.algorithm, "kid": self.kid, "typ": "at+jwt", **header})
        payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        if full.keys() & {"crit", "b64"}:  # joserfc would not sign them
            return self.sign_raw(full, payload)
        return serialize_compact(full, payload, self.key, registry=_REGISTRY)

    def sign_raw(self, header: dict[str, Any], payload: bytes) -> str:
        """A token with just this header, signed by the right key, whatever the header says."""
        signing_input = f"{encoded(header)}.{encoded(payload)}"
        signature = _REGISTRY.get_alg(self.algorithm).sign(signing_input.encode(), self.key)
        return f"{signing_input}.{encoded(signature)}"


def present(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def encoded(part: object) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return urlsafe_b64encode(raw).decode().rstrip("=")
