"""Where the gateway listens: it does not start where others could read what users send, or nobody knows who calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.gateway.http_listeners import (
    HttpAddress,
    http_addresses,
    is_trusted,
    listen,
    networks,
    probes_address,
    tls_context,
)
from hookproxy.model.errors import ConfigError, UserError

SERVER = '\n[servers.x]\ncommand = ["x"]\n'


def config_of(folder: Path, keys: str) -> GatewayConfig:
    (folder / "gateway.toml").write_text(f"[gateway]\n{keys}\n{SERVER}")
    return load_gateway("gateway.toml", {}, str(folder))


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ('listen = ["http://127.0.0.1:8765"]', "nobody knows who calls"),
        ('listen = ["http://0.0.0.0:8765"]\ntokens = "t"', "everybody on the network"),
        ('listen = ["http://[::]:8765"]\ntokens = "t"', "everybody on the network"),
        ('listen = ["http://mcp.example.com:8765"]\ntokens = "t"', "everybody on the network"),
        ('listen = ["http://127.0.0.1.example.com:8765"]\ntokens = "t"', "everybody on the network"),
        ('listen = ["https://0.0.0.0:8765"]\ntokens = "t"', "no certificate"),
        ('listen = ["http://127.0.0.1:0"]\ntokens = "t"', "is not an address"),
        ('listen = ["http://127.0.0.1:99999"]\ntokens = "t"', "is not an address"),
        ('listen = ["http://127.0.0.1"]\ntokens = "t"', "is not an address"),
        ('listen = ["http://user@127.0.0.1:1/x"]\ntokens = "t"', "is not an address"),
    ],
)
def test_it_does_not_start_where_users_are_at_risk(tmp_path: Path, keys: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        http_addresses(config_of(tmp_path, keys))
    assert why in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "url", ["mcp.example.com", "ftp://x", "https://", "https://x/mcp/git", "https://x?a", "https://u@x"]
)
def test_a_public_url_that_agents_cannot_use_is_an_error(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"gateway\.public_url"):
        http_addresses(config_of(tmp_path, f'listen = ["http://127.0.0.1:8765"]\ntokens = "t"\npublic_url = "{url}"'))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.9.9.9"])
def test_loopback_needs_tokens_only(tmp_path: Path, host: str) -> None:
    [address] = http_addresses(config_of(tmp_path, f'listen = ["http://{host}:8765"]\ntokens = "t"'))
    assert address == HttpAddress(host.strip("[]"), 8765, tls=False)
    assert address.url == f"http://{host}:8765"


def test_a_named_proxy_may_encrypt_instead(tmp_path: Path) -> None:
    keys = 'listen = ["http://0.0.0.0:8765"]\ntokens = "t"\ntrusted_proxies = ["10.0.0.0/24"]'
    config = config_of(tmp_path, keys)
    assert len(http_addresses(config)) == 1
    trusted = networks(config)
    assert is_trusted("10.0.0.7", trusted)
    assert is_trusted("::ffff:10.0.0.7", trusted)
    assert not is_trusted("10.0.1.7", trusted)
    assert not is_trusted("2001:db8::1", trusted)


def test_an_address_that_is_taken_is_a_plain_error(tmp_path: Path) -> None:
    first = listen(HttpAddress("127.0.0.1", 0, tls=False))
    try:
        with pytest.raises(UserError) as caught:
            listen(HttpAddress("127.0.0.1", first.getsockname()[1], tls=False))
        assert "cannot listen" in str(caught.value)
    finally:
        first.close()


def test_probes_have_an_address_of_their_own(tmp_path: Path) -> None:
    assert probes_address(config_of(tmp_path, "")) is None
    assert probes_address(config_of(tmp_path, 'probes = "http://127.0.0.1:9090"')) is not None
    with pytest.raises(ConfigError, match="not an address"):
        probes_address(config_of(tmp_path, 'probes = "http://127.0.0.1"'))


@pytest.mark.parametrize(("name", "missing"), [("certificate", "cert.pem"), ("key", "key.pem")])
def test_the_one_of_certificate_and_key_that_cannot_be_read_is_named(tmp_path: Path, name: str, missing: str) -> None:
    (tmp_path / ("key.pem" if missing == "cert.pem" else "cert.pem")).touch()
    config = config_of(tmp_path, '[gateway.tls]\ncertificate = "cert.pem"\nkey = "key.pem"')
    with pytest.raises(ConfigError) as caught:
        tls_context(config)
    assert f"gateway.tls.{name}: {tmp_path / missing} cannot be read: No such file" in str(caught.value)
