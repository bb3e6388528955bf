"""Make the generated Python functions accept typed dictionaries as bodies.

    python dicts.py openapi.json callyard/rest

Writes bodies.py with a TypedDict for each body of the document, and widens the types of
the functions under api, which accept only the generator's own classes.
"""

import json
import keyword
import pathlib
import re
import sys

document = json.load(open(sys.argv[1], encoding="utf-8"))
rest = pathlib.Path(sys.argv[2])
schemas = document["components"]["schemas"]
made: dict[str, str] = {}


def type_of(schema: dict) -> str:
    if "$ref" in schema:
        return dictionary(schema["$ref"].rsplit("/", 1)[1])
    if "enum" in schema:
        return "Literal[" + ", ".join(map(json.dumps, schema["enum"])) + "]"
    kind = schema.get("type")
    if kind == "array":
        return f"Sequence[{type_of(schema['items'])}]"
    if kind == "object" and "properties" in schema:
        return "Mapping[str, Any]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"Mapping[str, {type_of(values) if isinstance(values, dict) else 'Any'}]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(kind, "Any")


def dictionary(name: str) -> str:
    """Generate the typed dictionary of a schema, after the ones that it references."""
    schema = schemas[name]
    if f"{name}Dict" not in made:
        made[f"{name}Dict"] = ""
        required = schema.get("required", [])
        members = sorted(schema["properties"], key=lambda member: member not in required)
        hints = {member: type_of(schema["properties"][member]) for member in members}
        hints = {member: hint if member in required else f"NotRequired[{hint}]" for member, hint in hints.items()}
        lines = [f"class {name}Dict(TypedDict):", f'    """{schema.get("description") or f"What {name} says."}"""', ""]
        for member in members:
            lines.append(f"    {member}: {hints[member]}")
            if "description" in schema["properties"][member]:
                lines.append(f'    """{schema["properties"][member]["description"]}"""')
        if any(map(keyword.iskeyword, members)):
            lines = [f'{name}Dict = TypedDict("{name}Dict", {{', *(f'    "{member}": {hints[member]},' for member in members), "})"]
        del made[f"{name}Dict"]
        made[f"{name}Dict"] = "\n".join(lines)
    return f"{name}Dict"


def widen(operation: str, hint: str) -> None:
    """Make the functions of an operation accept the dictionary too."""
    [path] = rest.glob(f"api/*/{operation.replace('-', '_')}.py")
    text = path.read_text(encoding="utf-8")
    text, arguments = re.subn(r"^(    body: )(?=\w+( \|[^=\n]+)?(?: = UNSET)?,$)", rf"\1{hint} | ", text, flags=re.M)
    text, sends = re.subn(r'(_kwargs\["json"\] = )body\.to_dict\(\)', r"\1body if isinstance(body, Mapping) else body.to_dict()", text)
    text = re.sub(r"if isinstance\(body, (?!File|Unset|Mapping)(\w+)\)", r"if isinstance(body, (\1, Mapping))", text)
    assert (arguments, sends) == (5, 1), f"{path}: the generator writes something else now: {arguments} arguments, {sends} bodies"
    names = f"from ...bodies import {hint}\n" if hint.endswith("Dict") else ""
    path.write_text(f"from collections.abc import Mapping\n{text.replace('from ... import errors', names + 'from ... import errors', 1)}", encoding="utf-8")


for operations in document["paths"].values():
    for operation in operations.values():
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            hint = type_of(content["schema"])
            if media == "application/json" and hint != "Any":
                widen(operation["operationId"], hint)
dictionary("BatchCall")

head = '"""Typed dictionaries: what the functions of callyard.rest.api take as bodies, next to the classes of models."""\n\nfrom __future__ import annotations\n\n'
imports = "from collections.abc import Mapping, Sequence\nfrom typing import Any, Literal, NotRequired, TypedDict\n\n\n"
rest.joinpath("bodies.py").write_text(head + imports + "\n\n\n".join(made.values()) + "\n", encoding="utf-8")
