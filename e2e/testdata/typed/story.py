"""Calls tools through a client that was generated from the document of a set: each tool of the
file that is its first argument."""

import importlib
import json
import os
import pkgutil
import sys
import typing

import tools.api.calls
from tools import Client
from tools.api.calls import everything_get_structured_content
from tools.models import EverythingGetStructuredContentInput, EverythingGetStructuredContentInputLocation, EverythingGetStructuredContentResult
from tools.types import Unset

client = Client(base_url=os.environ["CALLYARD_URL"])

# What a program writes by hand: arguments and results have types.
at = EverythingGetStructuredContentInput(location=EverythingGetStructuredContentInputLocation.NEW_YORK)
weather = everything_get_structured_content.sync(client=client, body=at)
assert isinstance(weather, EverythingGetStructuredContentResult)
assert not isinstance(weather.structured_content, Unset)
temperature: float = weather.structured_content.temperature
print(temperature, weather.structured_content.conditions)


def plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


functions = {plain(m.name): m.name for m in pkgutil.iter_modules(tools.api.calls.__path__)}
with open(sys.argv[1], encoding="utf-8") as file:
    todo = json.load(file)
for call in todo:
    function = importlib.import_module("tools.api.calls." + functions[plain(call["operation"])]).sync_detailed
    body = typing.get_type_hints(function)["body"]
    (model,) = (t for t in typing.get_args(body) or [body] if hasattr(t, "from_dict"))
    r = function(client=client, body=model.from_dict(call["arguments"]))
    assert r.parsed is not None, call
    print(json.dumps({"status": int(r.status_code), "answer": r.parsed.to_dict()}))
