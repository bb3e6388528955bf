"""Tests of answers of a newer front door, and of another service, without a server."""

import unittest
from collections.abc import Callable
from typing import Any

import httpx

import callyard
from callyard.rest.api.calls import create_call
from callyard.rest.api.servers import list_tools
from callyard.rest.models import Batch, CallState, ListToolsFormat, ProviderToolList, ToolList

CALL = {"id": "call_1", "server": "demo", "tool": "echo", "created": "2026-01-02T03:04:05Z"}


def connect(status: int, **body: Any) -> callyard.Client:
    transport = httpx.MockTransport(lambda request: httpx.Response(status, request=request, **body))
    return callyard.connect("http://callyard.test", httpx_args={"transport": transport})


class Newer(unittest.TestCase):
    def test_an_unknown_value_is_its_text(self) -> None:
        self.assertIs(CallState("held"), CallState.HELD)
        state = CallState("paused")
        self.assertEqual((state, str(state), state.value), ("paused", "paused", "paused"))
        self.assertNotIn(state, list(CallState))

    def test_an_unknown_state_ends_the_wait(self) -> None:
        with connect(200, json={**CALL, "state": "paused", "new": {"a": 1}}) as client, self.assertRaises(callyard.CallError) as raised:
            client.wait("call_1")
        self.assertEqual(raised.exception.state, "paused")

    def test_an_unknown_state_is_written_again(self) -> None:
        counts = dict.fromkeys(("waiting", "held", "succeeded", "failed", "denied", "expired", "canceled", "unknown", "tool_errors"), 0)
        batch = Batch.from_dict(
            {
                "id": "batch_1",
                "state": "paused",
                "created": CALL["created"],
                "expires_at": CALL["created"],
                "calls": 0,
                "refused": 0,
                "priority": 0,
                "counts": counts,
            }
        )
        self.assertEqual(batch.to_dict()["state"], "paused")


class Reasons(unittest.TestCase):
    def test_the_text_of_a_denied_call_names_the_reason(self) -> None:
        at = CALL["created"]
        decisions: list[dict[str, str]] = [{"by": "bo", "kind": "approve", "at": at, "reason": "yes"}, {"by": "ann", "kind": "deny", "at": at, "reason": "too expensive"}]
        for decided, text in ((decisions, " by ann: too expensive"), ([{**decisions[1], "reason": ""}], " by ann"), (decisions[:1], "")):
            with connect(200, json={**CALL, "state": "denied", "decisions": decided}) as client, self.assertRaises(callyard.CallError) as raised:
                client.wait("call_1")
            self.assertEqual(str(raised.exception), f"Call call_1 of demo/echo ended as denied{text}")


class Unions(unittest.TestCase):
    def test_an_answer_has_the_type_that_was_asked_for(self) -> None:
        listed = {"format": "openai", "tools": [], "count": 0, "tokens": 0, "omitted": 0, "names": [], "loosened": []}
        with connect(200, json=listed) as client:
            self.assertIsInstance(list_tools.sync(client=client, format_=ListToolsFormat.OPENAI), ProviderToolList)
        with connect(200, json={"tools": []}) as client:
            self.assertIsInstance(list_tools.sync(client=client), ToolList)
        with connect(202, json={**CALL, "state": "queued", "outcome": "accepted"}) as client:
            self.assertIsInstance(create_call.sync(client=client, body={"server": "demo", "tool": "echo"}), callyard.AcceptedCall)


class Other(unittest.TestCase):
    def test_an_answer_that_is_not_of_a_front_door_is_an_error(self) -> None:
        cases: tuple[tuple[int, dict[str, Any]], ...] = (
            (200, {"json": {}}),
            (200, {"json": []}),
            (200, {"json": {"outcome": "later", "id": "call_1"}}),
            (200, {"text": "hello"}),
            (204, {}),
        )
        for status, body in cases:
            with self.subTest(body), connect(status, **body) as client:
                calls: list[Callable[[], object]] = [lambda: client.call("demo", "echo"), lambda: client.wait("call_1")]
                for do in calls:
                    with self.assertRaises(callyard.CallyardError) as raised:
                        do()
                    self.assertTrue(str(raised.exception).endswith(f"the answer with status {status} is unknown to this client."))


if __name__ == "__main__":
    unittest.main()
