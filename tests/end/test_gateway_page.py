"""The page for people with a token in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from tests.end.test_gateway_http import HttpGateway
from tests.support.console_process import CHROMIUM, DRIVER, Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no Chromium: scripts/test installs it"),
]
EVIL = "run(<img src=x onerror=document.title='XSS'>)"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[HttpGateway]:
    gateway = HttpGateway(tmp_path, f'[permissions]\ndeny = ["{EVIL}"]\n[servers.git]\ncommand = ["cat"]\n')
    yield gateway
    gateway.kill()


def test_a_person_gives_the_token_and_reads_what_there_is(
    gateway: HttpGateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        browser.driver.get(f"http://127.0.0.1:{gateway.port}/")
        browser.messages()  # there is no icon
        field = browser.driver.find_element(By.CSS_SELECTOR, "input")
        field.send_keys("wrong\n")
        browser.until(lambda: "This token is not accepted (401)." in browser.text())
        browser.messages()  # the browser reports the 401
        field.clear()
        field.send_keys(gateway.tokens["alice"] + "\n")
        browser.until(lambda: "Servers for alice" in browser.text())
        assert EVIL in browser.text()
        assert "/mcp/git" in browser.text()
        assert browser.js("return document.querySelectorAll('img, script[src], main script').length") == 0
        assert browser.js("return document.title") == "hookproxy"
        assert browser.driver.current_url == f"http://127.0.0.1:{gateway.port}/"
        assert browser.js("return document.cookie + localStorage.length + sessionStorage.length") == "00"
        assert not browser.messages(), "nothing was blocked"
    finally:
        browser.close()
