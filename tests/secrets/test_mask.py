"""What looks like a secret is masked wherever it stands, and nothing else is; in linear time."""

from __future__ import annotations

import json
import time
import timeit
from collections.abc import Callable

import pytest

from hookproxy.secrets.mask import Masking

GITHUB = "ghp_" + "a1B2" * 9
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"


def masked(value: object, *, careful: bool = False) -> str:
    return Masking(careful=careful).json(json.dumps(value, ensure_ascii=False).encode()).decode()


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ({"password": "hunter2"}, "hunter2"),
        ({"a": [{"b": {"apiKey": "abcd"}}]}, "abcd"),
        ({"DB_PASSWORD2": "hunter2"}, "hunter2"),
        ({"X-Api-Key": "abcdef"}, "abcdef"),
        ({"clientSecret": {"deep": ["hunter2"]}}, "hunter2"),
        ({"pin": 1234}, "1234"),
        ({"n": 1, "password": 123456789}, "123456789"),
        ({"name": "DB_PASSWORD", "value": "hunter2"}, "hunter2"),
        ({"Env": [{"Name": "DB_PASSWORD", "Value": "hunter2"}]}, "hunter2"),
        ({"env": [{"k": "DB_PASSWORD", "v": "hunter2"}]}, "hunter2"),
        ({"headers": [["Authorization", "Basic dXNlcjpwdw=="]]}, "dXNlcjpwdw=="),
        ({"headers": {"Cookie": "sid=abc"}}, "sid=abc"),
        ({"args": ["--password", "hunter2"]}, "hunter2"),
        ({"args": ["login", "--token=abcdef"]}, "abcdef"),
        ({"args": ["curl", "-u", "bob:hunter2"]}, "hunter2"),
        ({"command": "mysql", "args": ["-u", "root", "-phunter2"]}, "hunter2"),
        ({"argv": ["redis-cli", "-a", "hunter2"]}, "hunter2"),
        ({"env": ["PASSWORD=hunter2"]}, "hunter2"),
        ({GITHUB: 1}, GITHUB),
        ({"body": json.dumps({"password": "hun ter2"})}, "hun ter2"),
        ({"body": json.dumps({"b": json.dumps({"token": "x y"})})}, "x y"),
        ({"body": r'{"pass\u0077ord": "hun ter2"}'}, "hun ter2"),
        ({"body": ' ["a", {"secret": "hun ter2"}] '}, "hun ter2"),
        ({"tokens": ["hunter2"], "max_tokens": 7}, "hunter2"),
        ({"secrets": {"a": "hunter2"}}, "hunter2"),
        ({"\uff30\uff21\uff33\uff33\uff37\uff2f\uff32\uff24": "hunter2"}, "hunter2"),
        ({"args": ["docker", "login", "-p", "hunter2"]}, "hunter2"),
        ({"password": "hunter22", "command": "echo hunter22"}, "hunter22"),
        ({"n": 1.5, "password": "hunter2"}, "hunter2"),
    ],
)
def test_what_its_name_calls_secret_is_masked(value: object, secret: str) -> None:
    assert secret not in masked(value)
    assert "[masked: " in masked(value)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("tool --token abcdef --x y", "abcdef"),
        ("tool --db-password='a b' x", "a b"),
        ("PASSWORD=hunter2 ./run", "hunter2"),
        ('export GITHUB_TOKEN="abc def"; x', "abc def"),
        ("curl -u bob:hunter2 https://x.example", "hunter2"),
        ("curl --user=bob:hunter2 https://x.example", "hunter2"),
        ("curl -H 'Authorization: Basic dXNlcjpwdw=='", "dXNlcjpwdw=="),
        ('curl -H "Authorization: Bearer abc123.def"', "abc123.def"),
        ("curl -H 'X-Api-Key: abcdef'", "abcdef"),
        ("Cookie: a=b; session=c1\r\nHost: x", "c1"),
        ("a bearer AbC123456.x in a sentence", "AbC123456.x"),
        ("mysql -u root -phunter2 db", "hunter2"),
        ("/usr/bin/mysqldump -p'hunter2' db | gzip", "hunter2"),
        ("sshpass -p hunter2 ssh h", "hunter2"),
        ("redis-cli -h x -a hunter2 ping", "hunter2"),
        ("docker login -u bob -p hunter2 r.example", "hunter2"),
        ("smbclient -U bob%hunter2 //h/s", "hunter2"),
        ("openssl rsa -passin pass:hunter2", "hunter2"),
        ("https://bob:hunter2@h.example/x", "hunter2"),
        ("postgres://bob:hun/t@er2@h.example/x", "er2"),
        ("https://0123456789abcdef0123@h.example/x", "0123456789abcdef0123"),
        ("https://h.example/x?access_token=abc123&y=1", "abc123"),
        ("https://h.example/x?a=b&sig=abc%2F123", "abc%2F123"),
        ("AccountKey=abc+/123==;Endpoint=x", "abc+/123=="),
        ("Server=x;Pwd=hunter2;", "hunter2"),
        ("password: hunter2\nuser: bob", "hunter2"),
        ('{"a": 1, "password": "hun\\"ter2", broken', "ter2"),
        ("<password>hunter2</password>", "hunter2"),
        ("ALTER USER bob PASSWORD 'hunter2'", "hunter2"),
        ("CREATE USER bob IDENTIFIED BY 'hunter2'", "hunter2"),
        ("the password is hunter2, and not more", "hunter2"),
        ('<add key="password" value="hunter2"/>', "hunter2"),
        ("curl -b 'session=abc123' https://x.example", "abc123"),
        ("tool --token \\\n    abcdef", "abcdef"),
        ("aws configure set aws_secret_access_key wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "wJalrXU"),
        (f"see {GITHUB}.", GITHUB),
        (f"see {JWT}", "dozjgNryP4J3"),
        ("key AKIAIOSFODNN7EXAMPLE x", "AKIAIOSFODNN7EXAMPLE"),
        ("db:\n  password: |\n    hunter2zz\n", "hunter2zz"),
        ("password: >-\n  hunter2zz\n", "hunter2zz"),
        ("password=f'hunter2zz'", "hunter2zz"),
        ("login(password=b'hunter2zz')", "hunter2zz"),
        ("password: str = 'hunter2zz'", "hunter2zz"),
        ("const password: string = 'hunter2zz'", "hunter2zz"),
        ('user.setPassword("hunter2zz")', "hunter2zz"),
        ("curl --cookie 'sid=hunter2zz' https://example.org", "hunter2zz"),
        ("openssl enc -aes256 -k hunter2zz", "hunter2zz"),
        ("https://example.org/?a=b&key=hunter2zz", "hunter2zz"),
        ("https://example.org/?pw=hunter2zz", "hunter2zz"),
        ("network={ psk=hunter2zz }", "hunter2zz"),
        ("send Basic Ym9iOmh1bnRlcjI= to it", "Ym9iOmh1bnRlcjI"),
        ("kubectl create secret generic x --from-literal=a=hunter2zz", "hunter2zz"),
        ("echo 'bob:hunter2zz' | sudo chpasswd", "hunter2zz"),
        ("echo hunter2zz | sudo -S ls", "hunter2zz"),
        ("ConvertTo-SecureString 'hunter2zz' -AsPlainText", "hunter2zz"),
        ("https://api.telegram.org/bot123456789:" + "Aa1" * 11 + "/sendMessage", "Aa1Aa1"),
        ("SK" + "0a" * 16, "0a0a0a"),
        ("sk-ant-api03-" + "x1" * 20, "x1x1x1x1"),
        ("https://hooks.slack.com/services/T12345678/B12345678/" + "a1" * 12, "a1a1a1a1"),
        ("é" * 3000 + f" {GITHUB} " + "é", GITHUB),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\naC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n", "aC1rZXk"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQ cut off", "MIIEvQ"),
    ],
)
def test_what_looks_like_a_secret_in_a_text_is_masked(text: str, secret: str) -> None:
    for shown in (Masking().text(text), masked({"x": [text]}), masked({"x": json.dumps({"y": text})})):
        assert secret not in shown
        assert "[masked: " in shown


@pytest.mark.parametrize(
    "value",
    [
        {"path": "/home/bob/src/token.py", "max_tokens": 100, "next_page_token": "abc", "n": 1.0},
        {"auth": True, "token": None, "secret": "", "password_policy": "strict", "keyboard": "us"},
        {"command": "docker run -p 8080:80 -u 1000:1000 x && mkdir -p y"},
        {"command": "PASSWORD=$PASSWORD TOKEN=${TOKEN} ./run --password-file /etc/x"},
        {"command": "echo 'def f(password: str = None) -> bool'"},
        {"url": "http://localhost:8080/a?x=a@b.example", "git": "https://git@github.com/a/b git@github.com:a/b"},
        {"text": "The token is read first; compass: north, bypass=yes, PWD=/home/bob"},
        {"text": "a-very-long-file-name.with.dots.and-more.txt 0123456789abcdef0123456789abcdef01234567"},
        {"text": "the password is required", "tokens": 5, "max_tokens": 100, "secrets": 0},
        {"args": ["-u", "root", "-p", "80:80"], "list": ["username", "password", "email"]},
    ],
)
def test_what_is_no_secret_stays_as_it_is_spelled(value: object) -> None:
    raw = json.dumps(value).encode()
    masking = Masking()
    assert masking.json(raw) is raw
    assert not masking.rules


def test_numbers_keep_their_spelling_beside_a_masked_value() -> None:
    raw = b'{"n":1.0,"e":1e5,"big":123456789012345678901234567890,"password":"x"}'
    shown = Masking().json(raw)
    assert shown == raw.replace(b'"x"', b'"[masked: name]"')


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("other", [7, 1.5, None])
@pytest.mark.parametrize("spelling", ["1234", "12.340", "-0", "1E400", "1" * 30])
def test_a_secret_number_is_masked_whatever_other_numbers_there_are(
    spelling: str, other: float | None, careful: bool
) -> None:
    raw = b'{"n":%s,"pin":%s,"x":"token=hunter2"}' % (json.dumps(other).encode(), spelling.encode())
    shown = Masking(careful=careful).json(raw)
    assert json.loads(shown) == {"n": other, "pin": "[masked: name]", "x": "token=[masked: password]"}


def test_numbers_that_could_be_spelled_otherwise_stay_as_they_are() -> None:
    for spelling in (b"-0", b"1.50", b"1e5", b"1E400", b"1" * 30, b"0", b"-7"):
        assert Masking().json(b'{"password":"hunter2","n":[%s]}' % spelling).endswith(b'"n":[%s]}' % spelling)


def test_nothing_that_a_shell_would_run_hides_in_a_masked_value() -> None:
    for command in (
        "PASSWORD=x;reboot",
        "TOKEN=x$(reboot)",
        'TOKEN="x$(reboot)"',
        "PASSWORD=x|reboot",
        "TOKEN=`reboot`",
        "echo x;reboot | sudo -S ls",
        "echo $(reboot) | sudo -S ls",
        "ConvertTo-SecureString '$(reboot)'",
        "x --from-literal=a=b;reboot",
        "password: |\n  x;reboot",
        "machine h login u password $(reboot)",
        "insert into t(password) values ('$(reboot)')",
        "insert into t(password) values ('`reboot`')",
        "kind: Secret\ndata:\n  a: `reboot`",
        "echo x | sh; reboot | docker login --password-stdin",
        "sudo -S ls <<< $(reboot)",
        "vault kv put secret/a b=$(reboot)",
        "setx TOKEN x;reboot",
        "curl -su 'a:'b;reboot;'c'",
        "PASSWORD=x\\;reboot".replace("\\;", ";"),
    ):
        assert "reboot" in Masking().text(command)


def test_who_calls_cannot_hide_a_command_or_a_path_by_calling_it_a_secret_elsewhere() -> None:
    for text in ("rm -rf /", "/etc/passwd", "evil.example"):
        assert json.loads(masked({"password": text, "command": text}))["command"] == text


def test_for_an_approval_what_could_be_run_stays_visible() -> None:
    assert "hunter2" not in masked({"password": "hunter2"}, careful=True)
    assert "x; reboot" in masked({"password": "x; reboot"}, careful=True)
    assert "reboot" in masked({"token": {"run": ["$(reboot)"]}}, careful=True)
    assert "reboot" in masked({"c": "--password 'x; reboot'"}, careful=True)


def test_a_short_password_is_guessable_and_a_token_is_not() -> None:
    masking = Masking()
    masking.json(json.dumps({"x": GITHUB}).encode())
    assert not masking.guessable
    masking.json(b'{"password":"hunter2"}')
    assert masking.guessable


def test_what_one_text_of_a_record_has_is_removed_from_the_others() -> None:
    masking = Masking()
    masking.json(b'{"password":"hunter2"}')
    assert masking.text("hunter2 is weak") == "[masked: name] is weak"


def test_what_a_later_member_calls_secret_is_removed_from_earlier_names() -> None:
    names = ["the first of hunter22, or so", "the first of swordfish, or so"]
    assert json.loads(masked({names[0]: 1, names[1]: 2, "password": "hunter22", "token": "swordfish"})) == {
        "the first of [masked: name], or so": 1,
        "the first of [masked: name], or so'": 2,
        "password": "[masked: name]",
        "token": "[masked: name]",
    }


def test_a_secret_of_several_lines_is_removed_from_a_value_that_was_masked_before() -> None:
    masking = Masking()
    body = "MIIEowIBAAKCAQEA\n7bq3kQx"
    masking.text(f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----")
    assert b"7bq3kQx" not in masking.with_known(json.dumps({"x": f"a\n{body}\nb"}).encode())


def test_a_file_that_is_called_a_secret_is_masked_if_it_has_one_word() -> None:
    for path in ("/run/secrets/db_password", "secrets/token.txt", "/app/.vault_pass"):
        assert "swordfish" not in masked({"path": path, "content": "swordfish\n"})
        assert "rm -rf /" in masked({"path": path, "content": "#!/bin/sh\nrm -rf /\n"})


def test_a_command_that_goes_on_in_the_next_line_is_one_command() -> None:
    assert "hunter2" not in Masking().text("docker login \\\n  -u bob \\\n  -p hunter2 r.example")
    assert "8080" in Masking().text("docker login r.example\ndocker run \\\n  -p 8080:80 x")


def test_nothing_that_a_shell_would_run_hides_in_a_word_that_is_written_into_a_file() -> None:
    for command in (
        "echo 'rm${IFS}-rf' > token",
        "echo $(reboot) > token",
        "echo /bin/reboot > x/token",
        "echo a;reboot > token",
    ):
        assert command in Masking().text(command)


def test_a_value_that_cannot_be_read_is_masked() -> None:
    for raw in (b'{"a":', b'{"password":"a","password":"b"}x', b"[" * 100_000 + b"]" * 100_000):
        assert Masking().json(raw) == b'"[masked: unreadable]"'


SHAPES: dict[str, Callable[[int], str]] = {
    "names": lambda n: "password" * n,
    "assignments": lambda n: "token=" * n,
    "quotes": lambda n: 'password="' * n,
    "escaped quotes": lambda n: 'secret:\\"' * n,
    "backslashes": lambda n: 'secret="' + "\\" * (8 * n),
    "slashes": lambda n: "token=" + "/a" * (4 * n) + "!",
    "addresses": lambda n: "http://a:" * n + "@",
    "at signs": lambda n: "://" + "a@" * (4 * n),
    "keys": lambda n: "-----BEGIN PRIVATE KEY-----" * (n // 3),
    "programs": lambda n: "mysql -p" * n,
    "options": lambda n: "-u a:" * n,
    "cookies": lambda n: "cookie: a" + ";b=c" * (2 * n),
    "bearers": lambda n: "bearer " + "a" * (8 * n),
    "pieces": lambda n: "eyJaaaaaaaaaa." * n,
    "dashes": lambda n: "-" * (8 * n) + "token x",
    "nested": lambda n: json.dumps(json.dumps(json.dumps({"password": "x" * (8 * n)}))),
    "brackets": lambda n: "[" * (8 * n),
    "machines": lambda n: "machine a login b password" * n,
    "rows": lambda n: "insert into a(" + "password " * n + ") values (",
    "secrets of Kubernetes": lambda n: "kind: secret\n" + "data:\n  a: b\n" * n + '"data":{' * n,
    "lines of base64": lambda n: "a" * 64 + "\n" * n + "a\n" * n + "private key",
    "hosts": lambda n: "pgpass " + "a:" * n + "\n" + "a:5432:" * n,
    "fields": lambda n: "passwordpassword" * n + ".fill(",
    "piped": lambda n: "echo a | b " * n + "--password-stdin",
    "pairs": lambda n: "vault kv put secret/a" + " a=b" * n + '"',
    "curl": lambda n: "curl -su a: " * n,
    "programs with one word": lambda n: "mysqladmin password " * n + "mc alias set a b " * n,
    "files": lambda n: "echo a > token " * n + "cat > token <<E\n" * n,
    "calls": lambda n: "jwt.sign(a," * n + "basicauth('a'," * n,
    "wallets": lambda n: "mnemonic " + "word " * (8 * n),
    "members": lambda n: json.dumps({f"password{number}": f"hunter{number}" for number in range(n)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_no_text_takes_more_than_linear_time(shape: str) -> None:
    def seconds(count: int) -> float:
        text = SHAPES[shape](count)
        return min(timeit.repeat(lambda: Masking().text(text), number=1, repeat=3, timer=time.process_time))

    short, long = seconds(500), seconds(4000)
    assert long < max(24 * short, 0.02), "eight times as long: three times of that are left for a busy machine"


def test_a_token_of_terraform_is_masked_from_its_beginning_and_another_one_in_it_with_it() -> None:
    token = "aB3dE6gH9jK2mN.atlasv1." + "q" * 30 + "sk-" + "r" * 30
    assert Masking().text(f"see {token} and {token}") == "see [masked: terraform-token] and [masked: terraform-token]"


@pytest.mark.parametrize("form", ["x {} y", "token = {}", "{}", "--password {}", "{}{}"])
def test_placeholders_stay_because_they_hide_what_they_stand_for(form: str) -> None:
    text = form.replace("{}", "{{secret:github-pat:fc06c8c0}}")
    assert Masking().text(text) == text
    raw = b'{"token":"%b","args":["--token","%b"]}' % (text.encode(), text.encode())
    assert Masking().json(raw).count(b"{{secret:github-pat:fc06c8c0}}") == 2 * form.count("{}")


def test_what_only_begins_like_a_placeholder_is_masked() -> None:
    assert b"hjkl" not in Masking().json(b'{"token":"{{secret:ghjkl"}')
    assert "hunter2x" not in Masking().json(b'{"password":"hunter2x{{secret:a-b:00000000}}"}').decode()
