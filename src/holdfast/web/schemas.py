"""JSON Schema of what the twins return: of structs as `holdfast.console.plain.plain` writes them."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from holdfast.client.explanation import Explanation
from holdfast.console.plain import name_in_json
from holdfast.models import HistoryEntry, JobFacts

Schema = dict[str, Any]

_OPEN: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    NoneType: {"type": "null"},
}
_SECONDS: Final[Schema] = {"type": ["number", "null"]}
_NOT_LISTED: Final = (HistoryEntry, Explanation, JobFacts)
"""Structs that `plain` writes in their own way."""


class Schemas:
    """The schemas of some structs, by name, as `components` of a document that refers to them by `ref_template`."""

    def __init__(self, ref_template: str) -> None:
        self.components: dict[str, Schema] = {}
        self._names: dict[Any, str] = {}
        self._ref = ref_template

    def of_result(self, load: object) -> Schema:
        """Return the schema of what a loader returns as JSON."""
        returned = get_type_hints(load)["return"]
        choices: Sequence[Any] = get_args(returned) if _is_union(returned) else (returned,)
        structs = [one for one in choices if isinstance(one, type) and issubclass(one, msgspec.Struct)]
        return self._of(structs[0], {}) if structs else {"type": "object"}

    def of_type(self, kind: Any) -> Schema:
        """Return the schema of a value of a type."""
        return self._of(kind, {})

    def _of(self, kind: Any, variables: Mapping[Any, Any]) -> Schema:
        kind = variables.get(kind, kind) if isinstance(kind, TypeVar) else kind
        if kind in _OPEN:
            return dict(_OPEN[kind])
        origin, args = get_origin(kind), get_args(kind)
        if _is_union(kind):
            return {"anyOf": [self._of(one, variables) for one in args]}
        if origin is Literal:
            return {"enum": list(args)}
        if not isinstance(origin or kind, type):
            return {}
        found: type[Any] = origin or kind
        if issubclass(found, msgspec.Struct):
            return self._of_struct(kind, found, tuple(variables.get(one, one) for one in args))
        return self._of_container(found, args, variables)

    def _of_container(self, kind: type, args: Sequence[Any], variables: Mapping[Any, Any]) -> Schema:
        if issubclass(kind, Mapping):
            values = self._of(args[1], variables) if len(args) == 2 else {}
            return {"type": "object", "additionalProperties": values}
        if issubclass(kind, tuple) and args and args[-1] is not Ellipsis:
            each = [self._of(one, variables) for one in args]
            return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
        if issubclass(kind, (list, tuple, Sequence)) and not issubclass(kind, (str, bytes)):
            return {"type": "array", "items": self._of(args[0], variables) if args else {}}
        if issubclass(kind, AbstractSet):
            return {"type": "array"}
        return {}  # bytes are the JSON that was stored

    def _of_struct(self, kind: Any, struct: type[msgspec.Struct], args: tuple[Any, ...]) -> Schema:
        if issubclass(struct, _NOT_LISTED):
            return {"type": "object"}
        key = (struct, args)
        if key not in self._names:
            name = self._names[key] = self._free_name(struct, args)
            self.components[name] = {}  # so that a struct may have itself as a part
            self.components[name].update(self._members(struct, args))
        return {"$ref": self._ref.format(name=self._names[key])}

    def _free_name(self, struct: type, args: tuple[Any, ...]) -> str:
        name = "Of".join([struct.__name__, *(getattr(one, "__name__", "Any") for one in args)])
        taken = sum(one == name or one.startswith(f"{name}.") for one in self.components)
        return f"{name}.{taken + 1}" if taken else name

    def _members(self, struct: type[msgspec.Struct], args: tuple[Any, ...]) -> Schema:
        parameters = cast("tuple[Any, ...]", getattr(struct, "__parameters__", ()))
        variables = dict(zip(parameters, args, strict=False))
        properties: dict[str, Schema] = {}
        hints = get_type_hints(struct)
        for field in struct.__struct_fields__:
            name = name_in_json(field)
            if name:
                properties[name] = dict(_SECONDS) if name != field else self._of(hints[field], variables)
        description = (struct.__doc__ or "").split("\n")[0]
        return {
            "type": "object",
            "description": description,
            "properties": properties,
            "required": list(properties),
        }


def _is_union(kind: object) -> bool:
    return get_origin(kind) in (Union, UnionType)
