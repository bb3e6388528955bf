"""The Python client of Callyard's REST API.

`connect` makes a client, whose `call` calls a tool and whose `wait` waits for a stored
or held call.

`callyard.rest` is generated from the OpenAPI document: a module for each
operation under `callyard.rest.api`, with `sync`, `sync_detailed`, `asyncio` and
`asyncio_detailed`, a class for each shape under `callyard.rest.models`, and a typed
dictionary for each body in `callyard.rest.bodies`.

The other modules are written by hand and stay small. They hold what a generator
does not make: `check` turns a refusal into an exception, `callyard.retries` sends
again what is safe to send again, and `callyard.streams` reads answers that have no end.
"""

from .check import check
from .client import Client, connect, text
from .errors import CallError, CallyardError, HeldError, ProblemError
from .rest.models import AcceptedCall
from .streams import Event, batch_results, batch_results_async, events, events_async, run_batch, run_batch_async

__all__ = [
    "AcceptedCall",
    "CallError",
    "CallyardError",
    "Client",
    "Event",
    "HeldError",
    "ProblemError",
    "batch_results",
    "batch_results_async",
    "check",
    "connect",
    "events",
    "events_async",
    "run_batch",
    "run_batch_async",
    "text",
]
