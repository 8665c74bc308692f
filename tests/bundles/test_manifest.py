"""Which bundles may be taken: the attacks of whoever delivers them, and the keys that change hands."""

from __future__ import annotations

import json
import time

import pytest

from hookproxy.archives.listed import Refused
from hookproxy.bundles import make, manifest
from hookproxy.bundles.manifest import Memory, Verified, check_usable, is_newer, verify
from hookproxy.signing import ssh_signature
from hookproxy.signing.keys import PrivateKey
from tests.support.signed_policy import DAY, POLICY, bundle, new_key

KEY, OTHER, THIRD = new_key(), new_key(), new_key()


def taken(files: dict[str, bytes], *keys: PrivateKey) -> Verified:
    return verify(files, [key.public for key in keys or (KEY,)])


def memory_of(verified: Verified) -> Memory:
    return Memory(verified.manifest.version, verified.digest, verified.keys_chain)


def test_a_signed_bundle_is_taken() -> None:
    verified = taken(bundle(KEY, 3, files={"guards/a.sh": b"#!/bin/sh\n"}, executable=frozenset({"guards/a.sh"})))
    assert verified.manifest.version == 3
    assert verified.manifest.files["guards/a.sh"].executable
    assert not verified.manifest.files["policy.toml"].executable
    assert verified.signed_by == KEY.public
    check_usable(verified, "stable", 3, time.time())
    assert is_newer(verified, Memory())


@pytest.mark.parametrize("missing", ["manifest.json", "manifest.json.sig", "policy.toml", "a"])
def test_a_file_that_is_missing_is_named(missing: str) -> None:
    files = bundle(KEY, files={"a": b"1"})
    del files[missing]
    with pytest.raises(Refused, match=missing):
        taken(files)


# --- the attacks ---


def test_another_key_signs_nothing() -> None:
    with pytest.raises(Refused, match=r"manifest\.json is not signed by one of the keys"):
        taken(bundle(OTHER))


def test_what_a_key_has_signed_for_another_purpose_is_nothing() -> None:
    files = bundle(KEY)
    files["manifest.json.sig"] = ssh_signature.sign(KEY, "file", files["manifest.json"])
    with pytest.raises(Refused, match="for another purpose"):
        taken(files)


def test_mix_and_match_files_of_two_versions_are_refused() -> None:
    old = bundle(KEY, 1, files={"guard.sh": b"exit 0\n"})
    new = bundle(KEY, 2, files={"guard.sh": b"exit 2\n"})
    with pytest.raises(Refused, match=r"guard\.sh is not the file that manifest\.json names"):
        taken({**new, "guard.sh": old["guard.sh"]})
    with pytest.raises(Refused, match="not what its key has signed"):
        taken({**new, "manifest.json": old["manifest.json"]})
    with pytest.raises(Refused, match="not what its key has signed"):
        taken({**new, "manifest.json.sig": old["manifest.json.sig"]})


def test_a_file_that_was_added_is_refused() -> None:
    for name in ("json.py", "guards/__init__.py", "keys/evil.py", "keys/1.json.sig.py", "keys/01.json"):
        with pytest.raises(Refused, match=r"is not in manifest\.json"):
            taken({**bundle(KEY), name: b"import os"})


def test_rollback_an_older_version_is_refused() -> None:
    memory = memory_of(taken(bundle(KEY, 7)))
    with pytest.raises(Refused, match="version 6 is older than version 7"):
        is_newer(taken(bundle(KEY, 6)), memory)
    assert is_newer(taken(bundle(KEY, 8)), memory)


def test_the_same_version_is_not_new_and_with_another_content_it_is_refused() -> None:
    files = bundle(KEY, 7)
    memory = memory_of(taken(files))
    assert not is_newer(taken(files), memory)
    with pytest.raises(Refused, match="version 7 was taken before with another content"):
        is_newer(taken(bundle(KEY, 7, files={"a": b""})), memory)


def test_rollback_with_a_lost_memory_ends_at_min_version() -> None:
    check_usable(taken(bundle(KEY, 7)), "stable", 7, time.time())
    with pytest.raises(Refused, match="version 6 is lower than min_version, 7"):
        check_usable(taken(bundle(KEY, 6)), "stable", 7, time.time())


def test_freeze_a_bundle_is_of_no_use_when_it_has_expired() -> None:
    verified, now = taken(bundle(KEY, 7, seconds=DAY)), time.time()
    check_usable(verified, "stable", 1, now + DAY - 5)
    with pytest.raises(Refused, match="version 7 has expired at 20"):
        check_usable(verified, "stable", 1, now + DAY + 5)


def test_a_bundle_of_another_ring_is_refused() -> None:
    verified = taken(bundle(KEY, rings=("canary", "laptops")))
    check_usable(verified, "laptops", 1, time.time())
    with pytest.raises(Refused, match="is for the ring canary, laptops, and not for stable"):
        check_usable(verified, "stable", 1, time.time())


# --- what a signer may get wrong ---


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"format": "hookproxy-policy-2"}, "format"),
        ({"version": 0}, "version"),
        ({"version": "1"}, "version"),
        ({"expires": "never"}, "never"),
        ({"expires": "2027-01-01"}, "2027-01-01"),
        ({"rings": []}, "rings"),
        ({"rings": ["a b"]}, "rings"),
        ({"files": {"../a": {"sha256": "0" * 64, "size": 1}}}, "leads out"),
        ({"files": {"policy.toml": {"sha256": "0" * 63, "size": 1}}}, "sha256"),
        ({"files": {"a": {"sha256": "0" * 64, "size": 1}}}, r"names no policy\.toml"),
        (
            {"files": {name: {"sha256": "0" * 64, "size": 1} for name in ("policy.toml", "a/__pycache__/b")}},
            "leave it out",
        ),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_although_it_is_signed(changes: dict[str, object], why: str) -> None:
    text = json.dumps({**json.loads(bundle(KEY)["manifest.json"]), **changes}).encode()
    with pytest.raises(Refused, match=why):
        taken({"policy.toml": POLICY, **make.signed(text, KEY)})


def test_a_signed_text_that_is_not_json_is_refused() -> None:
    for text in (b"", b"[", b"[" * 100_000, b"null", b"\xff"):
        with pytest.raises(Refused, match=r"manifest\.json cannot be read"):
            taken({"policy.toml": POLICY, **make.signed(text, KEY)})


# --- keys that change hands ---


def rotated(before: dict[str, bytes], signer: PrivateKey, *keys: PrivateKey) -> dict[str, bytes]:
    """The statements of keys so far, and one more."""
    return before | make.key_statement(before, [key.public for key in keys], signer)


def test_a_key_that_was_named_by_the_one_before_counts_and_that_one_no_more() -> None:
    statements = rotated({}, KEY, OTHER)
    assert taken(bundle(OTHER, 2, files=statements)).signed_by == OTHER.public
    with pytest.raises(Refused, match="not signed by one of the keys"):
        taken(bundle(KEY, 2, files=statements))


def test_several_rotations_are_followed_from_the_administrators_key() -> None:
    statements = rotated(rotated({}, KEY, OTHER), OTHER, THIRD)
    assert len(taken(bundle(THIRD, 2, files=statements)).keys_chain) == 2
    with pytest.raises(Refused, match="not signed by one of the keys"):
        taken(bundle(OTHER, 2, files=statements))


def test_an_administrator_who_has_the_newest_key_needs_no_statement() -> None:
    statements = rotated(rotated({}, KEY, OTHER), OTHER, THIRD)
    assert taken(bundle(THIRD, 2, files=statements), THIRD).keys_chain == ()


def test_a_statement_of_another_key_counts_for_nothing() -> None:
    forged = rotated({}, OTHER, OTHER)
    with pytest.raises(Refused, match="not signed by one of the keys"):
        taken(bundle(OTHER, 2, files=forged))


def test_a_dropped_key_signs_nothing_where_its_end_is_known() -> None:
    memory = memory_of(taken(bundle(OTHER, 2, files=rotated({}, KEY, OTHER))))
    without = taken(bundle(KEY, 3))
    with pytest.raises(Refused, match="lacks a statement of keys"):
        is_newer(without, memory)
    another_way = {
        name.replace("1", "2"): text.replace(b": 1,", b": 2,") for name, text in rotated({}, KEY, KEY).items()
    }
    another_way["keys/2.json.sig"] = ssh_signature.sign(KEY, manifest.KEYS_NAMESPACE, another_way["keys/2.json"])
    assert len(taken(bundle(KEY, 3, files=another_way)).keys_chain) == 1
    with pytest.raises(Refused, match="lacks a statement of keys"):
        is_newer(taken(bundle(KEY, 3, files=another_way)), memory)


@pytest.mark.parametrize("text", [b"{}", b"null", b'{"format":"hookproxy-keys-1","number":2,"keys":["x"]}'])
def test_a_statement_that_is_wrong_is_refused_although_it_is_signed(text: bytes) -> None:
    signature = ssh_signature.sign(KEY, manifest.KEYS_NAMESPACE, text)
    with pytest.raises(Refused, match=r"keys/1\.json cannot be read"):
        taken(bundle(KEY, files={"keys/1.json": text, "keys/1.json.sig": signature}))


def test_keys_are_the_same_in_any_order_and_with_any_comment() -> None:
    assert manifest.keys_digest([KEY.public, OTHER.public]) == manifest.keys_digest([OTHER.public, KEY.public])
    assert manifest.keys_digest([KEY.public]) != manifest.keys_digest([OTHER.public])
