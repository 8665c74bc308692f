"""Whose audit is written, and where it lies."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from hookproxy.audit import os_user

NAME = pwd.getpwuid(os.getuid()).pw_name


def test_the_writer_is_named_with_host_and_process() -> None:
    assert os_user.writer() == {"user": NAME, "host": os.uname().nodename, "pid": os.getpid()}


def test_each_account_has_its_own_file_if_configured(tmp_path: Path) -> None:
    assert os_user.audit_path("") == ""
    assert os_user.audit_path("/x/audit.jsonl") == "/x/audit.jsonl"
    assert os_user.audit_path("/x/{user}/a-{user}.jsonl") == f"/x/{NAME}/a-{NAME}.jsonl"
    assert os_user.audit_path("/x/missing/") == f"/x/missing/{NAME}.jsonl"
    assert os_user.audit_path(str(tmp_path)) == str(tmp_path), "a folder is none unless it is written so"
