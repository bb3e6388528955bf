"""These tests run against a front door with the demo server and a policy that holds the
tool add. e2e/clients_test.go starts it and sets CALLYARD_URL. The front door at
CALLYARD_LIMITED_URL allows one call per second."""

import asyncio
import os
import threading
import unittest
from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from typing import Any

import callyard
from callyard.rest.api.batches import create_batch
from callyard.rest.api.calls import call_tool, confirm_call, create_call, get_call
from callyard.rest.bodies import BatchCallDict
from callyard.rest.models import Batch, BatchCall, BatchCallArguments, CallState, CallToolBody, CallToolResult, ConfirmationRequest, ConfirmRequest, Fleet, Problem


def connect(variable: str = "CALLYARD_URL", **options: Any) -> callyard.Client:
    url = os.environ.get(variable)
    if not url:
        raise AssertionError(f"{variable} is not set: go -C e2e test . -run TheClients starts a front door and these tests")
    return callyard.connect(url, os.environ.get("CALLYARD_KEY", ""), **options)


def echo(custom_id: str, message: str) -> BatchCallDict:
    return {"custom_id": custom_id, "server": "demo", "tool": "echo", "arguments": {"message": message}}


class Live(unittest.TestCase):
    def setUp(self) -> None:
        self.client = self.enterContext(connect())

    def confirm(self, held: callyard.HeldError, yes: bool) -> None:
        assert held.confirmation_id is not None
        callyard.check(confirm_call.sync(held.confirmation_id, client=self.client, body={"confirm": yes}))

    def test_a_call_is_one_line(self) -> None:
        result = self.client.call("demo", "echo", {"message": "hello"})
        self.assertEqual((callyard.text(result), result.is_error or False), ("Echo: hello", False))
        self.assertEqual(callyard.text(self.client.call("demo", "echo", {"message": "k"}, timeout_ms=5000, idempotency_key=os.urandom(8).hex())), "Echo: k")
        with self.assertRaises(callyard.ProblemError) as raised:
            self.client.call("demo", "echo", {"message": 5})
        self.assertEqual((raised.exception.status, raised.exception.retry_after), (422, None))

    def test_a_held_call_is_no_result_and_can_be_waited_for(self) -> None:
        with self.assertRaises(callyard.HeldError) as raised:
            self.client.call("demo", "add", {"a": 2, "b": 3})
        held = raised.exception
        self.assertIn("demo/add is held and has not run", str(held))
        self.assertNotRegex(str(held), r"\.[.;]")
        with self.assertRaises(TimeoutError):
            self.client.wait(held.call_id, timeout=0.2)
        yes = threading.Thread(target=self.confirm, args=(held, True))
        yes.start()
        self.assertEqual(callyard.text(self.client.wait(held.call_id, timeout=30)), "5")
        yes.join()

    def test_a_call_that_was_denied_ends_with_an_error(self) -> None:
        with self.assertRaises(callyard.HeldError) as raised:
            self.client.call("demo", "add", {"a": 2, "b": 3})
        self.confirm(raised.exception, False)
        with self.assertRaises(callyard.CallError) as ended:
            self.client.wait(raised.exception.call_id)
        self.assertIn(ended.exception.state, (CallState.DENIED, CallState.CANCELED))
        self.assertIn(raised.exception.call_id, str(ended.exception))

    def test_a_stored_call_is_waited_for(self) -> None:
        stored = callyard.check(create_call.sync(client=self.client, body={"server": "demo", "tool": "echo", "arguments": {"message": "s"}}, prefer="respond-async"))
        assert isinstance(stored, callyard.AcceptedCall)
        self.assertEqual(callyard.text(self.client.wait(stored.id)), "Echo: s")

    def test_asyncio_does_the_same(self) -> None:
        async def calls() -> AsyncIterator[BatchCallDict]:
            for n in range(20):
                yield echo(f"line-{n}", f"hello {n}")

        async def run() -> None:
            async with connect() as client:
                self.assertEqual(callyard.text(await client.call_async("demo", "echo", {"message": "a"})), "Echo: a")
                with self.assertRaises(callyard.HeldError) as raised:
                    await client.call_async("demo", "add", {"a": 1, "b": 1})
                held = raised.exception
                assert held.confirmation_id is not None
                waiting = asyncio.create_task(client.wait_async(held.call_id, timeout=30))
                callyard.check(await confirm_call.asyncio(held.confirmation_id, client=client, body={"confirm": True}))
                self.assertEqual(callyard.text(await waiting), "2")
                ids: list[str] = []
                said = {line.custom_id: callyard.text(line.result) async for line in callyard.run_batch_async(client, calls(), started=ids.append)}
                self.assertEqual((len(said), said["line-7"]), (20, "Echo: hello 7"))
                self.assertEqual(len([line async for line in callyard.batch_results_async(client, ids[0])]), 20)
                batch = callyard.check(await create_batch.asyncio(client=client, body={"calls": [echo("a", "a"), echo("b", "b")]}))
                assert isinstance(batch, Batch)
                self.assertEqual(len([line async for line in callyard.batch_results_async(client, batch.id)]), 2)
                async with aclosing(callyard.events_async(client)) as stream:
                    self.assertEqual((await anext(stream)).name, "fleet")
                with self.assertRaises(callyard.ProblemError):
                    await anext(callyard.batch_results_async(client, "batch_none"))

        asyncio.run(run())

    def test_a_call_over_the_limit_is_sent_again_when_it_fits(self) -> None:
        with connect("CALLYARD_LIMITED_URL") as client:
            for n in range(3):
                self.assertEqual(callyard.text(client.call("demo", "echo", {"message": str(n)})), f"Echo: {n}")
        with connect("CALLYARD_LIMITED_URL", retries=0) as client, self.assertRaises(callyard.ProblemError) as raised:
            for n in range(20):
                client.call("demo", "echo", {"message": str(n)})
        self.assertEqual((raised.exception.status, raised.exception.retry_after), (503, 1.0))

    def test_arguments_that_do_not_fit_are_a_problem_with_pointers(self) -> None:
        problem = call_tool.sync("demo", "echo", client=self.client, body={"message": 5})
        assert isinstance(problem, Problem) and problem.errors
        self.assertEqual((problem.status, problem.type_, problem.retryable), (422, "/problems/invalid-arguments", False))
        self.assertEqual([fault.pointer for fault in problem.errors], ["/message"])
        with self.assertRaises(callyard.ProblemError) as raised:
            callyard.check(problem)
        self.assertEqual(str(raised.exception), f"{problem.detail} [/message: expected a string]")

    def test_the_generated_functions_take_the_generated_classes(self) -> None:
        held = call_tool.sync("demo", "add", client=self.client, body=CallToolBody.from_dict({"a": 2, "b": 3}))
        assert isinstance(held, ConfirmationRequest) and isinstance(held.confirmation_id, str)
        self.assertEqual(held.tool_name, "add")
        self.assertEqual(callyard.check(get_call.sync(held.call_id, client=self.client)).state, CallState.HELD)
        yes = ConfirmRequest(confirm=True)
        result = callyard.check(confirm_call.sync(held.confirmation_id, client=self.client, body=yes))
        assert isinstance(result, CallToolResult)
        self.assertEqual(callyard.text(result), "5")
        again = confirm_call.sync(held.confirmation_id, client=self.client, body=yes)
        assert isinstance(again, Problem)
        self.assertEqual(again.status, 404)
        self.assertEqual(callyard.check(get_call.sync(held.call_id, client=self.client)).state, CallState.SUCCEEDED)

    def test_a_batch_answers_with_its_results_while_they_come(self) -> None:
        calls = (BatchCall(custom_id=f"line-{n}", server="demo", tool="echo", arguments=BatchCallArguments.from_dict({"message": f"hello {n}"})) for n in range(40))
        said = {}
        for result in callyard.run_batch(self.client, calls):
            self.assertEqual(result.state, CallState.SUCCEEDED)
            said[result.custom_id] = callyard.text(result.result)
        self.assertEqual(len(said), 40)
        self.assertEqual(said["line-7"], "Echo: hello 7")

    def test_a_stream_that_breaks_continues_with_the_id_of_the_batch(self) -> None:
        ids: list[str] = []
        with closing(callyard.run_batch(self.client, [echo("a", "a"), echo("b", "b")], started=ids.append)) as stream:
            first = next(stream)
        rest = [result.index for result in callyard.batch_results(self.client, ids[0], cursor=first.cursor)]
        self.assertEqual(sorted([first.index, *rest]), [0, 1])

    def test_results_go_on_from_a_cursor(self) -> None:
        batch = callyard.check(create_batch.sync(client=self.client, body={"calls": [echo("a", "a"), echo("b", "b")]}))
        assert isinstance(batch, Batch)
        cursors = [result.cursor for result in callyard.batch_results(self.client, batch.id)]
        self.assertEqual(len(cursors), 2)
        rest = [result.cursor for result in callyard.batch_results(self.client, batch.id, cursor=cursors[0])]
        self.assertEqual(rest, cursors[1:])

    def test_events_say_how_the_fleet_is(self) -> None:
        with closing(callyard.events(self.client)) as stream:
            event = next(stream)
        self.assertEqual(event.name, "fleet")
        self.assertIn("demo", [server.id for server in Fleet.from_dict(event.json()).servers])

    def test_a_stream_that_is_refused_raises_its_problem(self) -> None:
        with self.assertRaises(callyard.ProblemError) as raised:
            next(callyard.batch_results(self.client, "batch_none"))
        self.assertEqual((raised.exception.status, raised.exception.problem.status), (404, 404))


if __name__ == "__main__":
    unittest.main()
