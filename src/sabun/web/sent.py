"""What a browser sent: the fields of a form, and the address of the same page in the other language."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request

from sabun.telling.language import LANGUAGES

__all__ = ["other_language", "sent_fields"]

_MOST_FIELDS = 100


def sent_fields(body: bytes, *, most: int = _MOST_FIELDS) -> list[tuple[str, str]]:
    """The fields of a form in the order they were sent; none where there are more than any form of ours has."""
    try:
        return parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=most)
    except ValueError:
        return []


def other_language(request: Request, lang: str) -> tuple[str, str]:
    """The other language, and where this page is in it."""
    [other] = [one for one in LANGUAGES if one != lang]
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "lang"]
    return other, f"{request.url.path}?{urlencode([*kept, ('lang', other)])}"
