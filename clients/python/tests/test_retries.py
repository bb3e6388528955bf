"""Tests of which requests are retried, against a server that first refuses them."""

import asyncio
import http.server
import json
import threading
import unittest
from collections.abc import Mapping
from unittest import mock

import httpx

import callyard
from callyard.errors import problem_of
from callyard.rest.api.calls import create_call
from callyard.rest.bodies import CallRequestDict

PROBLEM = b'{"type":"/problems/quota-exceeded","title":"Quota exceeded","status":429,"detail":"Wait.","error":"Wait.","retryable":true}'
DONE = b'{"content":[{"type":"text","text":"done"}],"outcome":"completed"}'
JSON, OURS, PROXY = "application/json", "application/problem+json", "text/html"

Refusal = tuple[int, str, Mapping[str, str]]


class Refusing(http.server.ThreadingHTTPServer):
    """Return the refusals in order, then results. Status 0 closes the connection."""

    def __init__(self, *refusals: Refusal) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refusals = list(refusals)
        self.bodies: list[bytes] = []
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def stop(self) -> None:
        self.shutdown()
        self.thread.join()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Refusing

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        status, media, headers = self.server.refusals.pop(0) if self.server.refusals else (200, JSON, {})
        if status == 0:
            self.connection.close()
            return
        body = DONE if status == 200 else PROBLEM if media == OURS else b"<h1>down</h1>"
        self.send_response(status)
        for name, value in {"Content-Type": media, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


AFTER = {"Retry-After": "3"}
LIMITED: Refusal = (429, OURS, AFTER)


class Retries(unittest.TestCase):
    def setUp(self) -> None:
        self.slept: list[float] = []
        self.enterContext(mock.patch("time.sleep", self.slept.append))

    def connect(self, *refusals: Refusal, retries: int = 2) -> callyard.Client:
        self.server = Refusing(*refusals)
        self.addCleanup(self.server.stop)
        return self.enterContext(callyard.connect(self.server.url, retries=retries))

    def test_a_refused_call_is_sent_again_after_the_time_that_was_said(self) -> None:
        client = self.connect(LIMITED, LIMITED)
        self.assertEqual(callyard.text(client.call("demo", "echo", {"message": "a"})), "done")
        self.assertEqual(self.slept, [3, 3])
        self.assertEqual(set(self.server.bodies), {b'{"server":"demo","tool":"echo","arguments":{"message":"a"}}'})

    def test_the_last_refusal_is_raised_with_status_and_time(self) -> None:
        client = self.connect(LIMITED, LIMITED, LIMITED)
        with self.assertRaises(callyard.ProblemError) as raised:
            client.call("demo", "echo")
        self.assertEqual((raised.exception.status, raised.exception.retry_after, str(raised.exception)), (429, 3.0, "Wait."))
        self.assertEqual(len(self.server.bodies), 3)

    def test_without_retries_each_request_is_sent_once(self) -> None:
        client = self.connect(LIMITED, retries=0)
        with self.assertRaises(callyard.ProblemError) as raised:
            callyard.check(create_call.sync_detailed(client=client, body={"server": "demo", "tool": "echo"}))
        self.assertEqual((raised.exception.status, raised.exception.retry_after), (429, 3.0))
        self.assertEqual((len(self.server.bodies), self.slept), (1, []))

    def test_a_long_wait_is_left_to_the_caller(self) -> None:
        client = self.connect((503, OURS, {"Retry-After": "61"}))
        with self.assertRaises(callyard.ProblemError) as raised:
            client.call("demo", "echo")
        self.assertEqual((raised.exception.retry_after, len(self.server.bodies)), (61.0, 1))

    def test_what_a_proxy_says_counts_only_for_requests_that_may_be_repeated(self) -> None:
        for headers in ({}, AFTER):
            client = self.connect((503, PROXY, headers))
            with self.assertRaises(callyard.ProblemError) as raised:
                client.call("demo", "echo")
            self.assertEqual((raised.exception.status, str(raised.exception)), (503, "503 Service Unavailable"))
            self.assertEqual(len(self.server.bodies), 1)
        client = self.connect((503, PROXY, {}), (409, OURS, {"Retry-After": "1"}))
        self.assertEqual(callyard.text(client.call("demo", "echo", idempotency_key="k")), "done")
        first, second = self.slept
        self.assertTrue(0.3 < first <= 0.5 and second == 1, self.slept)

    def test_a_request_that_was_stored_in_part_is_repeated_only_with_a_key(self) -> None:
        sent: list[httpx.Request] = []

        def answer(request: httpx.Request) -> httpx.Response:
            sent.append(request)
            if len(sent) > 1:
                return httpx.Response(200, content=DONE, headers={"Content-Type": JSON})
            problem = {"type": "/problems/unavailable", "title": "X", "status": 503, "detail": "The first calls are stored.", "error": "", "retryable": False}
            return httpx.Response(503, content=json.dumps(problem), headers={"Content-Type": OURS, "Retry-After": "1"})

        with callyard.connect("http://callyard.test", httpx_args={"transport": httpx.MockTransport(answer)}) as client:
            with self.assertRaises(callyard.ProblemError) as raised:
                client.call("demo", "echo")
            self.assertEqual((str(raised.exception), len(sent)), ("The first calls are stored.", 1))
            sent.clear()
            self.assertEqual(callyard.text(client.call("demo", "echo", idempotency_key="k")), "done")
        self.assertEqual(self.slept, [1.0])

    def test_a_broken_connection_is_tried_again_only_with_a_key(self) -> None:
        client = self.connect((0, "", {}))
        with self.assertRaises(httpx.TransportError):
            client.call("demo", "echo")
        self.assertEqual(len(self.server.bodies), 1)
        client = self.connect((0, "", {}))
        self.assertEqual(callyard.text(client.call("demo", "echo", idempotency_key="k")), "done")

    def test_a_body_that_is_made_while_it_is_sent_is_sent_once(self) -> None:
        client = self.connect(LIMITED)
        with self.assertRaises(callyard.ProblemError) as raised:
            next(callyard.run_batch(client, ({"server": "demo", "tool": "echo"} for _ in range(2))))
        self.assertEqual((raised.exception.status, raised.exception.retry_after), (429, 3.0))
        self.assertEqual(self.slept, [])

    def test_the_same_holds_for_asyncio(self) -> None:
        server = Refusing(LIMITED)
        self.addCleanup(server.stop)

        async def call() -> str:
            async with callyard.connect(server.url) as client:
                return callyard.text(await client.call_async("demo", "echo"))

        slept = mock.AsyncMock()
        with mock.patch("anyio.sleep", slept):
            self.assertEqual(asyncio.run(call()), "done")
        slept.assert_awaited_once_with(3.0)

    def test_generated_functions_raise_the_refusal_of_a_proxy(self) -> None:
        body: CallRequestDict = {"server": "demo", "tool": "echo"}
        with self.assertRaises(callyard.ProblemError) as raised:
            create_call.sync(client=self.connect((502, PROXY, {})), body=body)
        self.assertEqual((raised.exception.status, str(raised.exception)), (502, "502 Bad Gateway"))

        async def call() -> None:
            async with callyard.connect(self.server.url) as client:
                await create_call.asyncio(client=client, body=body)

        self.server.refusals = [(502, PROXY, {})]
        with self.assertRaises(callyard.ProblemError) as raised:
            asyncio.run(call())
        self.assertEqual(raised.exception.status, 502)

    def test_a_redirect_is_an_error_that_names_the_other_address(self) -> None:
        client = self.connect((302, PROXY, {"Location": "https://login.example.com/"}))
        with self.assertRaises(callyard.ProblemError) as raised:
            list(callyard.run_batch(client, [{"server": "demo", "tool": "echo"}]))
        self.assertEqual(raised.exception.status, 302)
        self.assertIn("https://login.example.com/", str(raised.exception))

    def test_a_refusal_names_each_fault(self) -> None:
        faults = [{"pointer": "/a", "message": "expected a number"}, {"parameter": "limit", "message": "at most 10"}, {"pointer": "", "message": "expected property b"}]
        document = {"type": "/problems/x", "title": "X", "status": 422, "detail": "Two faults.", "error": "", "retryable": False, "errors": faults}
        self.assertEqual(str(problem_of(httpx.Response(422, json=document))), "Two faults. [/a: expected a number] [limit: at most 10] [whole document: expected property b]")

    def test_wait_gives_the_front_door_its_time_in_addition_to_the_timeout(self) -> None:
        requests: list[httpx.Request] = []

        def answer(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            call = {"id": "call_1", "server": "demo", "tool": "echo", "state": "succeeded", "created": "2026-01-02T03:04:05Z", "result": {"content": []}}
            return httpx.Response(200, json=call)

        timeout = httpx.Timeout(2.0)
        with callyard.connect("http://callyard.test", timeout=timeout, httpx_args={"transport": httpx.MockTransport(answer)}) as client:
            client.wait("call_1")
        self.assertEqual(requests[0].url.params["wait"], "30")
        self.assertEqual(requests[0].extensions["timeout"], {"connect": 2.0, "read": 32.0, "write": 2.0, "pool": 2.0})

    def test_wait_ends_with_its_timeout_although_the_front_door_answers_later(self) -> None:
        requests: list[str] = []
        over = threading.Event()

        class Waiting(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(self.path)
                over.wait(20)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Waiting)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.addCleanup(over.set)

        async def wait() -> None:
            async with callyard.connect(url) as client:
                await client.wait_async("call_1", timeout=0.2)

        url = f"http://127.0.0.1:{server.server_port}"
        with callyard.connect(url) as client, self.assertRaises(TimeoutError):
            client.wait("call_1", timeout=0.2)
        with self.assertRaises(TimeoutError):
            asyncio.run(wait())
        self.assertEqual((requests, self.slept), (["/calls/call_1?wait=1"] * 2, []))

    def test_wait_raises_the_error_of_the_connection_if_its_timeout_ends_before_the_retry(self) -> None:
        def answer(request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("refused", request=request)

        with callyard.connect("http://callyard.test", httpx_args={"transport": httpx.MockTransport(answer)}) as client, self.assertRaises(httpx.ConnectError):
            client.wait("call_1", timeout=0.1)
        self.assertEqual(self.slept, [])


if __name__ == "__main__":
    unittest.main()
