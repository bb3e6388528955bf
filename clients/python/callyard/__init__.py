"""The Python client of Callyard's REST API.

`connect` returns a client. Its `call` calls a tool, and its `wait` waits for a stored
or held call.

`callyard.rest` is generated from the OpenAPI document. `callyard.rest.api` has a module
for each operation, with `sync`, `sync_detailed`, `asyncio` and `asyncio_detailed`.
`callyard.rest.models` has a class for each schema, and `callyard.rest.bodies` a typed
dictionary for each body.

The other modules are handwritten and small. They add what the generator does not
provide: `check` turns an error response into an exception, `callyard.retries` retries
requests when that is safe, and `callyard.streams` reads streamed responses.
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
