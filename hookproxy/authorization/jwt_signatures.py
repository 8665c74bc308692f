"""The signatures of JWTs: which are accepted, and how a client makes one. RFC 7515, RFC 7518, RFC 8037. No I/O.

This module and `verify_jwt` alone import `joserfc`, which takes 60 ms and belongs to the extras `gateway` and `remote`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry, serialize_compact

if TYPE_CHECKING:
    from joserfc.jwa import JWSAlgModel

ALGORITHMS: Final[Mapping[str, type[RSAKey | ECKey | OKPKey]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), RSAKey),
    **dict.fromkeys(("ES256", "ES384", "ES512"), ECKey),
    **dict.fromkeys(("EdDSA", "Ed25519"), OKPKey),
}
"""The signatures that are accepted, with their type of key: all are asymmetric. Whoever can check a symmetric one can
also make one, and `none` is not a signature."""

MAX_HEADER: Final = 4096
"""Characters of a JWT's header: most have 150, one with a certificate 3,000."""

_CLIENT_ALGORITHMS: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}
"""The signatures that a client makes, by the curve of its key."""


class _Registry(JWSRegistry):
    """joserfc's table of signatures, with ours only and with our lengths; `EdDSA` is an old name, but no warning."""

    max_header_length = MAX_HEADER
    max_payload_length = 16_384  # the listener's limit for all headers of a request is not much more
    max_signature_length = 2048  # RSA with 8,192 bits has 1,366

    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError
        return self.algorithms[name]


REGISTRY: Final = _Registry(strict_check_header=False)  # members without a meaning here are ignored (RFC 7515)


def sign(claims: Mapping[str, object], private_key: bytes) -> str:
    """A JWT with these claims, signed by the private key, a PEM without a password.

    Raises ValueError without a text if the key cannot be used: the errors of libraries may quote a part of it.
    """
    for key_type in (RSAKey, ECKey, OKPKey):
        try:
            key = key_type.import_key(private_key)
            algorithm = "RS256" if isinstance(key, RSAKey) else _CLIENT_ALGORITHMS[key.curve_name]
            header = {"alg": algorithm, "typ": "JWT"}
            return serialize_compact(header, msgspec.json.encode(claims), key, registry=REGISTRY)
        except (JoseError, UnsupportedAlgorithm, ValueError, TypeError, KeyError):  # of another type, or unusable
            continue
    raise ValueError
