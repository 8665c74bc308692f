"""Which templates may stand for a URI, however it is spelled."""

from __future__ import annotations

from time import process_time

import pytest

from hookproxy.session.uri_templates import may_expand_to, stands_for


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("notes:///{name}", "NOTES:///x"),
        ("notes:///{name}", "notes:/x"),
        ("notes:///{name}", "notes:%2F%2F/x"),
        ("notes:///{name}", " notes:///x"),
        ("notes:///{name}", "no\ttes:///x"),
        ("notes:///{name}", "notes:\\\\\\x"),
        ("http://h/a/{x}", "http://u@h:80/a/x"),
        ("http://h/a/{x}", "http://h/b/.././a/x"),
        ("http://h/a/{x}", "http://h/%61/x"),
        ("http://h/a/{x}", "http://h/%2561/x"),
        ("http://h/\u00e9/{x}", "http://h/e%CC%81/x"),
        ("file:///{path}", "file://localhost/x"),
        ("{+all}", "x"),
        ("urn:x:{id}", "urn:x:5"),
    ],
)
def test_a_template_stands_for_all_spellings(template: str, uri: str) -> None:
    assert may_expand_to(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("notes:///{name}", "mail:///x"),
        ("http://h/a/{x}", "http://h/b/x"),
        ("file:///logs/{x}", "file:///my%20dir/x"),
        ("file:///a", "file:///b"),
    ],
)
def test_a_template_does_not_stand_for_another_uri(template: str, uri: str) -> None:
    assert not may_expand_to(template, uri)


def test_another_template_stands_for_the_uri_as_it_is_spelled_only() -> None:
    assert stands_for("notes:///{name}", "NOTES:///x")
    assert not stands_for("notes:///{name}", "notes:/x")


@pytest.mark.parametrize("uri", ["/" * 8000, "a:/" + "@" * 8000, "a:///" + "a/" * 1500 + "../" * 1600, "%25" * 2700])
def test_no_uri_takes_long(uri: str) -> None:
    started = process_time()
    may_expand_to("http://q/{x}", uri)
    assert process_time() - started < 0.5
