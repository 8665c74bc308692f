"""Keys that sign an audit: which files are read, and which are refused with a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from hookproxy.audit.signing_keys import name_of, read_public_keys, read_signer, verifies
from hookproxy.model.errors import UserError
from hookproxy.signing.keys import PublicKey
from tests.support.managed_folder import NOBODY, ROOT_ONLY

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
ENCRYPTED = b"""\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABDgS1CVCs
BfCulBZDDAEDI4AAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIDq9DenXUmbbFvQ3
G6MYCYX5+jrRASpkvrPPjwjU/u94AAAAkBcrcjNH5H8CqAZIVYolnvu0Ox7JkmKoWYVA44
8rFZkmQ/Z4BP658fm/EUCkiTJ0viCd7CxQhLYVG0ZHd1E3yJQnX/Tx2AFlGSWueRfasPOZ
AouOsZT0bb8U304i761Gv/PlwPgIR1X3PoW8WLs6m+enXU+SYOGJoCDEcTkAZx5Feyt3H0
JED+x5nT3ISLGAKQ==
-----END OPENSSH PRIVATE KEY-----
"""  # by ssh-keygen
FORMS = {"pem": PrivateFormat.PKCS8, "openssh": PrivateFormat.OpenSSH}


def private(
    key: Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey,
    form: PrivateFormat,
    encryption: KeySerializationEncryption | None = None,
) -> bytes:
    return key.private_bytes(Encoding.PEM, form, encryption or NoEncryption())


def written(folder: Path, data: bytes, mode: int = 0o600) -> str:
    path = folder / "key"
    path.write_bytes(data)
    path.chmod(mode)
    return str(path)


def refusal(path: str) -> str:
    with pytest.raises(OSError, match=r".") as caught:
        read_signer(path)
    assert caught.value.filename == path
    return caught.value.strerror or ""


@pytest.mark.parametrize("form", FORMS)
def test_a_private_key_signs_what_its_public_key_verifies(tmp_path: Path, form: str) -> None:
    signer = read_signer(written(tmp_path, private(KEY, FORMS[form])))
    assert signer.public == PUBLIC
    signature = signer.sign(b"text")
    assert verifies(PUBLIC, signature, b"text")
    assert not verifies(PUBLIC, signature, b"texT")
    assert not verifies(PUBLIC, b"", b"text")
    assert not verifies(bytes(32), signature, b"text")


def test_a_key_has_the_name_that_ssh_keygen_shows() -> None:
    blob = KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert PublicKey(PUBLIC).line.encode() == blob
    assert name_of(PUBLIC) == "SHA256:lbmsoA0yIEcEiVDRnMWuzm+nV+3ZEEpVIURqFoeSspg"


@pytest.mark.parametrize("form", FORMS)
def test_a_key_with_a_passphrase_is_refused(tmp_path: Path, form: str) -> None:
    data = {"pem": private(KEY, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")), "openssh": ENCRYPTED}[form]
    assert "has a passphrase" in refusal(written(tmp_path, data))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610])
def test_a_key_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    assert "chmod 600" in refusal(written(tmp_path, private(KEY, PrivateFormat.PKCS8), mode))


@ROOT_ONLY
def test_a_key_of_another_account_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, private(KEY, PrivateFormat.PKCS8))
    os.chown(path, NOBODY, NOBODY)
    assert refusal(path) == "belongs to another account"


@ROOT_ONLY
@pytest.mark.parametrize(("mode", "may"), [(0o440, True), (0o640, True), (0o660, False), (0o444, False)])
def test_roots_key_may_be_readable_for_its_group_as_secrets_of_systemd_and_kubernetes_are(
    tmp_path: Path, mode: int, may: bool
) -> None:
    path = written(tmp_path, private(KEY, PrivateFormat.PKCS8), mode)
    os.chown(path, 0, NOBODY)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o005)
    pid = os.fork()
    if not pid:
        status = 3
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            status = 0 if read_signer(path).public == PUBLIC else 2
        except OSError:
            status = 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == (0 if may else 1)


def test_what_is_no_such_key_is_refused_with_the_reason(tmp_path: Path) -> None:
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert "is a public key" in refusal(written(tmp_path, public))
    assert "is a public key" in refusal(written(tmp_path, PublicKey(PUBLIC).line.encode()))
    assert "is not a private key" in refusal(written(tmp_path, b"x" * 32))
    broken = private(KEY, PrivateFormat.PKCS8).replace(b"MC4C", b"AAAA")
    assert "that can be read" in refusal(written(tmp_path, broken))
    for other in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())):
        for form in FORMS.values():
            assert "another type than Ed25519" in refusal(written(tmp_path, private(other, form)))
    (tmp_path / "folder").mkdir()
    assert "regular file" in refusal(str(tmp_path / "folder"))
    os.mkfifo(tmp_path / "pipe")
    assert "regular file" in refusal(str(tmp_path / "pipe"))
    assert refusal(str(tmp_path / "absent")) == "No such file or directory"


def test_public_keys_are_read_in_both_forms_several_in_one_file(tmp_path: Path) -> None:
    other = Ed25519PrivateKey.generate().public_key()
    pem = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path = tmp_path / "keys"
    path.write_bytes(b"# ours\n" + PublicKey(PUBLIC).line.encode() + b" gateway@host\n" + pem)
    assert read_public_keys(str(path)) == {name_of(key): key for key in (PUBLIC, other.public_bytes_raw())}


def test_a_key_in_a_comment_does_not_count(tmp_path: Path) -> None:
    lines = [PublicKey(KEY.public_key().public_bytes_raw()).line, PublicKey(bytes(32)).line]
    (tmp_path / "keys").write_text(f"# signers\n{lines[0]}\n #{lines[1]} until 2026\n")
    assert list(read_public_keys(str(tmp_path / "keys")).values()) == [KEY.public_key().public_bytes_raw()]


@pytest.mark.parametrize("text", [b"", b"ssh-ed25519 AAAA\n", b"ssh-ed25519 ?\n", b"ssh-rsa AAAAB3NzaC1yc2E=\n"])
def test_a_file_without_a_public_key_is_told(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "keys"
    path.write_bytes(text)
    with pytest.raises(UserError, match="has no public Ed25519 key"):
        read_public_keys(str(path))
    path.write_bytes(private(KEY, PrivateFormat.OpenSSH))
    with pytest.raises(UserError, match="is a private key"):
        read_public_keys(str(path))
