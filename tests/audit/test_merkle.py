"""The tree over lines: the values of RFC 6962, and that no path proves what is not in the tree."""

from __future__ import annotations

from hashlib import sha256

import pytest

from hookproxy.audit import merkle
from tests.support.receipt_verifier import VERIFIER

LEAVES = [merkle.leaf(b"line %d" % number) for number in range(13)]


def test_an_empty_tree_has_the_hash_of_nothing() -> None:
    assert merkle.root([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_values_that_certificate_transparency_tests_with() -> None:
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    leaves = [merkle.leaf(bytes.fromhex(text)) for text in inputs]
    assert leaves[0].hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert merkle.root(leaves[:2]).hex() == "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"
    assert merkle.root(leaves[:3]).hex() == "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
    assert merkle.root(leaves).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


def test_leaves_and_nodes_are_told_apart() -> None:
    left, right = LEAVES[:2]
    assert merkle.root([left, right]) == sha256(b"\1" + left + right).digest()
    assert merkle.leaf(left + right) != merkle.root([left, right])


@pytest.mark.parametrize("size", range(1, 14))
def test_each_leaf_has_a_path_to_the_root_and_to_no_other_place(size: int) -> None:
    leaves = LEAVES[:size]
    root = merkle.root(leaves)
    for index, leaf in enumerate(leaves):
        path = merkle.path(leaves, index)
        assert VERIFIER.root_by_path(leaf, index, size, path) == root
        for other in range(size):
            if other != index:
                assert VERIFIER.root_by_path(leaf, other, size, path) != root
        assert VERIFIER.root_by_path(LEAVES[(index + 1) % 13], index, size, path) != root or size == 13


def test_a_path_of_another_length_proves_nothing() -> None:
    path = merkle.path(LEAVES, 4)
    assert VERIFIER.root_by_path(LEAVES[4], 4, 13, path[:-1]) is None
    assert VERIFIER.root_by_path(LEAVES[4], 4, 13, [*path, LEAVES[0]]) is None
    assert VERIFIER.root_by_path(LEAVES[0], 0, 1, [LEAVES[1]]) is None
    assert VERIFIER.root_by_path(LEAVES[0], 0, 0, []) is None
    assert VERIFIER.root_by_path(LEAVES[0], 1, 1, []) is None
    assert VERIFIER.root_by_path(LEAVES[0], -1, 1, []) is None
