"""Do a call's arguments fit the schema it was offered with, as they stand?

Only what the Bridge hands to the model can be checked: types, required and allowed properties, enumerations. Nothing is
coerced: 42 is no ``"42"``. A schema that cannot be understood is satisfied.
"""

from __future__ import annotations

from typing import Any, Final

from etl.shape import as_dict, as_list

_DEPTH: Final = 16
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int, float),
}


def violation(value: Any, schema: Any, where: str = "arguments", depth: int = 0) -> str | None:
    """Why a value does not fit, None when it does."""
    rules = as_dict(schema)
    if depth > _DEPTH:
        return None
    if "type" in rules and not _is_of_type(value, rules["type"]):
        return f"{where} is not of type {rules['type']}"
    if isinstance(rules.get("enum"), list) and value not in rules["enum"]:
        return f"{where} is none of the listed values"
    if isinstance(value, dict):
        return _object(value, rules, where, depth)
    if isinstance(value, list):
        found = (violation(item, rules.get("items"), f"{where}/{n}", depth + 1) for n, item in enumerate(value))
        return next((why for why in found if why is not None), None)
    return None


def _object(value: dict[str, Any], rules: dict[str, Any], where: str, depth: int) -> str | None:
    properties = as_dict(rules.get("properties"))
    missing = next((key for key in as_list(rules.get("required")) if isinstance(key, str) and key not in value), None)
    if missing is not None:
        return f"{where}/{missing} is missing"
    if rules.get("additionalProperties") is False and set(value) - set(properties):
        return f"{where} has a property that was not offered"
    found = (
        violation(value[key], rule, f"{where}/{key}", depth + 1) for key, rule in properties.items() if key in value
    )
    return next((why for why in found if why is not None), None)


def _is_of_type(value: Any, kinds: Any) -> bool:
    named = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]
    known = [kind for kind in named if kind in _TYPES]
    return not known or len(known) < len(named) or any(_is(value, kind) for kind in known)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind in ("number", "integer"):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])
