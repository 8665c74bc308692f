"""The manifests for Kubernetes: they agree with each other, with the configurations in them, and with the program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml

from hookproxy.authorization.token_file import create_token, read_tokens
from hookproxy.cli.serve import build_parser
from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.config.gateway_models import INSTANCE_NAME
from hookproxy.gateway import probes
from hookproxy.gateway.http_listeners import http_addresses, networks, probes_address
from hookproxy.model.errors import ConfigError
from tests.support.cluster import HAPROXY
from tests.support.managed_folder import ROOT_ONLY
from tests.support.oauth_server import self_signed
from tests.support.signed_audit import make_audit_keys

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "deploy" / "kubernetes"
PAGE: Final = ROOT / "docs" / "gateway-kubernetes.md"
SERVERS_END_SECONDS: Final = 5  # that servers have for their end after the last call, with room
POD_KINDS: Final = ("StatefulSet", "Deployment")


def read(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


KUSTOMIZATION: Final = read("kustomization.yaml")[0]
OBJECTS: Final = [one for name in KUSTOMIZATION["resources"] for one in read(name)]


def find(kind: str, name: str) -> dict[str, Any]:
    [found] = [one for one in OBJECTS if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


GATEWAYS: Final = find("StatefulSet", "hookproxy")
BALANCER: Final = find("Deployment", "hookproxy-balancer")


def pod(workload: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


def container(workload: dict[str, Any]) -> dict[str, Any]:
    [only] = pod(workload)["containers"]
    return dict(only)


def ports(workload: dict[str, Any]) -> dict[str, int]:
    return {one["name"]: one["containerPort"] for one in container(workload)["ports"]}


def balancer_text() -> str:
    return (FOLDER / "haproxy.cfg").read_text()


def mounted(workload: dict[str, Any], path: str) -> dict[str, Any]:
    """The volume that has this path."""
    [mount] = [one for one in container(workload)["volumeMounts"] if one["mountPath"] == path]
    [volume] = [one for one in pod(workload)["volumes"] if one["name"] == mount["name"]]
    return dict(volume)


@cache
def environ() -> dict[str, str]:
    return {one["name"]: one["value"] for one in container(GATEWAYS)["env"] if "value" in one}


@pytest.fixture
def config(tmp_path: Path) -> GatewayConfig:
    folder = tmp_path / "hookproxy"
    folder.mkdir(mode=0o755)
    shutil.copy(FOLDER / "gateway.toml", folder)
    (folder / "seal.key").write_bytes(os.urandom(32))
    (folder / "seal.key").chmod(0o400)
    make_audit_keys(folder)
    return load_gateway(str(folder / "gateway.toml"), environ(), "/")


def test_the_gateways_configuration_is_valid_and_has_nothing_to_say_about_sharing(config: GatewayConfig) -> None:
    assert config.notes == ()
    assert http_addresses(config)
    assert networks(config)


def test_the_ports_are_the_same_everywhere(config: GatewayConfig) -> None:
    [address] = http_addresses(config)
    asked = probes_address(config)
    assert asked is not None
    expected = {"mcp": address.port, "probes": asked.port}
    assert ports(GATEWAYS) == expected
    services = {one["name"]: one["port"] for one in find("Service", "hookproxy-gateways")["spec"]["ports"]}
    assert services == expected
    assert set(re.findall(r"svc\.cluster\.local:(\d+)", balancer_text())) == {str(address.port)}
    assert re.findall(r"check port (\d+)", balancer_text()) == [str(asked.port)]
    assert {int(one) for one in re.findall(r"bind :(\d+)", balancer_text())} == set(ports(BALANCER).values())
    assert all(one.host == "0.0.0.0" for one in (address, asked)), "pods are reached from other machines"


def test_services_and_policies_name_ports_that_exist() -> None:
    named = {**ports(GATEWAYS), **ports(BALANCER)}
    for one in OBJECTS:
        if one["kind"] == "Service":
            assert all(port["targetPort"] in named for port in one["spec"]["ports"])
        if one["kind"] == "NetworkPolicy":
            rules = [*one["spec"].get("ingress", ()), *one["spec"].get("egress", ())]
            found = [port["port"] for rule in rules for port in rule.get("ports", ())]
            assert all(port in named for port in found if isinstance(port, str))


def test_services_budgets_and_policies_select_pods_that_exist() -> None:
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in (GATEWAYS, BALANCER)]
    for workload in (GATEWAYS, BALANCER):
        assert workload["spec"]["selector"]["matchLabels"] == workload["spec"]["template"]["metadata"]["labels"]
    for one in OBJECTS:
        match one["kind"]:
            case "Service":
                assert one["spec"]["selector"] in labels
            case "PodDisruptionBudget":
                assert one["spec"]["selector"]["matchLabels"] in labels
            case "NetworkPolicy":
                selector = one["spec"]["podSelector"]
                assert not selector or selector["matchLabels"] in labels
            case _:
                pass


def test_probes_ask_what_the_gateway_and_the_balancer_answer() -> None:
    for workload, known in (
        (GATEWAYS, {path.decode() for path in probes.PATHS}),
        (BALANCER, set(re.findall(r"(?:monitor-uri|path) (/\w+)", balancer_text()))),
    ):
        for name in ("readinessProbe", "livenessProbe"):
            asked = container(workload)[name]["httpGet"]
            assert asked["path"] in known
            assert asked["port"] == "probes"
    assert container(GATEWAYS)["readinessProbe"]["httpGet"]["path"] == "/readyz", "503 while it ends"
    assert container(GATEWAYS)["livenessProbe"]["httpGet"]["path"] == "/healthz", "it is not killed while it ends"


def test_pods_get_the_time_that_their_end_takes(config: GatewayConfig) -> None:
    gateway = config.gateway
    sessions_and_then_others = 2 * gateway.drain_seconds
    longest = gateway.drain_delay_seconds + sessions_and_then_others + SERVERS_END_SECONDS
    assert longest < pod(GATEWAYS)["terminationGracePeriodSeconds"]
    assert "lifecycle" not in container(GATEWAYS), "with a preStop, /readyz goes on saying that it is ready"
    readiness = container(GATEWAYS)["readinessProbe"]
    assert readiness["periodSeconds"] * readiness["failureThreshold"] < gateway.drain_delay_seconds
    [before] = re.findall(r"\d+", container(BALANCER)["lifecycle"]["preStop"]["exec"]["command"][-1])
    [hard_stop] = re.findall(r"hard-stop-after (\d+)s", balancer_text())
    assert int(before) + int(hard_stop) + SERVERS_END_SECONDS < pod(BALANCER)["terminationGracePeriodSeconds"]
    assert int(hard_stop) >= gateway.drain_seconds


def test_the_next_pod_is_replaced_only_when_the_balancer_has_found_the_last_one() -> None:
    kept_by_dns = 30  # seconds that CoreDNS keeps "no such name" at most, as Kubernetes configures it: `cache 30`
    [resolves_again] = re.findall(r"hold valid (\d+)s", balancer_text())
    assert GATEWAYS["spec"]["minReadySeconds"] > kept_by_dns + int(resolves_again)
    assert GATEWAYS["spec"].get("updateStrategy", {"type": "RollingUpdate"})["type"] == "RollingUpdate"


def test_the_balancer_knows_the_pods_by_their_names() -> None:
    names = re.findall(r"(?m)^ *server (\S+) (\S+):\d+$", balancer_text())
    spec, namespace = GATEWAYS["spec"], KUSTOMIZATION["namespace"]
    name, service = GATEWAYS["metadata"]["name"], spec["serviceName"]
    assert names == [
        (f"{name}-{number}", f"{name}-{number}.{service}.{namespace}.svc.cluster.local") for number in range(len(names))
    ]
    assert spec["replicas"] <= len(names)
    assert all(re.fullmatch(INSTANCE_NAME, one) for one, _ in names)
    assert find("Service", service)["spec"]["clusterIP"] == "None"
    assert find("Namespace", namespace)


def test_each_gateway_is_started_with_the_name_of_its_pod() -> None:
    verb, *words = container(GATEWAYS)["args"]
    assert verb == "serve"
    options = build_parser().parse_args(words)
    assert options.instance == "$(POD_NAME)"
    [field] = [one["valueFrom"]["fieldRef"] for one in container(GATEWAYS)["env"] if one["name"] == "POD_NAME"]
    assert field == {"fieldPath": "metadata.name"}
    assert "configMap" in mounted(GATEWAYS, options.config)


def test_what_the_configuration_names_is_mounted_where_it_is_looked_for(config: GatewayConfig) -> None:
    mounts = {one["mountPath"]: one for one in container(GATEWAYS)["volumeMounts"]}
    for name in ("gateway.toml", "seal.key", "tokens", "audit.key", "audit-sign.key"):
        mount = mounts[f"/etc/hookproxy/{name}"]
        assert mount["subPath"] == name, "a file of root in a folder of root, and no link"
        assert mount["readOnly"]
    assert [config.gateway.tokens, *config.gateway.seal_keys] == ["tokens", "seal.key"]
    assert "secret" in mounted(GATEWAYS, environ()["CREDENTIALS_DIRECTORY"])
    store = config.gateway.store
    assert store is not None
    credentials = [store.password, *config.servers["tickets"].credentials.values()]
    assert all(one is not None and one.startswith(environ()["CREDENTIALS_DIRECTORY"]) for one in credentials)
    [claim] = GATEWAYS["spec"]["volumeClaimTemplates"]
    state = mounts[environ()["HOME"]]
    assert state["name"] == claim["metadata"]["name"]
    audit = config.servers["tickets"].loaded.settings.audit_file
    assert audit is not None
    assert audit.startswith(environ()["HOME"] + "/")


def test_the_page_says_how_to_make_each_secret() -> None:
    secrets = {
        volume["secret"]["secretName"]: volume["secret"]
        for workload in (GATEWAYS, BALANCER)
        for volume in pod(workload)["volumes"]
        if "secret" in volume
    }
    text = PAGE.read_text()
    for name, secret in secrets.items():
        assert re.search(rf"create secret (generic|tls) {name}\b", text), name
        assert not secret["defaultMode"] & 0o007, "others cannot read it"


@pytest.mark.parametrize("workload", [GATEWAYS, BALANCER], ids=["gateways", "balancer"])
def test_a_pod_has_no_rights_that_it_does_not_need(workload: dict[str, Any]) -> None:
    spec, own = pod(workload), container(workload)["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"], "who may read its secrets"
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert own["readOnlyRootFilesystem"] is True
    assert own["privileged"] is own["allowPrivilegeEscalation"] is spec["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert not any("hostPath" in volume for volume in spec["volumes"])


def test_only_the_balancer_reaches_the_gateways() -> None:
    assert find("NetworkPolicy", "nothing-else")["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    rules = find("NetworkPolicy", "gateways")["spec"]["ingress"]
    [allowed] = [rule["from"] for rule in rules if any(port["port"] == "mcp" for port in rule["ports"])]
    assert allowed == [{"podSelector": {"matchLabels": BALANCER["spec"]["template"]["metadata"]["labels"]}}]
    assert "namespaceSelector" not in allowed[0]


def test_the_gateways_may_reach_what_their_configuration_names(config: GatewayConfig) -> None:
    [rule] = find("NetworkPolicy", "gateways")["spec"]["egress"]
    allowed = {port["port"] for port in rule["ports"]}
    store = config.gateway.store
    assert store is not None
    addresses = [urlsplit(one) for one in (store.url, *(server.table.url or "" for server in config.servers.values()))]
    assert {one.port or {"https": 443}[one.scheme] for one in addresses} <= allowed


def test_a_budget_leaves_pods_while_machines_are_emptied() -> None:
    for workload in (GATEWAYS, BALANCER):
        budget = find("PodDisruptionBudget", workload["metadata"]["name"])
        assert 0 < budget["spec"]["maxUnavailable"] < workload["spec"]["replicas"]


# --- a gateway as its pod starts it ---

_IN_POD: Final = r"""
mount --bind "$ETC" /etc
mount -t tmpfs -o mode=0755 tmpfs /var/lib
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir /var/lib/hookproxy /run/hookproxy /run/credentials /run/python
mount --bind "$PYTHON_FOLDER" /run/python
mount --bind "$VOLUMES/state" /var/lib/hookproxy
mount --bind "$VOLUMES/run" /run/hookproxy
mount --bind "$VOLUMES/credentials" /run/credentials
for file in $FILES; do
    touch "/etc/hookproxy/${file##*/}"
    mount --bind "$VOLUMES/$file" "/etc/hookproxy/${file##*/}"
done
ip link set lo up
ip address add 10.244.1.5/32 dev lo
ip address add 192.0.2.7/32 dev lo
mount -o remount,bind,ro /etc
mount -o remount,bind,ro /
setpriv --reuid=10001 --regid=10001 --groups=10001 --no-new-privs --bounding-set=-all --inh-caps=-all \
    "$PYTHON" -m hookproxy "$@" &
setpriv --reuid=10001 --regid=10001 --clear-groups "$PYTHON" -c "$ASKS" || true
kill -TERM $! || true
wait $! || echo "ended with $?"
"""
_ASKS: Final = """
import time, urllib.error, urllib.request
end = time.monotonic() + 60
while True:
    try:
        print(urllib.request.urlopen("http://127.0.0.1:9090/readyz").read().decode(), flush=True)
        break
    except OSError:
        if time.monotonic() > end:
            raise SystemExit("it does not answer")
        time.sleep(0.05)
for peer in ("10.244.1.5", "192.0.2.7"):
    try:
        request = urllib.request.Request(f"http://{peer}:8765/mcp/tickets", b"{}", {"Host": "mcp.example.com"})
        print(peer, urllib.request.urlopen(request).status, flush=True)
    except urllib.error.HTTPError as refused:
        print(peer, refused.code, flush=True)
    except OSError as broken:
        print(peer, broken, flush=True)
"""


class Volumes:
    """The volumes of a pod as Kubernetes makes them with the fsGroup of the manifests: folders that everybody may
    write, and files that are links (kubernetes/pkg/volume/util/atomic_writer.go, pkg/volume/emptydir/empty_dir.go).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        tokens = folder / "tokens"
        create_token(str(tokens), "alice", [], None, "", 0)
        text = (FOLDER / "gateway.toml").read_text()
        fast = re.sub(r"drain_delay_seconds = \d+", "drain_delay_seconds = 0", text)
        self._make("config", 0o777, 0o444, {"gateway.toml": fast.encode()})
        make_audit_keys(folder)
        audit = {name: (folder / name).read_bytes() for name in ("audit.key", "audit-sign.key")}
        self._make("keys", 0o1777, 0o440, {"seal.key": os.urandom(32), "tokens": tokens.read_bytes(), **audit})
        self._make("credentials", 0o1777, 0o440, {"valkey": b"sekret-of-valkey", "tickets": b"sekret-of-tickets"})
        for name in ("state", "run"):
            self._make(name, 0o777, 0o440, {})

    def _make(self, name: str, folder_mode: int, file_mode: int, files: dict[str, bytes]) -> None:
        volume = self.folder / name
        content = volume / "..2026_11_23"
        content.mkdir(parents=True)
        (volume / "..data").symlink_to(content.name)
        for file, data in files.items():
            (content / file).write_bytes(data)
            os.chown(content / file, 0, 10001)
            (content / file).chmod(file_mode)
            (volume / file).symlink_to(f"..data/{file}")
        for one, mode in ((content, 0o755), (volume, folder_mode)):
            os.chown(one, 0, 10001)
            one.chmod(mode | 0o2000)


def start_as_pod(volumes: Volumes, etc: Path) -> str:
    """What a gateway writes that is started as its pod starts it, asked whether it is ready, and ended."""
    spec = container(GATEWAYS)
    paths = [one for one in spec["volumeMounts"] if "subPath" in one]
    words = [one.replace("$(POD_NAME)", "hookproxy-0") for one in spec["args"]]
    namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    python = os.path.relpath(os.path.realpath(sys.executable), sys.base_prefix)  # where it is may be root's own folder
    done = subprocess.run(
        ["unshare", *namespaces, "sh", "-eu", "-c", _IN_POD, "sh", *words],
        env={
            **environ(),
            "PATH": os.environ["PATH"],
            "ETC": str(etc),
            "VOLUMES": str(volumes.folder),
            "FILES": " ".join(f"{one['name']}/{one['subPath']}" for one in paths),
            "PYTHON_FOLDER": sys.base_prefix,
            "PYTHON": f"/run/python/{python}",
            "LD_LIBRARY_PATH": "/run/python/lib",
            "PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]),
            "ASKS": _ASKS,
        },
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
@ROOT_ONLY
@pytest.mark.skipif(
    not (shutil.which("unshare") and shutil.which("ip")), reason="NOT TESTED: unshare and ip are needed"
)
def test_a_gateway_starts_with_what_its_pod_gets(tmp_path: Path, private_etc: Path, nobody: int) -> None:
    said = start_as_pod(Volumes(tmp_path / "volumes"), private_etc)
    assert "ready\n" in said, said
    assert "10.244.1.5 401\n" in said, "the network of pods may ask, and this one has no token"
    assert "192.0.2.7 403\n" in said, "others may not"
    assert "serves tickets" in said
    assert "ended with" not in said
    assert not re.search("consoles do not|cannot be (read|written)|sekret|Traceback", said), said


@ROOT_ONLY
def test_the_files_of_a_whole_volume_are_refused(tmp_path: Path) -> None:
    folder = Volumes(tmp_path / "volumes").folder
    with pytest.raises(ConfigError, match="volumes/config: is writable by others"):
        load_gateway(str(folder / "config" / "gateway.toml"), environ(), "/")
    with pytest.raises(ConfigError):
        read_tokens(str(folder / "keys" / "tokens"))


@pytest.mark.slow
@pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")
def test_haproxy_accepts_the_balancers_configuration(tmp_path: Path) -> None:
    both = Path(self_signed(tmp_path / "both.pem")).read_text()
    key, certificate = both.split("-----BEGIN CERTIFICATE", 1)
    (tmp_path / "tls.crt").write_text("-----BEGIN CERTIFICATE" + certificate)
    (tmp_path / "tls.key").write_text(key)
    text = balancer_text()
    assert "/etc/haproxy/tls/tls.crt" in text
    assert mounted(BALANCER, "/etc/haproxy/tls")["secret"]
    (tmp_path / "haproxy.cfg").write_text(text.replace("/etc/haproxy/tls", str(tmp_path)))
    assert HAPROXY is not None
    command = [HAPROXY, "-c", "-f", str(tmp_path / "haproxy.cfg")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"WARNING|ALERT", done.stderr)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_makes_the_manifests() -> None:
    done = subprocess.run(["kubectl", "kustomize", str(FOLDER)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    assert len(made) == len(OBJECTS) + len(KUSTOMIZATION["configMapGenerator"])
    [gateways] = [one for one in made if one["kind"] == "StatefulSet"]
    [image] = KUSTOMIZATION["images"]
    assert container(gateways)["image"] == f"{image['newName']}:{image['newTag']}"
    name = mounted(gateways, "/etc/hookproxy/gateway.toml")["configMap"]["name"]
    [files] = [one["data"] for one in made if one["metadata"]["name"] == name]
    assert files == {"gateway.toml": (FOLDER / "gateway.toml").read_text()}
