"""What schemathesis cannot know of Callyard: ids that exist, requests that are
answered only when somebody else acts, lines of JSON, and which faults of a server
are planned.

CALLYARD_KNOWN, in the environment, is a JSON object: for an operation ("GET /x") or a
path, the values of its path parameters.
"""

import itertools
import json
import os

import schemathesis

KNOWN = json.loads(os.environ.get("CALLYARD_KNOWN", "{}"))
turn = itertools.count()

# These say that the answer goes on until something happens that nobody makes
# happen here.
ENDLESS = ("follow", "stream", "wait")


@schemathesis.serializer("application/x-ndjson")
def as_lines(ctx, value):
    """Each item of a list is a line; what is no list is one line."""
    if isinstance(value, bytes):
        return value
    items = value if isinstance(value, list) else [value]
    return "\n".join(json.dumps(item) for item in items).encode("utf-8", "replace")


@schemathesis.hook
def before_call(ctx, case, kwargs):
    # Every other request is about something that is there.
    path = case.operation.path
    own = KNOWN.get(f"{case.operation.method.upper()} {path}", {})
    known = {name: value for name, value in {**KNOWN.get(path, {}), **own}.items() if name != "body"}
    # What an operation has for itself keeps it from what others need: always.
    if known and (own or next(turn) % 2):
        case.path_parameters = {**(case.path_parameters or {}), **known}
    if isinstance(case.query, dict):
        for name in ENDLESS:
            case.query.pop(name, None)
    if isinstance(case.body, dict):
        case.body.pop("stream", None)
        # The test calls a tool afterwards, so no tool of that server may stay disabled.
        if (case.method.upper(), path) == ("PATCH", "/tools") and isinstance(case.body.get("server", ""), str):
            case.body["server"] = "files"


@schemathesis.check
def ours(ctx, response, case):
    """A refusal is a whole problem document; only planned faults are ours."""
    status = response.status_code
    if status < 400:
        return
    if case.method.upper() == "HEAD":
        return
    kind = response.headers.get("content-type", [""])[0]
    assert kind == "application/problem+json", f"a {status} without a problem document: {kind}"
    problem = json.loads(response.content)
    assert problem["status"] == status, f"a {status} that says {problem['status']}"
    assert problem["error"] == problem["detail"] and problem["title"], "a problem without its sentences"
    assert status != 500, "a fault of ours: " + problem["detail"]
    if status in (429, 503):
        after = response.headers.get("retry-after", ["0"])[0]
        assert int(after) > 0, f"a {status} that does not say when to come back"
