"""The OpenAPI description of the gateway, made of the table of verbs."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, get_type_hints

import msgspec

from holdfast.commands.leases import Popped, Settlement
from holdfast.models import JobFacts
from holdfast.release import VERSION
from holdfast.web.gateway.exceptions import NAMED_RESULTS
from holdfast.web.gateway.repeats import HEADER as KEY
from holdfast.web.gateway.results import Ended, LeasedJob, RefusedJob, Settled
from holdfast.web.gateway.verbs import Verb, verbs
from holdfast.web.namespaces import HEADER as NAMESPACE
from holdfast.web.schemas import Schema, Schemas

_REF: Final = "#/components/schemas/{name}"
_RESULT_REF: Final = "#/components/schemas/Result.{name}"
_INFO: Final = (
    "Holdfast's verbs for programs in any language: a JSON object in, an object with `result` out. Times are seconds since 1970, "
    "lengths are seconds. Data and results of jobs are any JSON values, stored as they are written."
)
_ERRORS: Final[Mapping[str, str]] = {
    "400": "The request is malformed; the title names the field.",
    "401": "No token, or a wrong one.",
    "403": "The token's role, queues or namespaces do not allow this.",
    "404": "No such verb, or no such job.",
    "409": "Refused: the lease is lost, or the state of a thing does not allow this.",
    "413": "The body, or the data of a job, is too large.",
    "415": "The body is not JSON.",
    "422": "Another request was sent with this Idempotency-Key.",
    "429": "A limit is met; try again after the seconds in Retry-After.",
    "503": "The store does not respond, or is full; try again after the seconds in Retry-After.",
}
_AGAIN: Final = ("429", "503")
_PROBLEM: Final[Schema] = {
    "type": "object",
    "description": "A problem document (RFC 9457). `type` is stable, `code` is that of the core, if it has one.",
    "required": ["type", "title", "status", "request"],
    "properties": {
        "type": {"type": "string", "examples": ["holdfast:lease-lost"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "request": {"type": "string"},
        "code": {"type": "string", "examples": ["HF_LEASE_LOST"]},
    },
}
_HEADERS: Final[Mapping[str, Schema]] = {
    "namespace": {
        "name": NAMESPACE,
        "in": "header",
        "description": "Another namespace than that of the application; the token, or the application, has to allow it.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[\w.-]+$"},
    },
    "key": {
        "name": KEY,
        "in": "header",
        "description": "Any text. A repeat with it within a minute returns what the first request did, and does nothing twice. Another put with it is refused.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    },
}


@cache
def description() -> Mapping[str, Any]:
    """Return the OpenAPI 3.1 document, without `servers`."""
    table = verbs().values()
    kinds = [kind for verb in table for kind in (verb.request, verb.batch) if kind is not None]
    bodies, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schemas = Schemas(_RESULT_REF)
    refused = schemas.of_type(RefusedJob)
    body_of = dict(zip(kinds, bodies, strict=True))
    paths = {f"/{verb.name}": {"post": _operation(verb, body_of, schemas, refused)} for verb in table}
    results = {f"Result.{name}": schema for name, schema in schemas.components.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "holdfast gateway", "version": VERSION, "description": _INFO},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": {**components, **results, "Problem": _PROBLEM},
            "parameters": dict(_HEADERS),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    verb: Verb, bodies: Mapping[type[msgspec.Struct], Schema], schemas: Schemas, refused: Schema
) -> Schema:
    body, result = bodies[verb.request], _result(verb, schemas)
    if verb.batch is not None:
        body = {"anyOf": [body, bodies[verb.batch]]}
        result = {"anyOf": [result, {"type": "array", "items": {"anyOf": [result, refused]}}]}
    return {
        "operationId": verb.name,
        "summary": verb.summary,
        "parameters": [
            {"$ref": f"#/components/parameters/{name}"}
            for name in _HEADERS
            if name != "key" or not verb.reads
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": _ok(result), **{status: _problem(status) for status in _ERRORS}},
    }


def _result(verb: Verb, schemas: Schemas) -> Schema:
    kind = get_type_hints(getattr(verb.kind, "read"))["return"]  # noqa: B009
    if verb.name == "heartbeat":
        return {"type": "number"}
    if verb.name == "await":
        return {"type": "array", "items": schemas.of_type(Ended)}
    if kind is Popped or verb.name == "resume":
        return {"type": "array", "items": schemas.of_type(LeasedJob)}
    if kind is Settlement:
        return schemas.of_type(Settled)
    if kind == list[JobFacts | None]:
        return {"type": "array", "items": {"type": ["object", "null"]}}
    found = schemas.of_type(kind)
    if verb.name in NAMED_RESULTS:
        names = NAMED_RESULTS[verb.name]
        parts = dict(zip(names, found["prefixItems"], strict=True))
        return {"type": "object", "required": list(names), "properties": parts}
    return found


def _ok(result: Schema) -> Schema:
    schema = {"type": "object", "required": ["result"], "properties": {"result": result}}
    return {"description": "What the verb returns.", "content": {"application/json": {"schema": schema}}}


def _problem(status: str) -> Schema:
    found: Schema = {
        "description": _ERRORS[status],
        "content": {"application/problem+json": {"schema": {"$ref": _REF.format(name="Problem")}}},
    }
    if status in _AGAIN:
        found["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return found
