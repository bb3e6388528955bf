"""The back ends of BFCL's categories with several turns (PyPI: bfcl-eval), as an MCP server over stdio.

Its tools are the functions of the official classes, which official code executes, and two more.
reset makes new objects of the classes with the state that a sample begins with. state returns a
digest of the state of each class: the digests are equal where the official checker finds the
objects equal. There is one state, so calls must come one after the other.

It needs bfcl-eval and mpmath, and no other package of theirs.
"""

import copy
import hashlib
import importlib
import json
import keyword
import os
import re
import sys

import bfcl_eval
from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING, MULTI_TURN_FUNC_DOC_FILE_MAPPING
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.gorilla_file_system import Directory, File

CLASSES = ["GorillaFileSystem", "MathAPI", "MessageAPI", "TwitterAPI", "TicketAPI", "TradingBot", "TravelAPI", "VehicleControlAPI"]
NAME = "callyard"


class Backends:
    """The objects of one sample at a time."""

    def __init__(self) -> None:
        self.sample: dict = {"id": "none", "initial_config": {}, "involved_classes": [], "long_context": False}

    def run(self, calls: list[str]) -> tuple[list[str], dict]:
        """Run calls written in Python by the official code, which also makes the objects."""
        return multi_turn_utils.execute_multi_turn_func_call(
            calls, self.sample["initial_config"], self.sample["involved_classes"], NAME, self.sample["id"], self.sample["long_context"]
        )

    def reset(self, sample: dict) -> str:
        """Begin a sample."""
        for name in self.sample["involved_classes"]:  # the official code keeps objects by these names
            vars(multi_turn_utils).pop(re.sub(r"[-./:]", "_", f"{NAME}_{self.sample['id']}_{name}_instance"), None)
        self.sample = {"long_context": False, **copy.deepcopy(sample)}
        self.run([])
        return "done"

    def state(self) -> str:
        """A digest of the public attributes of each object."""
        digests = {}
        for name, instance in self.run([])[1].items():
            attributes = {key: value for key, value in vars(instance).items() if not key.startswith("_")}
            digests[name] = hashlib.sha256(json.dumps(comparable(attributes)).encode()).hexdigest()
        return json.dumps(digests, sort_keys=True)


def comparable(value: object) -> object:
    """A value whose JSON is the same text exactly where Python finds two values equal."""
    if isinstance(value, (bool, float)) and value == value and abs(value) != float("inf") and value == int(value):
        return int(value)  # True == 1 == 1.0
    if value is None or isinstance(value, (int, float, str)):
        return value
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [comparable(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((comparable(item) for item in value), key=json.dumps)}
    if isinstance(value, dict):  # its keys may be numbers, and their order does not count
        return {"dict": sorted(([comparable(key), comparable(item)] for key, item in value.items()), key=json.dumps)}
    if isinstance(value, File):
        return {"file": [value.name, value.content]}
    if isinstance(value, Directory):
        return {"directory": [value.name, comparable(value.contents)]}
    raise TypeError(f"a state has a value of the type {type(value).__name__}")


def definitions() -> list[dict]:
    """The tools. Arguments have no types: the classes take what Python takes, as in the official code."""
    folder = os.path.join(list(bfcl_eval.__path__)[0], "data", "multi_turn_func_doc")
    tools = [
        {"name": "reset", "description": "Begin a sample with the state in the arguments.", "inputSchema": {"type": "object"}},
        {"name": "state", "description": "Return digests of the state.", "inputSchema": {"type": "object"}},
    ]
    for name in CLASSES:
        importlib.import_module(CLASS_FILE_PATH_MAPPING[name])  # now, not at the first call
        with open(os.path.join(folder, MULTI_TURN_FUNC_DOC_FILE_MAPPING[name]), encoding="utf-8") as file:
            for line in file:
                doc = json.loads(line)
                properties = {key: {"description": p.get("description", "")} for key, p in doc["parameters"]["properties"].items()}
                tools.append({"name": doc["name"], "description": doc["description"], "inputSchema": {"type": "object", "properties": properties}})
    return tools


def call(backends: Backends, name: str, arguments: dict) -> dict:
    """The result of a tool."""
    if name == "reset":
        text = backends.reset(arguments)
    elif name == "state":
        text = backends.state()
    elif not all(key.isidentifier() and not keyword.iskeyword(key) for key in arguments):
        text = "Error during execution: an argument has a name that Python does not take"  # it would be run as code
    else:
        text = backends.run([f"{name}({','.join(f'{key}={value!r}' for key, value in arguments.items())})"])[0][0]
    return {"content": [{"type": "text", "text": text}], "isError": text.startswith("Error during execution: ")}


def answer(backends: Backends, tools: list[dict], method: str, params: dict) -> dict:
    """The result of a request of MCP."""
    if method == "initialize":
        return {"protocolVersion": params.get("protocolVersion", "2025-06-18"), "capabilities": {"tools": {}}, "serverInfo": {"name": "bfcl", "version": "1"}}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": tools}
    if method == "tools/call":
        if params["name"] not in {tool["name"] for tool in tools}:
            raise LookupError(f"there is no tool {params['name']}")
        return call(backends, params["name"], params.get("arguments") or {})
    raise NotImplementedError(f"{method} is not supported")


def main() -> None:
    """Answer requests until standard input ends."""
    out, sys.stdout = sys.stdout, sys.stderr  # some classes print
    backends, tools = Backends(), definitions()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = answer(backends, tools, request["method"], request.get("params") or {})
        except NotImplementedError as fault:
            reply["error"] = {"code": -32601, "message": str(fault)}
        except Exception as fault:
            reply["error"] = {"code": -32602 if isinstance(fault, LookupError) else -32603, "message": f"{type(fault).__name__}: {fault}"}
        print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main()
