"""Folders, URIs and hosts: what is opened, how little that is, and what never is."""

from __future__ import annotations

import pytest

from hookproxy.learning import places
from tests.support.learning import line, reads, rules


def files(folder: str, number: int) -> list[str]:
    return [f"{folder}/f{at}.py" for at in range(number)]


def test_a_folder_of_which_ever_other_files_are_read_is_opened() -> None:
    assert rules(reads(*files("/srv/app/src", 3))) == ["allow read_file(/srv/app/src/*)"]


def test_the_same_few_files_are_listed_however_often_they_are_read() -> None:
    assert rules(reads(*files("/srv/app", 5) * 20)) == [f"allow read_file({path})" for path in files("/srv/app", 5)]


def test_two_files_open_no_folder() -> None:
    assert rules(reads("/srv/app/a", "/srv/app/b")) == ["allow read_file(/srv/app/a)", "allow read_file(/srv/app/b)"]


def test_a_folder_is_opened_below_what_was_used_not_above() -> None:
    seen = reads(*files("/srv/work/app/src", 40), *files("/srv/work/app/docs", 40), *files("/srv/work/app/lib", 40))
    assert rules(seen) == [f"allow read_file(/srv/work/app/{name}/*)" for name in ("docs", "lib", "src")]


def test_no_folder_is_opened_in_which_something_was_denied() -> None:
    seen = reads(*files("/srv/app/src", 30), *files("/srv/app/docs", 30))
    denied = reads("/srv/app/keys/a", decision="deny")
    assert rules([*seen, *denied]) == [
        "deny read_file(/srv/app/keys/a)",
        "allow read_file(/srv/app/docs/*)",
        "allow read_file(/srv/app/src/*)",
    ]


def test_a_denial_between_allowed_files_leaves_these_one_by_one() -> None:
    found = rules([*reads(*files("/srv/app", 6)), *reads("/srv/app/x", decision="deny")])
    assert found == ["deny read_file(/srv/app/x)", *(f"allow read_file({path})" for path in files("/srv/app", 6))]


def test_a_name_that_was_denied_in_several_folders_is_denied_in_all_and_bars_none() -> None:
    seen = reads(*files("/srv/app/src", 9), *files("/srv/app/docs", 9))
    denied = reads("/srv/app/src/.env", "/srv/app/docs/.env", decision="deny")
    assert rules([*seen, *denied]) == [
        "deny read_file(**/.env)",
        "allow read_file(/srv/app/docs/*)",
        "allow read_file(/srv/app/src/*)",
    ]


def test_several_denials_in_a_folder_of_which_nothing_passed_are_one_rule() -> None:
    found = rules([*reads(*files("/srv/app", 3)), *reads("/etc/passwd", "/etc/shadow", decision="deny")])
    assert found == ["deny read_file(/etc/*)", "allow read_file(/srv/app/*)"]


@pytest.mark.parametrize("folder", ["", "/srv", "/home/ann", "/Users/ann", "/root", "~", "/home"])
def test_the_root_homes_and_folders_at_the_root_are_not_opened_for_a_few_files(folder: str) -> None:
    found = rules(reads(*files(folder, 11)))
    assert found == sorted(f"allow read_file({path})" for path in files(folder, 11))


def test_a_home_folder_is_opened_if_it_was_seen_broadly_and_hidden_names_do_not_count() -> None:
    assert rules(reads(*files("/home/ann", 12))) == ["allow read_file(/home/ann/*)"]
    hidden = [f"/home/ann/.f{at}" for at in range(6)]
    assert len(rules(reads(*files("/home/ann", 6), *hidden))) == 12


def test_the_root_and_all_relative_paths_are_never_opened() -> None:
    assert "allow read_file(/*)" not in rules(reads(*(f"/d{at}/f" for at in range(200))))
    assert "allow read_file(*)" not in rules(reads(*(f"d{at}/f" for at in range(200))))
    assert rules(reads("src/a", "src/b", "src/c")) == ["allow read_file(src/*)"]


def test_texts_that_are_only_written_do_not_stand_in_the_way_of_a_rule_about_the_path() -> None:
    seen = [line("write_file", arguments={"path": path, "content": path * 90}) for path in files("/srv/app", 9)]
    assert rules([*seen]) == ["allow write_file(path:/srv/app/*)"]


def test_files_that_are_moved_need_a_folder_that_has_both() -> None:
    seen = [line("move", arguments={"source": f"/srv/a/in/{at}", "destination": f"/srv/a/out/{at}"}) for at in range(9)]
    assert rules([*seen]) == ["allow move(/srv/a/*)"]


def test_a_denied_copy_is_about_the_end_that_is_far_from_what_passed() -> None:
    seen = [line("copy", arguments={"source": f"/srv/a/{at}", "destination": f"/srv/a/x{at}"}) for at in range(9)]
    denied = [line("copy", "deny", arguments={"source": f"/srv/a/s{at}", "destination": f"/tmp/{at}"}) for at in (1, 2)]
    assert rules([*seen, *denied]) == ["deny copy(/tmp/*)", "allow copy(/srv/a/*)"]


def test_resources_are_learned_by_their_place() -> None:
    uris = [f"db://users/{at}" for at in range(9)]
    seen = [line("resources/read", arguments={"uri": uri}, method="resources/read") for uri in uris]
    denied = [
        line("resources/read", "deny", arguments={"uri": f"db://keys/{at}"}, method="resources/read") for at in range(3)
    ]
    assert rules([*seen, *denied]) == ["deny resources/read(db://keys/*)", "allow resources/read(db://users/*)"]


def fetches(*hosts: str, decision: str = "allow", **others: object) -> list[dict[str, object] | bytes]:
    return [line("fetch", decision, arguments={"url": f"https://{host}/x", **others}) for host in hosts]


def test_hosts_are_learned_one_by_one_and_a_domain_only_if_several_hosts_of_it_were_seen() -> None:
    assert rules(fetches("a.example.com", "b.example.com")) == [
        "allow fetch(domain:a.example.com)",
        "allow fetch(domain:b.example.com)",
    ]
    assert rules(fetches(*(f"h{at}.example.com" for at in range(4)))) == ["allow fetch(domain:*.example.com)"]


def test_no_domain_is_opened_below_which_a_host_was_denied() -> None:
    found = rules([*fetches(*(f"h{at}.example.com" for at in range(4))), *fetches("x.example.com", decision="deny")])
    assert "allow fetch(domain:*.example.com)" not in found
    assert found[0] == "deny fetch(domain:x.example.com)"
    assert len(found) == 5


@pytest.mark.parametrize("suffix", ["github.io", "co.uk", "s3.amazonaws.com", "workers.dev", "com", "gov.au"])
def test_a_suffix_below_which_anybody_gets_a_name_is_never_opened(suffix: str) -> None:
    assert not any("*" in rule for rule in rules(fetches(*(f"h{at}.{suffix}" for at in range(20)))))


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.com", "example.com"),
        ("a.example.co.uk", "example.co.uk"),
        ("a.example.de", "example.de"),
        ("10.0.0.1", ""),
        ("localhost", ""),
        ("a..b.com", ""),
        ("x.y.github.io", ""),
    ],
)
def test_what_is_registered(host: str, domain: str) -> None:
    assert places.registrable(host) == domain


def test_a_host_behind_a_users_name_is_none() -> None:
    assert places.host_of("https://a.example@evil.example/") == ""
    assert places.host_of("http://A.Example:80?x") == "a.example"
    assert places.host_of("file:///etc/passwd") == ""


def test_addresses_with_other_texts_are_asked_about_and_not_opened() -> None:
    assert rules(fetches("a.example", "b.example", method="POST")) == ["ask fetch"]
