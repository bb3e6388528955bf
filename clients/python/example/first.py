import os

import callyard
from callyard.rest.api.calls import create_call

with callyard.connect(os.environ["CALLYARD_URL"], os.environ.get("CALLYARD_KEY", "")) as client:
    try:
        result = client.call("demo", "echo", {"message": "hello"})
        print(callyard.text(result))
    except callyard.HeldError as held:
        print(held, held.approval_url)
        result = client.wait(held.call_id)  # blocks until an approver decides

    stored = callyard.check(create_call.sync(client=client, body={"server": "demo", "tool": "echo", "arguments": {"message": "stored"}}, prefer="respond-async"))
    if isinstance(stored, callyard.AcceptedCall):
        print(callyard.text(client.wait(stored.id, timeout=60)))

    for line in callyard.run_batch(client, [{"server": "demo", "tool": "echo", "arguments": {"message": "hello"}}] * 2):
        print(line.index, line.state)
