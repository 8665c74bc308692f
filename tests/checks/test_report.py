"""The document of `check --json` when something is managed; the tests of the verb cover the rest."""

from __future__ import annotations

import json

from hookproxy.checks import report
from hookproxy.checks.report import Report
from hookproxy.model.settings import OnAsk, Settings
from hookproxy.trust.sources import ManagedSummary


def test_the_json_document_lists_what_is_managed_with_its_places() -> None:
    settings = Settings(on_ask=OnAsk.DENY, managed=Settings(deny=("x",)))
    managed = ManagedSummary(("/etc/hookproxy/managed.toml",), {"on_ask": "/etc/hookproxy/managed.toml: on_ask"})
    read = json.loads(report.to_json(Report(settings, (), (), (), managed)))
    assert read["managed"] == {
        "files": ["/etc/hookproxy/managed.toml"],
        "settings": {"on_ask": "/etc/hookproxy/managed.toml: on_ask"},
        "only": False,
    }
    assert read["settings"]["managed"]["deny"] == ["x"]
    assert read["settings"]["managed"]["managed"] is None
    assert json.loads(report.to_json(Report(Settings(), (), (), ())))["managed"] is None
