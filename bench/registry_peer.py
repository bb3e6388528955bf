"""Measures ToolRegistry: 100 calls at once of a calculator, ten times, by thread and process.

Arguments: the address of an OpenAPI document and that of an MCP server.
Prints one JSON object on the last line: {mode: {kind: calls per second}}.
"""

import json
import sys
import time
import urllib.request

from toolregistry import ToolRegistry
from toolregistry.integrations.openapi import HttpClientConfig

CALLS, REPEATS = 100, 10


def add(a: float, b: float) -> float:
    return a + b


def subtract(a: float, b: float) -> float:
    return a - b


def multiply(a: float, b: float) -> float:
    return a * b


def divide(a: float, b: float) -> float:
    return a / b


class Calculator:
    @staticmethod
    def add(a: float, b: float) -> float:
        return a + b

    @staticmethod
    def subtract(a: float, b: float) -> float:
        return a - b

    @staticmethod
    def multiply(a: float, b: float) -> float:
        return a * b

    @staticmethod
    def divide(a: float, b: float) -> float:
        return a / b


def registries(document: str, mcp: str) -> dict[str, ToolRegistry]:
    native, of_class, openapi, remote = (ToolRegistry() for _ in range(4))
    for function in (add, subtract, multiply, divide):
        native.register(function)
    of_class.register_from_class(Calculator)
    with urllib.request.urlopen(document) as answer:
        spec = json.load(answer)
    openapi.register_from_openapi(HttpClientConfig(base_url=spec["servers"][0]["url"]), spec)
    remote.register_from_mcp(mcp)
    return {"native": native, "class": of_class, "openapi": openapi, "mcp": remote}


def rate(registry: ToolRegistry, mode: str) -> float:
    names = registry.list_tools()
    took = 0.0
    for repeat in range(REPEATS + 1):  # the first one is not counted
        calls = [
            {
                "id": f"call_{i}",
                "type": "function",
                "function": {"name": names[i % len(names)], "arguments": json.dumps({"a": i, "b": i + 1})},
            }
            for i in range(CALLS)
        ]
        began = time.perf_counter()
        results = registry.execute_tool_calls(calls, execution_mode=mode)
        if repeat:
            took += time.perf_counter() - began
        if len(results) != CALLS:
            raise SystemExit(f"{len(results)} of {CALLS} calls have a result")
    return CALLS * REPEATS / took


def main() -> None:
    kinds = registries(sys.argv[1], sys.argv[2])
    rates: dict[str, dict[str, float]] = {}
    for mode in ("thread", "process"):
        rates[mode] = {}
        for kind, registry in kinds.items():
            try:
                rates[mode][kind] = rate(registry, mode)
            except Exception as e:  # a mode that the kind does not support
                print(f"{kind}, {mode}: {e}", file=sys.stderr)
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
