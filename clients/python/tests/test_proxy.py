"""Tests of answers of a proxy, and of names in paths, without a server."""

import asyncio
import unittest
from collections.abc import Callable
from typing import Any

import httpx

import callyard
from callyard.rest.api.calls import create_call, get_call
from callyard.rest.api.evaluations import get_evaluation_page
from callyard.rest.api.servers import switch_tool
from callyard.rest.client import Client as RestClient

Answer = Callable[[httpx.Request], httpx.Response]


def page(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, html="<!doctype html><title>Sign in</title>", request=request)


def connect(answer: Answer) -> callyard.Client:
    return callyard.connect("http://callyard.test", httpx_args={"transport": httpx.MockTransport(answer)})


class Pages(unittest.TestCase):
    def test_a_sign_in_page_is_a_problem(self) -> None:
        body: Any = {"server": "demo", "tool": "echo"}
        plain = RestClient(base_url="http://callyard.test", httpx_args={"transport": httpx.MockTransport(page)})
        with connect(page) as client, plain:
            cases: dict[str, Callable[[], Any]] = {
                "call": lambda: client.call("demo", "echo"),
                "wait": lambda: client.wait("call_1"),
                "generated": lambda: create_call.sync(client=client, body=body),
                "batch": lambda: list(callyard.run_batch(client, [body])),
                "events": lambda: list(callyard.events(client)),
                "events of a generated client": lambda: list(callyard.events(plain)),
            }
            for name, do in cases.items():
                with self.subTest(name), self.assertRaises(callyard.ProblemError) as raised:
                    do()
                self.assertEqual(raised.exception.status, 200)
                self.assertIn("http://callyard.test answered with status 200 and an HTML page", str(raised.exception))

    def test_the_same_holds_for_asyncio(self) -> None:
        async def call() -> None:
            async with connect(page) as client:
                await client.call_async("demo", "echo")

        with self.assertRaises(callyard.ProblemError) as raised:
            asyncio.run(call())
        self.assertEqual(raised.exception.status, 200)

    def test_the_page_of_an_evaluation_is_no_problem(self) -> None:
        with connect(page) as client:
            self.assertEqual(get_evaluation_page.sync_detailed("run", client=client).status_code, 200)


class Names(unittest.TestCase):
    def test_names_stay_one_segment_of_the_path(self) -> None:
        sent: list[bytes] = []

        def answer(request: httpx.Request) -> httpx.Response:
            sent.append(request.url.raw_path)
            problem = {"type": "/problems/not-found", "title": "Not found", "status": 404, "detail": "None.", "error": "None.", "retryable": False}
            return httpx.Response(404, json=problem)

        with connect(answer) as client:
            for name, escaped in {
                ".": b"%2E", "..": b"%2E%2E", "a/b": b"a%2Fb", "../x": b"..%2Fx", "50%": b"50%25", "x?y=1": b"x%3Fy%3D1", "a#b": b"a%23b", "%2e%2e": b"%252e%252e", "...": b"...",
            }.items():  # fmt: skip
                with self.subTest(name):
                    sent.clear()
                    get_call.sync(name, client=client)
                    switch_tool.sync(name, name, client=client, body={"enabled": True})
                    with self.assertRaises(callyard.ProblemError):
                        client.wait(name, timeout=1)
                    with self.assertRaises(callyard.ProblemError):
                        list(callyard.batch_results(client, name))
                    paths = [b"/calls/" + escaped, b"/servers/" + escaped + b"/tools/" + escaped, b"/calls/" + escaped, b"/batches/" + escaped + b"/results"]
                    self.assertEqual([path.partition(b"?")[0] for path in sent], paths)


if __name__ == "__main__":
    unittest.main()
