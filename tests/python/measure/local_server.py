"""A server at 127.0.0.1 that answers as a function says, for tests of clients."""

import http.server
import json
import threading
import unittest


class Handler(http.server.BaseHTTPRequestHandler):
    """Calls the server's `answer(path, fields)`, which returns a status, an object or bytes, and
    headers if it wants; or a function of the handler that sends an answer of its own."""

    def do_GET(self):
        self.reply(None)

    def do_POST(self):
        self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def reply(self, fields):
        self.server.asked.append((self.path, fields))
        self.server.headers.append(self.headers)
        answer = self.server.answer(self.path, fields)
        if callable(answer):
            try:
                answer(self)
            except OSError:  # the client has left
                pass
            return
        status, answer, headers = (*answer, {})[:3]
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Served(unittest.TestCase):
    def serve(self, answer):
        """A server's URL and the list of requests that it gets."""
        return self.serve_headers(answer)[:2]

    def serve_headers(self, answer):
        """The same, and the list of the requests' headers."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.answer, server.asked, server.headers = answer, [], []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def stop():
            server.shutdown()
            thread.join()
            server.server_close()
        self.addCleanup(stop)
        return f"http://127.0.0.1:{server.server_port}", server.asked, server.headers
