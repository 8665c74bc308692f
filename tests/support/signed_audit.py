"""An audit with signed checkpoints, written without threads."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec.structs import replace

from hookproxy.audit.append_file import AppendFile
from hookproxy.audit.checkpoints import Checkpoint, Signed, read
from hookproxy.audit.hash_chain import line_hash
from hookproxy.audit.opened_file import FileOptions
from hookproxy.audit.sealer import Sealer
from hookproxy.audit.signing_keys import name_of
from hookproxy.audit.view.verify import verify
from hookproxy.audit.view.verify_signed import Copy, SignedCheck, check_signed
from hookproxy.model.settings import Settings
from hookproxy.signing.keys import PublicKey

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
KEYS = {name_of(PUBLIC): PUBLIC}


def make_audit_keys(folder: Path, mode: int = 0o400) -> None:
    """The keys of an audit, as the examples of configurations name them."""
    folder.mkdir(exist_ok=True)
    pem = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for name, data in (("audit.key", b"k" * 32), ("audit-sign.key", pem)):
        (folder / name).write_bytes(data)
        (folder / name).chmod(mode)


class SignedAudit:
    """Writes calls and checkpoints to `file`."""

    def __init__(self, folder: Path, *, key: Ed25519PrivateKey = KEY, limit: int = 0, keep: int = 0) -> None:
        self.folder, self.file = folder, folder / "audit.jsonl"
        self.copy = folder / "audit.jsonl.signed"
        private = folder / "key"
        private.touch(0o600)
        private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.public_key = folder / "key.pub"
        self.public_key.write_text(PublicKey(key.public_key().public_bytes_raw()).line + "\n")
        self.options = FileOptions(chain=True, limit=limit, keep=keep)
        self.settings = Settings(audit_file=str(self.file), audit_sign_key=str(private))
        self.reports: list[str] = []
        self._calls = 0
        self.start()

    def start(self) -> None:
        """As a new process."""
        self._append = AppendFile(str(self.file), self.options)
        self.sealer = Sealer(str(self.file), self.options, self.settings)
        self.sealer.report = self.reports.append

    def write(self, count: int, pad: int = 0) -> None:
        for _ in range(count):
            self._calls += 1
            call = {
                "v": 1,
                "call": f"abc123-{self._calls}",
                "session": "s",
                "server": "git",
                "tool": "push",
                "id": 1.50,
            }
            self._append.append(msgspec.json.encode({**call, "pad": "x" * pad}) + b"\n")

    def seal(self, *, closed: bool = False) -> None:
        assert self.sealer.seal(closed=closed) == ""

    def kill(self) -> None:
        """No last checkpoint is written."""
        self._append.close()
        self.sealer._file.close()

    def lines(self) -> list[bytes]:
        return self.file.read_bytes().splitlines()

    def put(self, lines: list[bytes]) -> None:
        self.file.write_bytes(b"".join(line + b"\n" for line in lines))

    def checkpoints(self) -> list[Checkpoint]:
        return [signed.checkpoint for line in self.lines() if (signed := read(line)) is not None]

    def check(self, *copies: bytes, keys: dict[str, bytes] = KEYS, end_is_known: bool = False) -> SignedCheck:
        """As `hookproxy audit verify`, with the copy beside the file."""
        files = verify(str(self.file))
        beside = [self.copy.read_bytes()] if self.copy.exists() else []
        found = [Copy(f"copy{number}", text) for number, text in enumerate((*copies, *beside))]
        paths, earlier = [file.path for file in files], bool(files[0].continues)
        return check_signed(paths, keys, found, has_earlier=earlier, end_is_known=end_is_known)

    def is_chained(self) -> bool:
        return not any(file.broken for file in verify(str(self.file)))


def rechained(lines: list[bytes]) -> list[bytes]:
    """The lines with the hashes that an attacker gives them, who has no key."""
    made: list[bytes] = []
    for line in lines:
        members = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        members["previous"] = msgspec.Raw(msgspec.json.encode(line_hash(made[-1]) if made else ""))
        made.append(msgspec.json.encode(members))
    return made


def forged(line: bytes, by: Ed25519PrivateKey | None, **changes: object) -> bytes:
    """A checkpoint's line with other members, signed with this key; None: with the signature that it had."""
    signed = read(line)
    assert signed is not None
    checkpoint = replace(signed.checkpoint, **changes)
    signature = signed.signature if by is None else base64.b64encode(by.sign(checkpoint.signed_text)).decode()
    new = Signed(checkpoint, signature)
    members = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    members["checkpoint"] = msgspec.Raw(msgspec.json.encode(new.checkpoint))
    members["signature"] = msgspec.Raw(msgspec.json.encode(new.signature))
    return msgspec.json.encode(members)
