"""The audit of a running gateway for its auditors, who may not open its files: the gateway hands out descriptors."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from typing import Final

from ..gateway.admin_messages import VERSION, Request
from ..model.errors import UserError
from .administration import ask_for_files

_BESIDE: Final = re.compile(r"(.*)\.(?:[0-9]+|signed)")  # a file that was rotated, or the last signed checkpoint


def copied(socket: str, wanted: str | None) -> str:
    """The path of a copy of the audit, with the files that were rotated, which nobody else can read.

    It is removed when this process ends. Raises UserError.
    """
    reply, files = ask_for_files(Request(VERSION, "audit"), socket)
    folder = tempfile.mkdtemp(prefix="hookproxy-audit-")  # its mode is 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    bases: dict[str, None] = {}
    for path, descriptor in zip(reply.files, files, strict=True):
        beside = _BESIDE.fullmatch(path)
        base = beside[1] if beside and beside[1] in reply.files else path
        if wanted not in (None, base):
            os.close(descriptor)
            continue
        bases[base] = None
        if len(bases) > 1:
            break
        with open(descriptor, "rb") as source, open(os.path.join(folder, os.path.basename(path)), "xb") as target:
            shutil.copyfileobj(source, target)
    if len(bases) == 1:
        return os.path.join(folder, os.path.basename(next(iter(bases))))
    known = ", ".join(path for path in reply.files if not _BESIDE.fullmatch(path))
    problem = "has several audit files" if bases else f"has no audit file {wanted}"
    raise UserError(f"the gateway {problem}", f"name one: hookproxy audit FILE --gateway; there is {known}")
