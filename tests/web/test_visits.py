"""Visits and form tokens: sealed, bound to what may be taken away, over in time; and the language of a visitor."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response

from sabun.web.spoken import spoken
from sabun.web.visits import Visit, Visits

KEY = b"k" * 32


def asking(cookie: str = "", query: str = "", languages: str = "") -> Request:
    headers = [(b"cookie", cookie.encode("latin-1", "replace")), (b"accept-language", languages.encode())]
    return Request({"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": headers})


def begun(visits: Visits, bound: bytes = b"hash") -> tuple[Visit, str, str]:
    response = Response()
    visit = visits.planned("alice")
    visits.seal(response, visit, bound)
    header = response.headers["set-cookie"]
    return visit, header.partition(";")[0], header


def holds(visits: Visits, cookie: str, bound: bytes = b"hash") -> bool:
    claimed = visits.claimed(asking(cookie))
    return claimed is not None and claimed[1](bound)


def test_a_visit_is_believed_under_its_key_and_what_it_is_bound_to() -> None:
    visits = Visits(KEY, secure=True)
    visit, cookie, _ = begun(visits)
    claimed = visits.claimed(asking(cookie))
    assert claimed is not None
    assert claimed[0] == visit
    assert holds(visits, cookie)
    assert not holds(visits, cookie, b"another hash")
    assert not holds(Visits(b"other" * 8, secure=True), cookie)


def test_a_changed_cookie_is_not_believed() -> None:
    visits = Visits(KEY, secure=True)
    visit, cookie, _ = begun(visits)
    seal = cookie.rpartition(".")[2]
    for content in (["bob", visit.id, visit.until], ["alice", visit.id, visit.until + 1], ["alice", "0" * 32, visit.until]):
        forged = base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
        assert not holds(visits, f"__Host-sabun-visit={forged}.{seal}")


def test_a_cookie_that_another_port_set_does_not_hide_ours() -> None:
    visits = Visits(KEY, secure=False)
    visit, cookie, _ = begun(visits)
    for others in ("sabun-visit=junk", "sabun-visit=", "other=1; sabun-visit=W10.x"):
        for sent in (f"{cookie}; {others}", f"{others}; {cookie}"):
            claimed = visits.claimed(asking(sent))
            assert claimed is not None
            assert claimed[0] == visit
            assert claimed[1](b"hash")


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: base64.urlsafe_b64encode(raw).decode() + ".x"))
def test_no_cookie_breaks_anything(value: str) -> None:
    assert not holds(Visits(KEY, secure=True), f"__Host-sabun-visit={value}")


@pytest.mark.parametrize(
    "content", ["[]", "[1, 2, 3]", '["a", "b", 1e999]', '["a", "' + "0" * 32 + '", true]', "[" * 900, "{}"]
)
def test_no_content_breaks_anything(content: str) -> None:
    value = base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")
    assert not holds(Visits(KEY, secure=True), f"__Host-sabun-visit={value}.x")


def test_a_visit_is_over_in_time() -> None:
    now = [1000.0]
    visits = Visits(KEY, secure=True, seconds=60, clock=lambda: now[0])
    _, cookie, _ = begun(visits)
    now[0] += 59
    assert holds(visits, cookie)
    now[0] += 1
    assert not holds(visits, cookie)


def test_the_cookie_is_bound_to_the_host_or_to_a_path_that_nobody_can_guess() -> None:
    _, _, safe = begun(Visits(KEY, secure=True))
    assert safe.startswith("__Host-sabun-visit=")
    assert {"Path=/", "Secure", "HttpOnly", "SameSite=strict"} <= {part.strip() for part in safe.split(";")}
    assert "Domain" not in safe
    visit, _, bare = begun(Visits(KEY, secure=False))
    assert {f"Path=/at/{visit.id}/", "HttpOnly", "SameSite=strict"} <= {part.strip() for part in bare.split(";")}
    assert "__Host-" not in bare
    assert begun(Visits(KEY, secure=False))[0].id != visit.id


def test_a_form_token_is_of_one_visit() -> None:
    visits = Visits(KEY, secure=True)
    one, other = visits.planned("alice"), visits.planned("alice")
    assert visits.is_form_token(one, visits.form_token(one))
    for token in (visits.form_token(other), visits.form_token(None), "", None, "\udcff"):
        assert not visits.is_form_token(one, token)


@pytest.mark.parametrize(
    ("query", "cookie", "languages", "lang"),
    [
        ("", "", "", "en"),
        ("", "", "ja", "ja"),
        ("", "", "ja-JP,ja;q=0.9,en;q=0.8", "ja"),
        ("", "", "fr;q=1, en;q=0.5, ja;q=0.8", "ja"),
        ("", "", "ja;q=0", "en"),
        ("", "", "ja;q=x, fr", "en"),
        ("", "", ",;=,", "en"),
        ("lang=ja", "", "en", "ja"),
        ("lang=fr", "", "ja", "ja"),
        ("", "sabun-language=ja", "en", "ja"),
        ("lang=en", "sabun-language=ja", "ja", "en"),
        ("", "sabun-language=xx", "ja", "ja"),
    ],
)
def test_the_language_is_what_a_visitor_chose_or_their_browser_says(query: str, cookie: str, languages: str, lang: str) -> None:
    assert spoken(asking(cookie, query, languages)) == lang
