"""The client of OpenAI's API against servers that answer as llama.cpp, vLLM and others do."""

import dataclasses
import json
import pathlib
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from local_server import Served  # noqa: E402
from sextant.measure import endpoint, retrieval, tasks  # noqa: E402
from sextant.measure.arm import Arm, Progress  # noqa: E402
from sextant.measure.endpoint import Endpoint  # noqa: E402
from sextant.measure.errors import MeasureError, NoAnswer  # noqa: E402

BOS = 1  # token that servers add
TEMPLATE = 11  # tokens of the chat template
SAMPLE = tasks.Sample("needle", 128, 0.5, 0, "What is it?", "It is", ["7"], 6, 9)


def refusal(status, message):
    return status, {"error": {"code": status, "message": message}}


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


class Servers(Served):
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

    def test_replies_that_are_no_answers(self):
        """By usage, finish_reason and reasoning of the reply, in both forms."""
        def reply(text, finish="stop", read=None, **more):
            def answer(path, fields):
                if "comp" not in path or fields["max_tokens"] == 1:  # how the server is found
                    return llama_cpp(path, fields)
                status, found = llama_cpp(path, fields)
                choice = {"finish_reason": finish}
                if "chat" in path:
                    choice["message"] = {"content": text, **more}
                else:
                    choice["text"] = text
                used = found["usage"]["prompt_tokens"] if read is None else read
                return status, {"choices": [choice], "usage": {"prompt_tokens": used, **more}}
            return answer

        def ask(answer, chat):
            client = Endpoint({"url": self.serve(answer)[0], "model": None}, chat=chat)
            count = client.count_tokens(sample.prompt) + client.overhead
            return client.answer(dataclasses.replace(sample, tokens=count))

        sample = dataclasses.replace(SAMPLE, question="What is it? " * 50)
        count = BOS + len(sample.prompt.split())
        for chat in (False, True):
            tokens = count + TEMPLATE * chat
            for answer, pattern, repeats in (
                    (reply("7", read=40), f"read 40 of the prompt's {tokens} tokens", True),
                    (reply("7", read=tokens - 9), f"read {tokens - 9} of the prompt's", True),
                    (reply(""), "the answer is empty$", False),
                    (reply(None), "the answer is empty$", False),
                    (reply(" \n", "length"), "empty and ran out of tokens", True),
                    (reply("<think>It may be", "length"), "spent them on reasoning", True),
                    (reply("It may be</think> It", "length"), "spent them on reasoning", True),
                    (reply("It is", "length", completion_tokens_details={"reasoning_tokens": 7}),
                     "spent them on reasoning", True),
                    *(((reply(None, "length", reasoning="It may be"), "reasoning", True),
                       (reply("I", "length", reasoning_content="It may be"), "reasoning", True))
                      if chat else ())):
                with self.subTest(pattern, chat=chat):
                    with self.assertRaisesRegex(NoAnswer, pattern) as caught:
                        ask(answer, chat)
                    self.assertEqual(caught.exception.repeats, repeats)
            for answer, said in ((reply("7", "length"), "7"), (reply("7", read=tokens - 8), "7"),
                                 (reply("7", read=tokens + 99), "7"), (reply("7", read=0), "7"),
                                 (reply("<think>8</think>7"), "7"), (reply("8</think>7"), "7"),
                                 (reply("7", reasoning="It is"), "7")):
                self.assertEqual(ask(answer, chat), said)

    def test_a_cut_question_without_the_beginning_of_its_answer(self):
        def answer(path, fields):
            status, found = other(path, fields)
            if status == 200:
                words = len(fields["messages"][0]["content"].split())
                found["usage"] = {"prompt_tokens": BOS + TEMPLATE + words - self.lost}
            return status, found

        self.lost = 0
        url, _ = self.serve(answer)
        with tempfile.TemporaryDirectory() as folder:
            self.tokenizer(folder)
            client = Endpoint({"url": url, "model": "large"}, folder)
        self.assertEqual(client.overhead, BOS + TEMPLATE)
        prefix = "The answer to this long question of many words is"
        sample = dataclasses.replace(SAMPLE, question="What is it? " * 50, prefix=prefix,
                                     tokens=150 + 10 + BOS + TEMPLATE)
        self.assertEqual(client.answer(sample), "It is 7.")
        self.lost = 9
        with self.assertRaisesRegex(NoAnswer, "read 153 of the prompt's 162 tokens"):
            client.answer(sample)

    def test_a_server_that_does_not_say_what_it_read(self):
        def answer(path, fields):
            status, found = llama_cpp(path, fields)
            return status, {**found, "usage": None}

        url, _ = self.serve(answer)
        client = Endpoint({"url": url, "model": None})
        self.assertEqual(client.answer(SAMPLE), " <It is> 7")
        (note,) = client.facts()["notes"]
        self.assertRegex(note, f"^{url} does not say how many tokens of a prompt it read")

    def arm(self, url, name="300", samples=4):
        folder = pathlib.Path(self.folder, "arms", name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "arm.json").write_text(json.dumps({
            "measure": "retrieval", "model": None, "endpoint": {"url": url, "model": None},
            "retrieval": {"lengths": [int(name)], "tasks": ["needle"], "samples": samples,
                          "depths": 2, "seed": 0}}))
        return Arm(folder)

    def test_arms_have_no_scores_for_replies_that_are_no_answers(self):
        def answer(path, fields):
            status, found = llama_cpp(path, fields)
            if path == "/v1/completions" and fields["max_tokens"] > 1:
                self.count += 1
                found["choices"][0] = {"text": self.text(), "finish_reason": self.finish}
            return status, found

        url, _ = self.serve(answer)
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder, self.count, self.finish = place.name, 0, "length"
        progress = Progress(0, 0)
        self.text = lambda: ""
        for _ in range(2):  # it is not asked for more, and asked again by the next command
            with self.assertRaisesRegex(MeasureError, "300 tokens: expected answers, but none of "
                                        "the first 3 replies is one; the first: the answer is e"):
                retrieval.measure(self.arm(url), None, progress)
        self.assertEqual(self.count, 6)
        self.assertFalse(self.arm(url).done)
        self.finish = "stop"  # an answer of its own, which says nothing of the next one
        with self.assertRaisesRegex(MeasureError, "none of the first 4 replies"):
            retrieval.measure(self.arm(url), None, progress)
        self.assertEqual(retrieval.work(self.arm(url)), (1200, 0))
        self.text = lambda: "7" if self.count % 2 else ""
        retrieval.measure(self.arm(url), None, progress)
        made = self.arm(url).records()[-4:]
        self.assertEqual([record["score"] for record in made], [0, None, 0, None])
        self.assertEqual([record.get("unscored") for record in made],
                         [None, "the answer is empty"] * 2)
        self.assertTrue(self.arm(url).done)
        self.assertEqual(retrieval.work(self.arm(url)), (1200, 1200))
        # A longer length without answers is a result if a shorter one has some.
        self.text, self.finish = lambda: "", "length"
        retrieval.measure(self.arm(url, "350"), None, progress)
        self.assertEqual([r["score"] for r in self.arm(url, "350").records()], [None] * 4)
        self.assertTrue(self.arm(url, "350").done)

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

        def many(path, fields):
            return (200, {"data": [{"id": f"m{n}"} for n in range(200000)]}) if "models" in path \
                else llama_cpp(path, fields)

        def ask(client):
            client.answer(SAMPLE)

        fails(full, "/v1/completions: the server refuses with status 400: the request exceeds", ask)
        fails(empty, r"/v1/completions: expected an answer with choices, but got \{\"choices", ask)
        fails(two, "model: expected the name of one of the models of .*, a, b, but got none")
        fails(many, "models of .*, m0, m1, m2, m3, m4, m5, m6, m7 and 199992 more, but got none$")
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
