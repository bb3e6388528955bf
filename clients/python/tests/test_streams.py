import asyncio
import unittest
from collections.abc import Iterator
from typing import Any

import httpx

import callyard
from callyard.streams import Event, _Events, _Lines

STREAM = ': alive\n\nevent: fleet\nid: 1\ndata: {"a":\ndata: "ö\u2028"}\n\ndata:{}\r\n\r\nevent: none\n\ndata: cut'.encode()


def lines(pieces: list[bytes]) -> Iterator[tuple[str, bool]]:
    reader = _Lines()
    for piece in pieces:
        yield from reader.take(piece)
    yield from reader.end()


class Streams(unittest.TestCase):
    def test_events_do_not_depend_on_how_the_bytes_are_cut(self) -> None:
        for size in range(1, 40):
            pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
            reader = _Events()
            found = [event for line, whole in lines(pieces) if whole and (event := reader.take(line))]
            self.assertEqual(found, [Event("fleet", "1", '{"a":\n"ö\u2028"}'), Event("", "", "{}")])

    def test_the_last_line_needs_no_line_feed(self) -> None:
        self.assertEqual(list(lines([b"1\n2", b"3\n", b"4"])), [("1", True), ("23", True), ("4", False)])

    def test_a_stream_has_the_timeout_of_its_connection_only(self) -> None:
        seen: list[dict[str, Any]] = []

        def answer(request: httpx.Request) -> httpx.Response:
            seen.append(request.extensions["timeout"])
            return httpx.Response(200, content=b"", request=request)

        async def both() -> None:
            async with connect() as client:
                self.assertEqual([line async for line in callyard.batch_results_async(client, "batch_1")], [])

        def connect() -> callyard.Client:
            return callyard.connect("http://callyard.test", timeout=httpx.Timeout(5, connect=2), httpx_args={"transport": httpx.MockTransport(answer)})

        with connect() as client:
            self.assertEqual(list(callyard.batch_results(client, "batch_1")), [])
        asyncio.run(both())
        self.assertEqual(seen, [{"connect": 2, "read": None, "write": None, "pool": 5}] * 2)


if __name__ == "__main__":
    unittest.main()
