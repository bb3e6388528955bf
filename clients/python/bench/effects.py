"""Serve the tool record, which appends its word to the file in EFFECTS and then sleeps briefly. The file shows which calls ran, and how often."""

import asyncio
import os

from callyard import attach

tools = attach.Server("effects-python")
effects = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


@tools.tool()
async def record(word: str) -> str:
    """Records a word."""
    os.write(effects, (word + "\n").encode())
    await asyncio.sleep(0.02)
    return word


attach.run(os.environ["ATTACH_URL"], tools, key=os.environ["ATTACH_KEY"], in_flight=4)
