"""JSON over HTTP from servers that send too much, too slowly, elsewhere, or nothing of use."""

import email.utils
import pathlib
import sys
import threading
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from local_server import Served  # noqa: E402
from sextant.measure import server  # noqa: E402
from sextant.measure.errors import MeasureError  # noqa: E402
from sextant.measure.server import HttpError, Server  # noqa: E402

LONG = 30.0  # seconds, which no test waits for


class Bounded(Served):
    def fails(self, answer, pattern, timeout=LONG, error=MeasureError):
        """GET and POST fail with a message that has the URL."""
        url, asked = self.serve(answer)
        for ask in (lambda: Server(url).get("/there", timeout),
                    lambda: Server(url).post("/there", {"a": 1}, timeout)):
            with self.assertRaisesRegex(error, f"^endpoint: {url}/there: .*{pattern}"
                                        ) as caught:
                ask()
            self.assertLess(len(str(caught.exception)), 1000)
        return asked

    def test_bodies(self):
        def endless(handler):
            handler.send_response(self.status)
            handler.end_headers()
            while True:
                handler.wfile.write(b"x" * (1 << 16))

        with mock.patch.object(server, "MOST_BYTES", 1 << 20):
            self.status = 200
            self.fails(lambda *_: endless, "expected an answer of at most 1048576 bytes")
            self.status = 500
            self.fails(lambda *_: endless, "status 500: xxx", error=HttpError)
            self.fails(lambda *_: (200, b'{"a": "' + b"x" * (1 << 20) + b'"}'), "at most 1048576")
        url, _ = self.serve(lambda *_: (200, {"a": "x" * (1 << 20)}))
        self.assertEqual(len(Server(url).get("/", LONG)["a"]), 1 << 20)

    def test_time(self):
        done = threading.Event()
        self.addCleanup(done.set)

        def drip(handler):
            for byte in self.begins + b" " * 10000:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                if done.wait(0.05):
                    return

        for self.begins in (b"", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 429 Wait\r\n\r\n"):
            self.fails(lambda *_: drip, "expected an answer within 0.3 s, but got none", 0.3)

    def test_depth(self):
        for body in (b"[" * 200000, b'{"a":' * 200000, b'{"error":' * 200000):
            self.fails(lambda *_, body=body: (200, body), "expected a JSON object, but got '[{[]")
            self.fails(lambda *_, body=body: (400, body), "status 400: [{[]", error=HttpError)

    def test_control_characters(self):
        self.fails(lambda *_: (400, {"error": "\x1b[31mred\x07 \u202e"}), r"status 400: \[31mred$")
        self.fails(lambda *_: (200, b"\x1b[31mred"), r"got '\[31mred'")

    def test_redirects_to_other_servers(self):
        other, reached = self.serve(lambda *_: (200, {}))
        for target in (other + "/there", other.replace("127.0.0.1", "localhost"), "file:///etc/",
                       other.replace("http:", "https:"), "//localhost/x", "http://127.0.0.1:x/"):
            for status in (301, 302, 303, 307, 308):
                self.fails(lambda *_, to=target, status=status: (status, b"", {"Location": to}),
                           "redirect to .*, which is not followed|status 30[0-9]|ValueError")
        self.assertEqual(reached, [])

    def test_redirects_within_a_server(self):
        def answer(path, fields):
            if path == "/there":
                return 307, b"", {"Location": "/v1/there"}
            return 200, {"got": path}

        url, asked = self.serve(answer)
        self.assertEqual(Server(url).get("/there", LONG), {"got": "/v1/there"})
        self.assertEqual(Server(url).post("/there", {"a": 1}, LONG), {"got": "/v1/there"})
        self.assertEqual(asked[-1], ("/v1/there", {"a": 1}))
        self.fails(lambda path, _: (302, b"", {"Location": path}), "10 redirects|not followed")
        url, asked = self.serve(lambda *_: (302, b"", {"Location": "/x"}))
        with self.assertRaisesRegex(MeasureError, "redirect to .*/x, which is not followed"):
            Server(url).post("/there", {"a": 1}, LONG)  # 302 would become a GET without the body
        self.assertEqual(len(asked), 1)

    def test_retry_after(self):
        waits = []
        sleep = mock.patch.object(server.time, "sleep", waits.append)
        sleep.start()
        self.addCleanup(sleep.stop)
        left = []

        def answer(*_):
            return left.pop(0) if left else (200, {"a": 1})

        def busy(status, wait):
            return status, {"error": "busy"}, {"Retry-After": wait}

        url, asked = self.serve(answer)
        date = email.utils.formatdate(time.time() + 100, usegmt=True)
        left[:] = [busy(429, "7"), busy(503, "0"), busy(429, date)]
        self.assertEqual(Server(url).post("/", {"b": 2}, LONG), {"a": 1})
        self.assertEqual(waits[:2], [7, 0])
        self.assertTrue(0 < waits[2] <= 100, waits)
        self.assertEqual(asked, [("/", {"b": 2})] * 4)
        for status, wait, times in ((429, "121", 0), (429, "86400", 0), (503, "50", 2),
                                    (429, "0", 9), (500, "1", 0), (429, "soon", 0),
                                    (429, "-1", 0), (503, "9" * 5000, 0)):
            waits.clear()
            asked = self.fails(lambda *_, status=status, wait=wait: busy(status, wait),
                               f"status {status}: busy", error=HttpError)
            self.assertEqual(len(waits), 2 * times, (status, wait))
            self.assertEqual(len(asked), 2 * (times + 1))


class Key(Served):
    def test_is_sent_and_never_printed(self):
        def echo(*_):
            return lambda handler: handler.send_error(401, explain=handler.headers["Authorization"])

        url, _, headers = self.serve_headers(lambda *_: (200, {}))
        Server(url).get("/", LONG)
        self.assertIsNone(headers[-1]["Authorization"])
        with mock.patch.dict("os.environ", {server.KEY: " sk-1234567\n"}):
            Server(url).get("/", LONG)
            Server(url).post("/", {}, LONG)
            self.assertEqual([one["Authorization"] for one in headers[1:]],
                             ["Bearer sk-1234567"] * 2)
            for answer in (echo, lambda *_: (401, {"error": "wrong key: sk-1234567"}),
                           lambda *_: (200, b"wrong key: sk-1234567"),
                           lambda *_: (401, b"x" * 290 + b"sk-1234567"),
                           lambda *_: (302, b"", {"Location": "http://a.invalid/sk-1234567"})):
                url, _ = self.serve(answer)
                with self.assertRaises(MeasureError) as caught:
                    Server(url).get("/", LONG)
                self.assertNotIn("sk-1", str(caught.exception))

    def test_refusals(self):
        for key in ("sk-12 34", "sk-12\n34", "sk-ü"):
            with mock.patch.dict("os.environ", {server.KEY: key}):
                with self.assertRaisesRegex(MeasureError, f"{server.KEY}: expected") as caught:
                    Server("http://127.0.0.1:1")
                self.assertNotIn("sk-", str(caught.exception))
        with self.assertRaisesRegex(MeasureError, "url: expected none with a name") as caught:
            Server("http://me:secret@127.0.0.1:1")
        self.assertNotIn("secret", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
