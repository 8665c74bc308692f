"""`hookproxy completion` as a shell's start-up file runs it."""

from __future__ import annotations

import pytest

from hookproxy.cli.completion import SHELLS, main, verbs
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import UserError


@pytest.mark.parametrize("shell", SHELLS)
def test_it_prints_the_script_of_the_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([shell]) == 0
    assert capsys.readouterr() == (SHELLS[shell](list(verbs()), list(DIALECTS)), "")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], "usage: hookproxy completion bash|zsh|fish"),
        (["tcsh"], "one of bash, zsh, fish"),
        (["zhs"], "did you mean 'zsh'?"),
        (["bash", "zsh"], "usage: hookproxy completion bash|zsh|fish"),
    ],
)
def test_another_shell_is_an_error_with_a_hint(arguments: list[str], hint: str) -> None:
    with pytest.raises(UserError) as raised:
        main(arguments)
    assert raised.value.hint == hint
