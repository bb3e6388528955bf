"""These tests run against a front door with the demo server, whose policy holds
the tool add; e2e/clients_test.go starts one and sets CALLYARD_URL."""

import asyncio
import os
import unittest

import callyard
from callyard.rest.api.batches import create_batch
from callyard.rest.api.calls import call_tool, confirm_call, create_call, get_call
from callyard.rest.models import (
    BatchCall,
    BatchCallArguments,
    BatchRequest,
    CallRequest,
    CallState,
    CallToolBody,
    CallToolResult,
    ConfirmationRequest,
    ConfirmRequest,
    Fleet,
    Problem,
)


def echo(custom_id: str, message: str) -> BatchCall:
    return BatchCall(custom_id=custom_id, server="demo", tool="echo", arguments=BatchCallArguments.from_dict({"message": message}))


class Live(unittest.TestCase):
    def setUp(self) -> None:
        url = os.environ.get("CALLYARD_URL")
        if not url:
            self.fail("CALLYARD_URL is not set: go test ./e2e -run TheClients starts a front door and these tests")
        self.client = self.enterContext(callyard.connect(url, os.environ.get("CALLYARD_KEY", "")))

    def call(self, tool: str, **arguments: object) -> object:
        return call_tool.sync("demo", tool, client=self.client, body=CallToolBody.from_dict(arguments))

    def test_a_call_has_a_typed_result(self) -> None:
        result = callyard.check(self.call("echo", message="hello"))
        self.assertIsInstance(result, CallToolResult)
        self.assertEqual(result.content[0].text, "Echo: hello")
        body = CallRequest.from_dict({"server": "demo", "tool": "echo", "arguments": {"message": "again"}})
        again = asyncio.run(create_call.asyncio(client=self.client, body=body))
        self.assertEqual(callyard.check(again).content[0].text, "Echo: again")

    def test_arguments_that_do_not_fit_are_a_problem_with_pointers(self) -> None:
        problem = self.call("echo", message=5)
        self.assertIsInstance(problem, Problem)
        self.assertEqual((problem.status, problem.type_, problem.retryable), (422, "/problems/invalid-arguments", False))
        self.assertEqual([fault.pointer for fault in problem.errors], ["/message"])
        with self.assertRaises(callyard.ProblemError) as raised:
            callyard.check(problem)
        self.assertEqual(str(raised.exception), problem.detail)

    def test_a_held_call_runs_once_it_is_confirmed(self) -> None:
        held = self.call("add", a=2, b=3)
        self.assertIsInstance(held, ConfirmationRequest)
        self.assertEqual(held.tool_name, "add")
        self.assertEqual(callyard.check(get_call.sync(held.call_id, client=self.client)).state, CallState.HELD)
        yes = ConfirmRequest(confirm=True)
        result = callyard.check(confirm_call.sync(held.confirmation_id, client=self.client, body=yes))
        self.assertEqual(result.content[0].text, "5")
        again = confirm_call.sync(held.confirmation_id, client=self.client, body=yes)
        self.assertEqual(again.status, 404)
        self.assertEqual(callyard.check(get_call.sync(held.call_id, client=self.client)).state, CallState.SUCCEEDED)

    def test_a_batch_answers_with_its_results_while_they_come(self) -> None:
        calls = (echo(f"line-{n}", f"hello {n}") for n in range(40))
        said = {}
        for result in callyard.run_batch(self.client, calls):
            self.assertEqual(result.state, CallState.SUCCEEDED)
            said[result.custom_id] = result.result.content[0].text
        self.assertEqual(len(said), 40)
        self.assertEqual(said["line-7"], "Echo: hello 7")

    def test_results_go_on_from_a_cursor(self) -> None:
        batch = callyard.check(create_batch.sync(client=self.client, body=BatchRequest(calls=[echo("a", "a"), echo("b", "b")])))
        cursors = [result.cursor for result in callyard.batch_results(self.client, batch.id)]
        self.assertEqual(len(cursors), 2)
        rest = [result.cursor for result in callyard.batch_results(self.client, batch.id, cursor=cursors[0])]
        self.assertEqual(rest, cursors[1:])

    def test_events_say_how_the_fleet_is(self) -> None:
        stream = callyard.events(self.client)
        event = next(stream)
        stream.close()
        self.assertEqual(event.name, "fleet")
        self.assertEqual([server.id for server in Fleet.from_dict(event.json()).servers], ["demo"])

    def test_a_stream_that_is_refused_raises_its_problem(self) -> None:
        with self.assertRaises(callyard.ProblemError) as raised:
            next(callyard.batch_results(self.client, "batch_none"))
        self.assertEqual(raised.exception.problem.status, 404)


if __name__ == "__main__":
    unittest.main()
