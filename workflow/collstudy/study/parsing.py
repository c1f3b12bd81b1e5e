"""Parse a YAML text and validate it against its schema; `document.py` calls this only for texts that are not cached."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import jsonschema
import yaml
from yaml import MappingNode, MarkedYAMLError, Node, ScalarNode, SequenceNode, YAMLError

from collstudy.base.errors import StudyError, allowed, nearest
from collstudy.base.paths import SCHEMAS

#: Keys of earlier versions by schema, and what the user should do about them.
FORMER_KEYS = {
    "study": {
        "with": "the key is now called `companions`; rename it",
        "seed": "the key had no effect and was removed; delete the line",
    }
}

#: Types of JSON Schema in the words of YAML.
TYPES = {
    "object": "a mapping (key: value)", "array": "a list", "string": "a string", "integer": "an integer",
    "number": "a number", "boolean": "true or false", "null": "empty",
}  # fmt: skip

TAG = "tag:yaml.org,2002:"
MERGE = f"{TAG}merge"
#: Maximum number of values in a file: nested aliases can expand to any number.
MOST_VALUES = 200_000
#: Maximum nesting depth of lists and mappings.
DEEPEST = 50


class _Loader(yaml.CSafeLoader):
    """Interpret plain scalars as in YAML 1.2 (10.3.2, core schema): `yes`, `010` and `2026-11-21` are a string, ten and a string.

    Uses libyaml, which needs a tenth of the time of a parser in Python; every job reads these files.
    """

    yaml_implicit_resolvers: dict[str, list] = {}

    def construct_integer(self, node: ScalarNode) -> int:
        """Convert 0o17, 0x1f, or decimal digits to an integer."""
        return int(node.value, 0 if node.value[:2] in ("0o", "0x") else 10)

    def construct_number(self, node: ScalarNode) -> float:
        """Convert a float with Python's rules."""
        return float(node.value)


for _name, _pattern in {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "merge": r"<<",
}.items():
    _Loader.add_implicit_resolver(TAG + _name, re.compile(f"^(?:{_pattern})$"), None)
_Loader.add_constructor(f"{TAG}int", _Loader.construct_integer)
_Loader.add_constructor(f"{TAG}float", _Loader.construct_number)


class _Refused(Exception):
    """A rejected YAML node: the problem and its line."""

    def __init__(self, node: Node, problem: str):
        super().__init__(problem)
        self.line = node.start_mark.line + 1


def _check_scalar(node: ScalarNode) -> None:
    """Reject non-finite numbers and everything that is not a string, number, boolean or null."""
    kind = node.tag.rpartition(":")[2] if node.tag else "str"
    if kind not in ("str", "int", "float", "bool", "null"):
        raise _Refused(node, f"{node.value!r} has the tag {node.tag}; allowed: strings, numbers, true, false, null")
    if kind == "float" and not math.isfinite(float(node.value.replace(".inf", "inf").replace(".nan", "nan"))):
        raise _Refused(node, f"{node.value} is not a finite number of YAML 1.2; put strings in quotes")


def _check(node: Node, path: tuple, lines: dict[tuple, int], inside: tuple[int, ...]) -> None:
    """Check a composed node recursively, and record the line of each key path in *lines*."""
    lines.setdefault(path, node.start_mark.line + 1)
    if len(lines) > MOST_VALUES or len(inside) > DEEPEST or id(node) in inside:
        raise _Refused(node, f"more than {MOST_VALUES} values, {DEEPEST} levels, or an alias that contains itself")
    inside = (*inside, id(node))
    if isinstance(node, ScalarNode):
        _check_scalar(node)
    elif isinstance(node, SequenceNode):
        for index, value in enumerate(node.value):
            _check(value, (*path, index), lines, inside)
    elif isinstance(node, MappingNode):
        first: dict[str, int] = {}
        merged = []
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or key.tag.rpartition(":")[2] not in ("str", "merge"):
                raise _Refused(key, f"the key {getattr(key, 'value', '')!r} is not a string; put it in quotes")
            if key.value in first:
                where = ".".join(map(str, (*path, key.value)))
                raise _Refused(key, f"duplicate key {where}; the first one is in line {first[key.value]}")
            first[key.value] = key.start_mark.line + 1
            if key.tag == MERGE:
                merged.append(value)
                continue
            lines[(*path, key.value)] = key.start_mark.line + 1
            _check(value, (*path, key.value), lines, inside)
        # Merged keys get the line of the merge key; the mapping's own keys take precedence.
        for value in merged:
            for part in value.value if isinstance(value, SequenceNode) else (value,):
                below: dict[tuple, int] = {}
                _check(part, path, below, inside)
                lines |= {keys: line for keys, line in below.items() if keys not in lines}


def _load(text: str) -> tuple[Any, dict[tuple, int]]:
    """Return the document of a YAML text, and the line of each key path."""
    if re.search(r"^%", text, re.MULTILINE):
        raise StudyError(": directives (%YAML, %TAG) are not allowed; the YAML version is 1.2")
    loader = _Loader(text)
    node = loader.get_single_node()
    if node is None:
        return None, {}
    lines: dict[tuple, int] = {}
    _check(node, (), lines, ())
    return loader.construct_document(node), lines


def _explain(error: jsonschema.ValidationError) -> str:
    """Describe a schema violation in one sentence: what is wrong and what is allowed."""
    where = ".".join(str(part) for part in error.absolute_path) or "the file"
    if "propertyNames" in error.relative_schema_path or error.validator == "propertyNames":
        return (
            f"unknown key {error.instance!r} in {where}{nearest(error.instance, _keys(error))}{_allowed_values(error)}"
        )
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        wrong = [key for key in error.instance if key not in known]
        near = "".join(nearest(key, known) for key in wrong)
        return f"unknown key {', '.join(map(repr, wrong))} in {where}{near}{allowed(known)}"
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{where} lacks the key {', '.join(map(repr, missing))}"
    if error.validator in ("enum", "pattern"):
        return f"{where} is {_short(error.instance)}{_allowed_values(error)}"
    if error.validator in ("minItems", "minLength"):
        return f"{where} is empty; at least one entry is needed"
    if error.validator in ("minimum", "exclusiveMinimum", "maximum"):
        words = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}[error.validator]
        return f"{where} is {_short(error.instance)}; it must be {words} {error.validator_value}"
    if error.validator == "dependentRequired":
        return f"{where}: {error.message}"
    if error.validator in ("oneOf", "anyOf") and error.context:
        options = " or ".join(
            sorted({_violation(e) for e in error.context if len(e.absolute_path) >= len(error.absolute_path)})
        )
        return f"{where} is {_short(error.instance)}, which is not allowed: {options}"
    if error.validator == "type" and error.instance is None and not error.absolute_path:
        return "the file is empty"
    return f"{where}: {_violation(error)}"


def _violation(error: jsonschema.ValidationError) -> str:
    """Return the validator's sentence, with the words of YAML instead of those of JSON Schema."""
    if error.validator == "type":
        kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
        return f"{_short(error.instance)} is not {' or '.join(TYPES.get(kind, kind) for kind in kinds)}"
    if error.validator == "const":
        return f"{_short(error.instance)} is not {_short(error.validator_value)}"
    if error.validator == "uniqueItems":
        return f"{_short(error.instance)} has an entry twice"
    return _short_text(error.message)


def _keys(error: jsonschema.ValidationError) -> list[str]:
    """Return the keys that a mapping may have, if its schema lists them."""
    return list(error.validator_value) if error.validator == "enum" else []


def _allowed_values(error: jsonschema.ValidationError) -> str:
    """Return the allowed values of a string, from the schema's description if there is one."""
    if error.validator == "enum":
        return allowed(error.validator_value)
    return "; allowed: " + str(error.schema.get("description", f"what matches {error.validator_value}"))


def _short_text(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:150]} ... {text[-30:]}"


def _short(value: Any) -> str:
    return _short_text(_as_yaml(value))


def _as_yaml(value: Any) -> str:
    """Return a value as it may be written in YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_as_yaml(of)}" for key, of in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_yaml, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


def parse(text: str, schema: str, name: str) -> tuple[dict[str, Any], dict[tuple, int]]:
    """Parse *text* and validate it; return the document and the line of each key path.

    Raises StudyError that names the file (*name*), line, key and the allowed values.
    """
    try:
        document, lines = _load(text)
    except _Refused as error:
        raise StudyError(f"{name}, line {error.line}: {error}") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark
        at = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise StudyError(f"{name}{at}: not valid YAML: {error.problem}") from None
    except (YAMLError, ValueError) as error:
        reason = " ".join(str(getattr(error, "reason", error)).split())
        raise StudyError(f"{name}: not valid YAML: {reason}") from None
    except RecursionError:
        raise StudyError(f"{name}: more than {DEEPEST} levels of lists and mappings") from None
    except StudyError as error:
        raise StudyError(f"{name}{error}") from None
    error = jsonschema.exceptions.best_match(_validator(schema).iter_errors(document), key=_relevance)
    if error is not None:
        at = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            known = error.schema.get("properties", {})
            at += (next(key for key in error.instance if key not in known),)
        elif "propertyNames" in error.relative_schema_path:
            at += (error.instance,)
        line = next((lines[at[:end]] for end in range(len(at), -1, -1) if at[:end] in lines), 1)
        former = FORMER_KEYS.get(schema, {}).get(at[0]) if len(at) == 1 else None
        raise StudyError(f"{name}, line {line}: " + (f"{at[0]}: {former}" if former else _explain(error)))
    return document, lines


def _relevance(error: jsonschema.ValidationError) -> tuple:
    """Return the key by which the error to report is selected: the largest, and of a value with alternatives the smallest."""
    other = error.parent is not None and error.validator in ("type", "const", "enum") and not error.relative_path
    # A misspelt key is both an unknown and a missing one: the first says more.
    depth, _, *rest = jsonschema.exceptions.by_relevance(strong=frozenset(("additionalProperties", "propertyNames")))(
        error
    )
    # Not by its path: the last of the entries of a list that have the same mistake would be reported.
    return other, depth, *rest


def _is_integer(_: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@functools.cache
def _validator(schema: str) -> jsonschema.Validator:
    """Return the validator of a schema; 2.0 does not count as an integer."""
    document = yaml.load((SCHEMAS / f"{schema}.schema.yaml").read_text(encoding="utf-8"), _Loader)
    checker = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=checker)(document)
