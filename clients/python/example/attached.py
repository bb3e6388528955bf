"""Serves the tool quote as the server prices, by attaching to a worker."""

import os

from callyard import attach

tools = attach.Server("prices")


@tools.tool(read_only=True)
async def quote(sku: str, quantity: int = 1) -> dict[str, float]:
    """What that number of an article costs.

    Args:
        sku: article number
    """
    return {"total": 2.5 * quantity}


attach.run(os.environ.get("ATTACH_URL", "ws://127.0.0.1:9191"), tools, key=os.environ["ATTACH_KEY"], in_flight=16)
