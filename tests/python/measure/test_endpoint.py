"""The client of OpenAI's API against servers that answer as llama.cpp, vLLM and others do."""

import http.server
import json
import pathlib
import socket
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from sextant.measure import endpoint, retrieval, tasks  # noqa: E402
from sextant.measure.endpoint import Endpoint  # noqa: E402
from sextant.measure.errors import MeasureError  # noqa: E402

BOS = 1  # token that servers add
TEMPLATE = 11  # tokens of the chat template
SAMPLE = tasks.Sample("needle", 128, 0.5, 0, "What is it?", "It is", ["7"], 6, 9)


def refusal(status, message):
    return status, {"error": {"code": status, "message": message}}


class Handler(http.server.BaseHTTPRequestHandler):
    """Calls the server's `answer(path, fields)`, which returns a status and an object or bytes."""

    def do_GET(self):
        self.reply(None)

    def do_POST(self):
        self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def reply(self, fields):
        self.server.asked.append((self.path, fields))
        status, answer = self.server.answer(self.path, fields)
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def completion(prompt):
    return 200, {"choices": [{"text": f" <{prompt[-5:]}> 7", "finish_reason": "length"}],
                 "usage": {"prompt_tokens": BOS + len(prompt.split())}}


def chat(fields):
    words = sum(len(message["content"].split()) for message in fields["messages"])
    return 200, {"choices": [{"message": {"role": "assistant", "content": "It is 7."}}],
                 "usage": {"prompt_tokens": BOS + TEMPLATE + words}}


def llama_cpp(path, fields):
    if path == "/v1/models":
        return 200, {"object": "list", "data": [{"id": "small.gguf"}]}
    if path == "/tokenize":
        return 200, {"tokens": list(range(BOS * fields.get("add_special", 0) +
                                          len(fields.get("content", "").split())))}
    if path == "/v1/completions":
        return completion(fields["prompt"])
    return chat(fields) if path == "/v1/chat/completions" else refusal(404, "File Not Found")


def vllm(path, fields):
    if path == "/v1/models":
        return 200, {"object": "list", "data": [{"id": "org/small", "max_model_len": 2048}]}
    if fields.get("model") != "org/small":
        return refusal(404, f"The model `{fields.get('model')}` does not exist.")
    if path == "/tokenize":
        if "prompt" not in fields:
            return 400, {"object": "error", "message": "Field required", "code": 400}
        count = BOS + len(fields["prompt"].split())
        return 200, {"count": count, "max_model_len": 2048, "tokens": list(range(count))}
    if path == "/v1/completions":
        return completion(fields["prompt"])
    return chat(fields) if path == "/v1/chat/completions" else (404, {"detail": "Not Found"})


def other(path, fields):
    """A server with chats alone, which lists no models and counts nothing."""
    if path != "/v1/chat/completions":
        return 404, b"<html>Not Found</html>"
    status, answer = chat(fields)
    return status, {"choices": answer["choices"]}


class Servers(unittest.TestCase):
    def serve(self, answer):
        """A server's URL and the list of requests that it gets."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.answer, server.asked = answer, []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def stop():
            server.shutdown()
            thread.join()
            server.server_close()
        self.addCleanup(stop)
        return f"http://127.0.0.1:{server.server_port}", server.asked

    def tokenizer(self, folder):
        """Writes a tokenizer.json of words between spaces."""
        try:
            from tokenizers import Tokenizer, models, pre_tokenizers
        except ImportError as error:
            raise unittest.SkipTest(str(error))
        words = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
        words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        words.enable_truncation(8)
        words.save(str(pathlib.Path(folder, "tokenizer.json")))

    def test_completions(self):
        for answer, name in ((llama_cpp, "small.gguf"), (vllm, "org/small")):
            with self.subTest(name):
                url, asked = self.serve(answer)
                client = Endpoint({"url": url, "model": None})
                self.assertEqual(client.count_tokens("one two three"), BOS + 3)
                self.assertEqual(client.overhead, 0)
                self.assertEqual(client.answer(SAMPLE), " <It is> 7")
                self.assertEqual(asked[-1], ("/v1/completions", {
                    "model": name, "temperature": 0, "prompt": SAMPLE.prompt, "max_tokens": 9}))
                self.assertEqual(client.facts(), {
                    "server": url, "server_model": name, "path": "/v1/completions",
                    "tokens_counted_by": url + "/tokenize"})

    def test_chats_continue_an_answer(self):
        for answer in (llama_cpp, vllm):
            with self.subTest(answer.__name__):
                url, asked = self.serve(answer)
                client = Endpoint({"url": url + "/v1/", "model": None}, chat=True)
                self.assertEqual(client.overhead, TEMPLATE)
                self.assertEqual(client.answer(SAMPLE), "It is 7.")
                path, fields = asked[-1]
                self.assertEqual(path, "/v1/chat/completions")
                self.assertEqual(fields["messages"], [
                    {"role": "user", "content": "What is it?"},
                    {"role": "assistant", "content": "It is"}])
                self.assertEqual(fields["max_tokens"], 9)
                self.assertIs(fields["chat_template_kwargs"]["enable_thinking"], False)
                self.assertEqual(fields.get("continue_final_message", False), answer is vllm)
                self.assertNotIn("/v1/completions", [path for path, _ in asked])

    def test_a_server_without_completions_gets_chats(self):
        url, asked = self.serve(other)
        with tempfile.TemporaryDirectory() as folder:
            self.tokenizer(folder)
            client = Endpoint({"url": url, "model": "large"}, folder)
        self.assertEqual(client.overhead, endpoint.CHAT_OVERHEAD)
        self.assertEqual(client.count_tokens("one two three " * 10), 30)
        self.assertEqual(client.answer(SAMPLE), "It is 7.")
        self.assertEqual(asked[-1], ("/v1/chat/completions", {
            "model": "large", "temperature": 0, "max_tokens": 9,
            "messages": [{"role": "user", "content": "What is it?"}]}))
        self.assertEqual(client.facts()["path"], "/v1/chat/completions")

    def test_a_folder_counts_before_the_server(self):
        url, asked = self.serve(llama_cpp)
        with tempfile.TemporaryDirectory() as folder:
            self.tokenizer(folder)
            client = Endpoint({"url": url, "model": None}, folder)
            before = len(asked)
            self.assertEqual(client.count_tokens("one two three"), 3)
            self.assertEqual(len(asked), before)
            pathlib.Path(folder, "tokenizer.json").write_text("{}")
            with self.assertRaisesRegex(MeasureError, "tokenizer.json: expected a tokenizer"):
                Endpoint({"url": url, "model": None}, folder)
        with self.assertRaisesRegex(MeasureError, "expected a folder with tokenizer.json"):
            Endpoint({"url": url, "model": None}, folder)

    def test_an_arm_of_a_server(self):
        url, _ = self.serve(llama_cpp)

        class Arm:
            assignment = {"model": None, "endpoint": {"url": url, "model": None}, "retrieval": {
                "lengths": [300], "tasks": ["needle"], "samples": 2, "depths": 2, "seed": 0,
                "chat": True}}
            made, done = [], None

            def records(self):
                return self.made

            def append(self, record):
                self.made.append(record)

            def finish(self, **facts):
                self.done = facts

        class Progress:
            def add(self, *_):
                pass

            def check_stop(self):
                pass

        arm = Arm()
        retrieval.measure(arm, None, Progress())
        self.assertEqual([record["answer"] for record in arm.made], ["It is 7."] * 2)
        self.assertEqual([record["depth"] for record in arm.made], [0, 1])
        self.assertEqual([record["score"] for record in arm.made], [0, 0])
        self.assertEqual(arm.done["server_model"], "small.gguf")

    def test_refusals(self):
        def fails(answer, pattern, ask=lambda client: None, **more):
            url, _ = self.serve(answer)
            with self.assertRaisesRegex(MeasureError, pattern) as caught:
                ask(Endpoint({"url": url, "model": None, **more}))
            self.assertIn(url, str(caught.exception))

        def full(path, fields):
            if path == "/v1/completions" and fields["max_tokens"] > 1:
                return refusal(400, "the request exceeds the available context size")
            return llama_cpp(path, fields)

        def empty(path, fields):
            return (200, {"choices": []}) if "comp" in path else llama_cpp(path, fields)

        def two(path, fields):
            return (200, {"data": [{"id": "a"}, {"id": "b"}]}) if "models" in path \
                else llama_cpp(path, fields)

        def ask(client):
            client.answer(SAMPLE)

        fails(full, "/v1/completions: the server refuses with status 400: the request exceeds", ask)
        fails(empty, r"/v1/completions: expected an answer with choices, but got \{\"choices", ask)
        fails(two, "model: expected the name of one of the models of .*, a, b, but got none")
        fails(other, "has no /tokenize as llama.cpp and vLLM have it; expected as MODEL")
        fails(lambda *_: (200, b"hello"), "/v1/models: expected a JSON object, but got 'hello'")
        fails(lambda *_: refusal(503, "Loading model"), "status 503: Loading model")
        fails(vllm, "status 404: The model `b` does not exist|has no /tokenize", model="b")
        with self.assertRaisesRegex(MeasureError, "url: expected one that begins with http"):
            Endpoint({"url": "localhost:8080", "model": None})

    def test_no_server(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            self.addCleanup(setattr, endpoint, "SHORT_TIMEOUT", endpoint.SHORT_TIMEOUT)
            endpoint.SHORT_TIMEOUT = 0.1
            with self.assertRaisesRegex(MeasureError, f"{url}/v1/models: .*(within 0.1 s|timed out)"
                                        ):
                Endpoint({"url": url, "model": None})
        with self.assertRaisesRegex(MeasureError, f"{url}/v1/models: cannot reach the server"):
            Endpoint({"url": url, "model": None})


if __name__ == "__main__":
    unittest.main()
