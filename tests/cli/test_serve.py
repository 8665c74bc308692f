"""What `hookproxy serve` says about a command line before it serves anything."""

from __future__ import annotations

import pytest

from hookproxy.cli import serve
from hookproxy.model.errors import UserError


def test_a_file_without_its_option_is_told_with_the_right_command() -> None:
    with pytest.raises(UserError) as raised:
        serve.main(["gateway.toml"])
    assert raised.value.hint == "hookproxy serve --config gateway.toml"
