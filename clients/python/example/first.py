import os

import callyard
from callyard.rest.api.calls import call_tool, confirm_call
from callyard.rest.models import BatchCall, CallToolBody, ConfirmationRequest, ConfirmRequest

with callyard.connect(os.environ["CALLYARD_URL"], os.environ.get("CALLYARD_KEY", "")) as client:
    body = CallToolBody.from_dict({"message": "hello"})
    answer = callyard.check(call_tool.sync("demo", "echo", client=client, body=body))
    if isinstance(answer, ConfirmationRequest):
        confirm_call.sync(answer.confirmation_id, client=client, body=ConfirmRequest(confirm=True))
    else:
        print(answer.content[0].text)

    call = {"server": "demo", "tool": "echo", "arguments": {"message": "hello"}}
    for result in callyard.run_batch(client, [BatchCall.from_dict(call)] * 2):
        print(result.index, result.state)
