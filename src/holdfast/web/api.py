"""The OpenAPI description of the JSON twins and actions, made of the same tables as they are."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from holdfast.web.schemas import Schemas
from holdfast.web.views import ActionRoute, Done, Table, View

_REF: Final = "#/components/schemas/{name}"


def openapi(table: Table, version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of an application, without `servers`, which depend on where it is mounted."""
    results = Schemas("#/components/schemas/Result.{name}")
    kinds = list(dict.fromkeys([*(action.body for action in table.actions.values()), Done]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    bodies = dict(zip(kinds, schemas, strict=True))  # two modules may have bodies of one name
    paths: dict[str, Any] = {}
    for view in table.views:
        paths.setdefault(view.twin, {})["get"] = _read(view, results.of_result(view.load))
    for action in table.actions.values():
        paths.setdefault(f"/{action.noun}/{action.verb}", {})["post"] = _write(action, bodies[action.body])
    paths["/health"] = {"get": _HEALTH}
    parts = {f"Result.{name}": schema for name, schema in results.components.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "holdfast", "version": version},
        "paths": paths,
        "components": {"schemas": {**components, **parts, "Problem": _PROBLEM}},
    }


_PROBLEM: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "request": {"type": "string"},
    },
}


def _read(view: View, result: Mapping[str, Any]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([view.query], ref_template=_REF)
    schema = components[view.query.__name__]
    parameters = [
        {"name": name, "in": "query", "required": False, "schema": one}
        for name, one in schema.get("properties", {}).items()
    ]
    if "{name}" in view.path:
        parameters.insert(
            0, {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        )
    return {
        "operationId": f"get_{view.name}",
        "summary": view.summary,
        "parameters": parameters,
        "responses": {
            "200": _json("What the page shows.", result),
            **_errors("400", "401", "403", "404", "503"),
        },
    }


_IF_MATCH: Final[Mapping[str, Any]] = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of what is changed, as it was read: nothing is done if it was changed since.",
    "required": False,
    "schema": {"type": "string"},
}


def _write(action: ActionRoute, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operationId": f"{action.verb}_{action.noun}".replace("-", "_"),
        "summary": action.summary,
        "parameters": [_IF_MATCH] if action.tagged else [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": _json("What was done.", {"$ref": _REF.format(name="Done")}),
            **_errors(
                "400", "401", "403", "404", "409", *(["412"] if action.tagged else []), "413", "415", "503"
            ),
        },
    }


def _json(description: str, schema: Mapping[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _errors(*statuses: str) -> dict[str, Any]:
    problem = {"$ref": _REF.format(name="Problem")}
    return {status: _json("A problem document.", problem, "application/problem+json") for status in statuses}


_HEALTH: Final[Mapping[str, Any]] = {
    "operationId": "get_health",
    "summary": "Whether the store responds; needs no user.",
    "parameters": [],
    "responses": {
        "200": _json(
            "It responds.",
            {"type": "object", "required": ["store"], "properties": {"store": {"const": "ok"}}},
        ),
        **_errors("503"),
    },
}
