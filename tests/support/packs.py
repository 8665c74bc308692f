"""Packs of hooks and rules, signed or not, and a wheel that their environments can be made of."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hookproxy.packs import make, manifest
from hookproxy.signing.keys import PrivateKey

CONFIG = """# Quiet: nothing is sent. Really.

[permissions]
deny = ["send_*"]

[[hooks.PreToolUse]]
name = "quiet"
matcher = "write.*"
argv = ["sh", "hooks/quiet.sh"]
"""
HOOK = "#!/bin/sh\necho no words >&2\nexit 2\n"


def pack(  # one value for each member of a manifest
    version: str = "1.0.0",
    *,
    key: PrivateKey | None = None,
    name: str = "quiet",
    files: Mapping[str, str] | None = None,
    needs: str = "",
) -> dict[str, bytes]:
    """The files of a pack."""
    texts = {"hookproxy.toml": CONFIG, "hooks/quiet.sh": HOOK, **(files or {})}
    own = {path: text.encode() for path, text in texts.items()}
    head = f'format = "hookproxy-pack-1"\nname = "{name}"\nversion = "{version}"\ndescription = "nothing is sent"\n'
    text = make.with_files(manifest.MANIFEST, f"{head}\n[needs]\n{needs}\n", own, frozenset({"hooks/quiet.sh"}))
    signature = {} if key is None else {manifest.SIGNATURE: make.signature(text, key)}
    return {**own, manifest.MANIFEST: text.encode(), **signature}


def in_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """The folder with these files, and no others."""
    for path in sorted(folder.rglob("*"), reverse=True) if folder.exists() else ():
        path.rmdir() if path.is_dir() else path.unlink()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def tar(members: Sequence[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """An archive of these members, which may be anything."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for info, content in members:
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return written.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    """A member of an archive."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def members(files: Mapping[str, bytes]) -> list[tuple[tarfile.TarInfo, bytes]]:
    """These files as members."""
    return [(member(name), content) for name, content in files.items()]


def wheel(folder: Path, name: str, version: str, text: str, requires: Sequence[str] = ()) -> Path:
    """A wheel with one module."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    needed = "".join(f"Requires-Dist: {other}\n" for other in requires)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", text)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return path
