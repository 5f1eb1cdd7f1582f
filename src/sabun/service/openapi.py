"""The description of the API (OpenAPI 3.1), written from the same table as its routes."""

from __future__ import annotations

from typing import Any

import msgspec

import sabun
from sabun.service.arrivals import REASONS
from sabun.service.problems import CODES, ProblemBody
from sabun.service.routes import ENDPOINTS, Endpoint

__all__ = ["description"]

_PLACES: dict[str, dict[str, Any]] = {
    "task": {
        "schema": {"type": "string", "pattern": "^[0-9a-f]{32}([0-9a-f]{32})?$"},
        "description": "The study's public id: the 16 bytes that travel with each report, or all 32, in hex.",
    },
    "n": {"schema": {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}, "description": "The number of the round."},
}
_EVERYWHERE = ("not-found", "internal")


def description() -> dict[str, Any]:
    """The whole description."""
    structs = [kind for one in ENDPOINTS for kind in (one.asks, one.answer) if isinstance(kind, type)]
    kinds = list(dict.fromkeys([*structs, ProblemBody]))
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for one in ENDPOINTS:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sabun collector",
            "version": sabun.__version__,
            "description": "Collects reports of key-value studies under local differential privacy. Reasons for which one "
            "report is refused: " + "; ".join(f"`{code}` ({words})" for code, words in REASONS.items()) + ".",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(one: Endpoint) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": one.handler.__name__,
        "summary": one.summary,
        "responses": {"200": {"description": "As asked.", "content": _content(one.answer)}} | _problems(one),
    }
    places = [name for name in _PLACES if f"{{{name}}}" in one.path]
    if places:
        found["parameters"] = [{"name": name, "in": "path", "required": True, **_PLACES[name]} for name in places]
    if one.asks is not None:
        sent = _content(one.asks)
        if one.reports:
            sent["application/vnd.sabun.reports"] = {"schema": {"type": "string", "format": "binary", "minLength": 1}}
        found["requestBody"] = {"required": one.scope is None, "content": sent}
    if one.scope is not None:
        found["security"] = [{"token": []}]
        found["description"] = f"Needs a token with the scope `{one.scope}`."
    return found


def _content(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string"}}}
    (schema,), _ = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    return {"application/json": {"schema": schema}}


def _problems(one: Endpoint) -> dict[str, Any]:
    """The problems of an endpoint, by status."""
    found: dict[str, list[str]] = {}
    for code in (*one.problems, *_EVERYWHERE):
        found.setdefault(str(CODES[code][0]), []).append(code)
    body = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
    return {
        status: {"description": " ".join(f"`{code}`: {CODES[code][1]}" for code in codes), "content": body}
        for status, codes in sorted(found.items())
    }
