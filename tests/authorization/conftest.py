"""What tests of logins share: one OAuth server for each module, and a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hookproxy.authorization.login_store import LoginStore
from tests.support.oauth_server import OAuthServer, serving


@pytest.fixture(scope="module")
def oauth() -> Iterator[OAuthServer]:
    with serving() as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> LoginStore:
    return LoginStore(str(tmp_path / "logins"), lambda: None)


@pytest.fixture(autouse=True)
def _no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the authorities of the system takes 25 ms each time, and no server of these tests needs one."""
    monkeypatch.setenv("SSL_CERT_FILE", "/dev/null")
