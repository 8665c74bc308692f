"""Signatures are those of ssh-keygen, in both directions; only the key, the purpose and the text count."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from hookproxy.model.errors import UserError
from hookproxy.signing import ssh_signature
from hookproxy.signing.keys import PrivateKey, PublicKey, parse_private, parse_public, parse_public_file
from hookproxy.signing.ssh_signature import BadSignature

PURPOSE = "hookproxy-test"
TEXT = b"what is signed\n"


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a comment", "-f", path], check=True)
    return path


@pytest.fixture(scope="module")
def private(key_file: Path) -> PrivateKey:
    return parse_private(key_file.read_bytes(), "key")


@pytest.fixture(scope="module")
def public(key_file: Path) -> PublicKey:
    return parse_public(key_file.with_suffix(".pub").read_text())


def other_key() -> PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return PrivateKey(Ed25519PrivateKey.generate())


def unarmoured(signature: bytes) -> bytes:
    return base64.b64decode(b"".join(signature.split(b"\n")[1:-2]))


def test_what_ssh_keygen_has_signed_is_accepted(key_file: Path, public: PublicKey) -> None:
    signed = subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", key_file, "-n", PURPOSE], input=TEXT, capture_output=True, check=True
    ).stdout
    assert ssh_signature.verify(signed, PURPOSE, TEXT, [other_key().public, public]) == public


def test_ssh_keygen_accepts_what_we_have_signed(key_file: Path, private: PrivateKey, tmp_path: Path) -> None:
    (tmp_path / "sig").write_bytes(ssh_signature.sign(private, PURPOSE, TEXT))
    (tmp_path / "signers").write_text(f"me {private.public.line}\n")
    command = ["ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "signers"), "-I", "me", "-n", PURPOSE]
    subprocess.run([*command, "-s", str(tmp_path / "sig")], input=TEXT, check=True, capture_output=True)


def test_a_key_has_the_fingerprint_and_the_line_of_ssh_keygen(key_file: Path, public: PublicKey) -> None:
    shown = subprocess.run(["ssh-keygen", "-lf", key_file], capture_output=True, text=True, check=True).stdout
    assert public.fingerprint in shown.split()
    assert public.line == key_file.with_suffix(".pub").read_text().strip()


def test_another_text_purpose_or_key_is_refused(private: PrivateKey) -> None:
    signed = ssh_signature.sign(private, PURPOSE, TEXT)
    for purpose, text, keys, why in (
        (PURPOSE, TEXT + b" ", [private.public], "is not what its key has signed"),
        ("hookproxy-other", TEXT, [private.public], "is signed for another purpose than hookproxy-other"),
        (PURPOSE, TEXT, [other_key().public], "is not signed by one of the keys"),
        (PURPOSE, TEXT, [], "is not signed by one of the keys"),
    ):
        with pytest.raises(BadSignature, match=why):
            ssh_signature.verify(signed, purpose, text, keys)


def test_a_signature_that_names_a_trusted_key_but_was_made_by_another_is_refused(private: PrivateKey) -> None:
    forged, own = (unarmoured(ssh_signature.sign(key, PURPOSE, TEXT)) for key in (other_key(), private))
    key_ends = len("SSHSIG") + 4 + 4 + len(private.public.blob)
    mixed = own[:key_ends] + forged[key_ends:]
    armoured = b"-----BEGIN SSH SIGNATURE-----\n%b\n-----END SSH SIGNATURE-----\n" % base64.b64encode(mixed)
    with pytest.raises(BadSignature, match="is not what its key has signed"):
        ssh_signature.verify(armoured, PURPOSE, TEXT, [private.public])


def test_one_of_several_signatures_is_enough(private: PrivateKey) -> None:
    other = other_key()
    both = ssh_signature.sign(other, PURPOSE, TEXT) + ssh_signature.sign(private, PURPOSE, TEXT)
    assert ssh_signature.verify(both, PURPOSE, TEXT, [private.public]) == private.public
    assert ssh_signature.verify(both, PURPOSE, TEXT, [other.public]) == other.public


def test_every_signature_that_is_cut_or_changed_is_refused(private: PrivateKey) -> None:
    whole = unarmoured(ssh_signature.sign(private, PURPOSE, TEXT))
    variants = [whole[:at] for at in range(len(whole))] + [whole + b"\0", whole + b"\0\0\0\0"]
    variants += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for blob in variants:
        text = b"-----BEGIN SSH SIGNATURE-----\n%b\n-----END SSH SIGNATURE-----\n" % base64.b64encode(blob)
        with pytest.raises(BadSignature):
            ssh_signature.verify(text, PURPOSE, TEXT, [private.public])
    for text in (b"", b"nonsense", b"-----BEGIN SSH SIGNATURE-----\nA\n-----END SSH SIGNATURE-----"):
        with pytest.raises(BadSignature):
            ssh_signature.verify(text, PURPOSE, TEXT, [private.public])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "is not a public key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "begins a private key"),
        ("ssh-rsa AAAA", "has the type ssh-rsa; only ssh-ed25519"),
        ("sk-ssh-ed25519@openssh.com AAAA", "has the type sk-ssh-ed25519"),
        ("ssh-ed25519 AAAA", "is cut off"),
        ("ssh-ed25519 !!!!", "is cut off, or not base64"),
    ],
)
def test_a_public_key_that_cannot_be_used_is_named(line: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_public(line)


def test_a_file_of_keys_has_one_in_each_line(public: PublicKey) -> None:
    other = other_key().public
    assert list(parse_public_file(f"# ours\n\n{public.line}\n{other.line}\n")) == [public, other]
    with pytest.raises(ValueError, match="line 2 is cut off"):
        list(parse_public_file(f"{public.line}\nssh-ed25519 AAAA\n"))


def test_a_private_key_of_openssl_is_read() -> None:
    made = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519"], capture_output=True, check=True).stdout
    key = parse_private(made, "key.pem")
    assert key.public.verifies(key.sign(TEXT), TEXT)


def test_a_private_key_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    for options, why in (
        (["-t", "ecdsa", "-N", ""], "of another type than Ed25519"),
        (["-t", "ed25519", "-N", "word!"], "has a"),
    ):
        subprocess.run(["ssh-keygen", "-q", *options, "-f", tmp_path / options[1]], check=True)
        with pytest.raises(UserError, match=why):
            parse_private((tmp_path / options[1]).read_bytes(), "key")
    with pytest.raises(UserError, match="is not a private key"):
        parse_private(b"nonsense", "x")


def test_a_signature_names_its_key_and_one_that_cannot_be_read_names_none(private: PrivateKey) -> None:
    signed = ssh_signature.sign(private, PURPOSE, TEXT)
    assert [named.raw for named in ssh_signature.named_keys(signed + signed)] == [private.public.raw] * 2
    assert ssh_signature.named_keys(b"") == []
    broken = signed.replace(signed.splitlines()[1], b"AAAA")
    with pytest.raises(ssh_signature.BadSignature):
        ssh_signature.named_keys(broken)
