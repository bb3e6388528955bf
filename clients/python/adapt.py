"""Print the OpenAPI document in a form that the Python generator can read.

Bodies of JSON lines become binary bodies. Operations that return only server-sent
events are removed, because their generated functions would never return;
callyard.events reads them.
"""

import json
import sys

LINES, EVENTS = "application/x-ndjson", "text/event-stream"


def bodies(operation):
    yield operation.get("requestBody", {}).get("content", {})
    for response in operation["responses"].values():
        yield response.get("content", {})


document = json.load(open(sys.argv[1], encoding="utf-8"))
for path, operations in list(document["paths"].items()):
    for method, operation in list(operations.items()):
        for content in bodies(operation):
            if list(content) == [EVENTS]:
                operations.pop(method, None)
            content.pop(EVENTS, None)
            if LINES in content:
                content[LINES]["schema"] = {"type": "string", "format": "binary"}
    if not operations:
        del document["paths"][path]
json.dump(document, sys.stdout)
