"""The gateway's log as JSON: level, code and user of each line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.log_codes import OTHER, kind_of


def lines_of(folder: Path, *texts: str, as_json: bool = True) -> list[str]:
    path = folder / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        log = GatewayLog(as_json=as_json, descriptor=descriptor, instance="gateway-a")
        for text in texts:
            log.about("git", "anna", "0123abcd")(text)
            log(text)
    finally:
        os.close(descriptor)
    return path.read_text().splitlines()


def test_each_object_has_level_code_user_and_instance(tmp_path: Path) -> None:
    about, whole = (json.loads(line) for line in lines_of(tmp_path, "dropped a response that nobody waits for"))
    assert about.pop("time") <= whole.pop("time")
    common = {"level": "warning", "code": "message.dropped", "instance": "gateway-a"}
    message = "dropped a response that nobody waits for"
    assert about == {**common, "server": "git", "user": "anna", "session": "0123abcd", "message": message}
    assert whole == {**common, "user": "", "message": message}


def test_lines_for_people_are_as_they_were(tmp_path: Path) -> None:
    assert lines_of(tmp_path, "x", as_json=False) == ["hookproxy: git, anna, 0123abcd: x", "hookproxy: x"]


def test_a_name_that_is_not_utf_8_is_shown(tmp_path: Path) -> None:
    assert json.loads(lines_of(tmp_path, "x \udc80")[1])["message"] == "x ?"


@pytest.mark.parametrize(
    ("text", "code", "level", "user"),
    [
        ("the audit log cannot be written: /x: No space left on device", "audit.not_written", "error", ""),
        ("a call of x is refused because its audit line cannot be written: y", "audit.not_written", "error", ""),
        ("the audit log is written again; 2 failures since", "audit.written_again", "info", ""),
        ("/x: checkpoint 3, which was signed after 9 lines, is not in it", "audit.cut", "error", ""),
        ("the audit cannot be signed: /key: Permission denied", "audit.not_signed", "error", ""),
        ("policy 0123456789ab is in force as before", "policy.in_force", "info", ""),
        ("the policy stays 0123456789ab: why", "policy.refused", "error", ""),
        ("/etc/hookproxy/guard.sh has changed since policy 0123", "policy.changed_on_disk", "warning", ""),
        ("permissions.deny: added drop_*", "policy.key_changed", "info", ""),
        ("changed: /etc/hookproxy/guard.sh", "policy.file_changed", "info", ""),
        ("listens at unix:/run/x", "gateway.listens", "info", ""),
        ("the store at h cannot be reached: why", "store.away", "error", ""),
        ("127.0.0.1: refused with 401: The token is not known.", "http.refused", "warning", ""),
        ("administration: eve (uid 1001) was refused: no", "administration.refused", "warning", "eve"),
        ("administration: anna (uid:1000) has blocked bob", "administration", "info", "anna"),
        ("anna: a message of 9 bytes is withheld: x", "message.withheld", "warning", "anna"),
        ("git: the server says: policy 0123456789ab is in force", "server.output", "info", ""),
        ("the server says: the audit log cannot be written", "server.output", "info", ""),
        ("PreToolUse hook guard (x): failed", "hook.failed", "warning", ""),
        ("Traceback (most recent call last):\n x", "gateway.defect", "error", ""),
        ("something that nobody has listed", OTHER, "info", ""),
    ],
)
def test_a_sentence_has_its_code(text: str, code: str, level: str, user: str) -> None:
    kind = kind_of(text)
    assert (kind.code, kind.level, kind.user) == (code, level, user)
