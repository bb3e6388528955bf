"""The Python client of Callyard's REST API.

`callyard.rest` is generated from the OpenAPI document: a module for each
operation under `callyard.rest.api`, with `sync`, `sync_detailed`, `asyncio` and
`asyncio_detailed`, and a class for each shape under `callyard.rest.models`.

The other modules are written by hand and stay small. They hold what a generator
does not make: `connect` adds the key, `check` turns a refusal into an exception,
and `callyard.streams` reads answers that have no end.
"""

from .connect import ProblemError, check, connect
from .streams import Event, batch_results, events, run_batch

__all__ = ["Event", "ProblemError", "batch_results", "check", "connect", "events", "run_batch"]
