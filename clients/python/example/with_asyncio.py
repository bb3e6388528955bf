import asyncio
import os

import callyard


async def main() -> None:
    async with callyard.connect(os.environ["CALLYARD_URL"], os.environ.get("CALLYARD_KEY", "")) as client:
        print(callyard.text(await client.call_async("demo", "echo", {"message": "hello"})))
        async for line in callyard.run_batch_async(client, [{"server": "demo", "tool": "echo", "arguments": {"message": "hello"}}] * 2):
            print(line.index, line.state)


asyncio.run(main())
