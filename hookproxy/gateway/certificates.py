"""What is wrong with the files of certificates that gateway.toml names, in words and with the repair."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..processes import service

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


def why_not_read(path: str) -> str:
    """Why certificates cannot be read from this file, and what to do; empty if they can."""
    import ssl

    try:
        with open(path, "rb") as file:
            text = file.read()
    except PermissionError as error:
        return f"cannot be read: {error.strerror} ({service.how_to_let_read(path)})"
    except OSError as error:
        return f"cannot be read: {error.strerror} (a relative path starts from the folder of gateway.toml)"
    try:
        ssl.PEM_cert_to_DER_cert(text[text.index(b"-----BEGIN CERTIFICATE") :].decode().partition("-----END")[0] + _END)
    except (ValueError, UnicodeDecodeError):
        return f"has no certificate as PEM (openssl x509 -inform DER -in {path} writes one that is DER as PEM)"
    return ""


_END = "-----END CERTIFICATE-----\n"


def why_not_valid(path: str) -> str:
    """Why agents refuse the first certificate in this file, and what to do; empty: they do not, or it is not known."""
    certificate = _first(path)
    if certificate is None:
        return ""
    begins, ends, now = certificate.not_valid_before_utc, certificate.not_valid_after_utc, datetime.now(UTC)
    if now >= ends:
        return f"has expired on {ends:%Y-%m-%d}, so agents refuse it (renew it, and restart the gateway)"
    if now < begins:
        return (
            f"is valid only from {begins:%Y-%m-%d} on, so agents refuse it (name another, or set this machine's clock)"
        )
    return ""


def _first(path: str) -> Certificate | None:
    """The first certificate in a file; None if there is none, or nothing here reads it (the extra `gateway` does)."""
    try:
        from cryptography.x509 import load_pem_x509_certificates

        with open(path, "rb") as file:
            return load_pem_x509_certificates(file.read())[0]
    except (ImportError, OSError, ValueError):
        return None


def why_not_together(certificate: str, key: str, error: OSError) -> tuple[str, str]:
    """Why these two files, which can be read, are not a certificate and its key: the key of `[gateway.tls]` that is
    wrong, with what is wrong; and the repair.
    """
    if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
        show = f"openssl x509 -noout -pubkey -in {certificate}; openssl pkey -pubout -in {key}"
        return f"key: {key} is not the key of {certificate}", f"name the key that belongs to it: {show} print the same"
    first, second = _kinds(certificate), _kinds(key)
    if "CERTIFICATE" not in first:
        if "CERTIFICATE" in second and "KEY" in first:
            return f"certificate: {certificate} is a private key", "exchange the values of certificate and key"
        why, repair = why_not_read(certificate).removesuffix(")").split(" (", 1)
        return f"certificate: {certificate} {why}", repair
    if "ENCRYPTED" in second:
        hint = f"openssl pkey -in {key} -out {key}.plain writes it without; protect that file"
        return f"key: {key} is encrypted with a passphrase, which nobody is there to type", hint
    if "KEY" not in second:
        return (
            f"key: {key} has no private key as PEM",
            f"openssl pkey -inform DER -in {key} writes one that is DER as PEM",
        )
    return f"certificate: {certificate} and {key} cannot be used: {error.strerror or error}", "make both anew, as PEM"


def _kinds(path: str) -> str:
    """What the parts of a PEM file are called, in capitals."""
    with open(path, "rb") as file:
        lines = file.read().decode("latin-1").splitlines()
    return " ".join(line for line in lines if line.startswith(("-----BEGIN", "Proc-Type")))
