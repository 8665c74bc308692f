"""What should find calls or secrets and cannot stops start-up: nothing is allowed, or written, in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.load import load
from hookproxy.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ('[permissions]\ndeny = ["a", "b("]', "permissions.deny[1]", ""),
        ('[audit]\nredact = ["fine", "(half"]', "audit.redact[1]", "not a regular expression"),
        ('[audit]\nredact = ["x*"]', "audit.redact[0]", "empty text"),
        (f'[audit]\nredact = ["a{{{10**12}}}"]', "audit.redact[0]", "not a regular expression"),
    ],
)
def test_a_pattern_that_is_none_is_named(tmp_path: Path, text: str, where: str, why: str) -> None:
    file = tmp_path / "hookproxy.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(str(file), [], None, {}, str(tmp_path))
    assert raised.value.message.startswith(f"{file}: {where}: ")
    assert why in raised.value.message


def test_patterns_and_names_of_secrets_are_chosen(tmp_path: Path) -> None:
    file = tmp_path / "hookproxy.toml"
    file.write_text('[audit]\nredact = ["sk-[a-z]+"]\nredact_keys = ["token"]\nchain = true\nmax_file_bytes = 65536\n')
    settings = load(str(file), [], None, {}, str(tmp_path)).settings
    assert (settings.audit_redact, settings.audit_redact_keys) == (("sk-[a-z]+",), ("token",))
    assert (settings.audit_chain, settings.audit_shared, settings.audit_max_file_bytes) == (True, False, 65536)
    assert not settings.otel
