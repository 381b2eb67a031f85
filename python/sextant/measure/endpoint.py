"""A client of servers with OpenAI's API, such as llama.cpp and vLLM, with urllib alone.

Prompts go to /v1/completions; to /v1/chat/completions if a chat is asked for, or if the server has
no completions (404). llama.cpp and vLLM continue a last message of the assistant, so they get the
beginning of the answer; other servers get the question alone. Tokens are counted by the
tokenizer.json of a folder if one is given, else by the server's /tokenize. No key is sent.
"""

from __future__ import annotations

import json
import pathlib
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Callable

from sextant._files import MOST_JSON, read_bytes
from sextant.measure.errors import MeasureError

if TYPE_CHECKING:
    from sextant.measure.tasks import Sample

SHORT_TIMEOUT = 30.0
ANSWER_TIMEOUT = 3600.0  # seconds; long prompts on a CPU
CHAT_OVERHEAD = 64  # tokens of a chat template, if the server does not count them
LLAMA_CPP, VLLM = "llama.cpp", "vLLM"  # forms of /tokenize; SGLang has vLLM's


class HttpError(MeasureError):
    """A server's answer with an error status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Endpoint:
    """Answers of a model in a server.

    overhead: the tokens that the server's chat template adds to a prompt."""

    def __init__(self, endpoint: dict[str, Any], folder: str | None = None, chat: bool = False
                 ) -> None:
        """endpoint: {"url", "model"}; a model of None is the only one that the server has. folder:
        with tokenizer.json, or None. Raises MeasureError."""
        self._server = _Server(endpoint["url"])
        self._chat = chat
        listed = self._listed_models()
        self._model = endpoint.get("model") or self._only_model(listed)
        self._tokenize = self._form_of_tokenize()
        self._count, self._counted_by = self._counter(folder)
        self._usage = 0  # tokens of the last prompt, 0 if the server does not say
        self.overhead = 0
        if not chat:
            self._chat = not self._has_completions()
        if self._chat:
            self.overhead = self._chat_overhead()

    def count_tokens(self, text: str) -> int:
        return self._count(text)

    def answer(self, sample: Sample) -> str:
        """The server's answer at temperature 0."""
        if self._chat:
            return self._ask_chat(sample.question, sample.prefix, sample.answer_tokens)
        return self._ask(sample.prompt, sample.answer_tokens)

    def facts(self) -> dict[str, Any]:
        return {"server": self._server.url, "server_model": self._model or "",
                "tokens_counted_by": self._counted_by,
                "path": "/v1/chat/completions" if self._chat else "/v1/completions"}

    def _listed_models(self) -> list[str]:
        """Their names; none if the server does not list them."""
        try:
            entries = self._server.get("/v1/models").get("data")
        except HttpError as error:
            if error.status == 404:
                return []
            raise
        entries = entries if isinstance(entries, list) else []
        return [str(entry["id"]) for entry in entries if isinstance(entry, dict) and "id" in entry]

    def _only_model(self, names: list[str]) -> str | None:
        if len(names) > 1:
            raise MeasureError(f"endpoint: model: expected the name of one of the models of "
                               f"{self._server.url}, {', '.join(names)}, but got none")
        return names[0] if names else None

    def _named(self, **fields: Any) -> dict[str, Any]:
        return {**({"model": self._model} if self._model else {}), **fields}

    # Tokens.

    def _form_of_tokenize(self) -> str | None:
        """LLAMA_CPP, VLLM, or None if the server counts no tokens."""
        for form in (LLAMA_CPP, VLLM):
            try:
                if self._count_by_server("one two", form) > 0:
                    return form
            except MeasureError:  # another form; the server itself has just been reached
                continue
        return None

    def _count_by_server(self, text: str, form: str | None = None) -> int:
        """0 if the answer has another form."""
        if (form or self._tokenize) == LLAMA_CPP:
            tokens = self._server.post("/tokenize", {"content": text, "add_special": True}
                                       ).get("tokens")
            return len(tokens) if isinstance(tokens, list) else 0
        count = self._server.post("/tokenize", self._named(prompt=text)).get("count")
        return count if isinstance(count, int) else 0

    def _counter(self, folder: str | None) -> tuple[Callable[[str], int], str]:
        if folder is not None:
            path = pathlib.Path(folder, "tokenizer.json")
            return _counter_of_file(path), str(path)
        if self._tokenize:
            return self._count_by_server, f"{self._server.url}/tokenize"
        raise MeasureError(f"endpoint: {self._server.url} has no /tokenize as llama.cpp and vLLM "
                           "have it; expected as MODEL a folder with the tokenizer.json of its "
                           "model, but got none")

    def _chat_overhead(self) -> int:
        self._ask_chat("A question?", "The answer is", 1)
        if not self._usage:
            return CHAT_OVERHEAD
        return max(0, self._usage - self.count_tokens("A question?\nThe answer is"))

    # Answers.

    def _has_completions(self) -> bool:
        try:
            self._ask("One, two,", 1)
        except HttpError as error:
            if error.status == 404:
                return False
            raise
        return True

    def _ask(self, prompt: str, tokens: int) -> str:
        choice = self._choice("/v1/completions", prompt=prompt, max_tokens=tokens)
        return str(choice.get("text") or "")

    def _ask_chat(self, question: str, prefix: str, tokens: int) -> str:
        messages = [{"role": "user", "content": question}]
        more: dict[str, Any] = {}
        if self._tokenize:
            messages.append({"role": "assistant", "content": prefix})
            more = {"chat_template_kwargs": {"enable_thinking": False}}
        if self._tokenize == VLLM:
            more |= {"add_generation_prompt": False, "continue_final_message": True}
        choice = self._choice("/v1/chat/completions", messages=messages, max_tokens=tokens, **more)
        message = choice.get("message")
        return str(message.get("content") or "") if isinstance(message, dict) else ""

    def _choice(self, path: str, **fields: Any) -> dict[str, Any]:
        reply = self._server.post(path, self._named(temperature=0, **fields), ANSWER_TIMEOUT)
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise MeasureError(f"endpoint: {self._server.url}{path}: expected an answer with "
                               f"choices, but got {_short(json.dumps(reply))}")
        usage = reply.get("usage")
        count = usage.get("prompt_tokens") if isinstance(usage, dict) else 0
        self._usage = count if isinstance(count, int) else 0
        return choices[0]


def _counter_of_file(path: pathlib.Path) -> Callable[[str], int]:
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise MeasureError(f"endpoint: tokens are counted by {path} with the package tokenizers, "
                           "which is not installed") from error
    try:
        data = read_bytes(path, MOST_JSON)
    except FileNotFoundError as error:
        raise MeasureError(f"endpoint: model: expected a folder with tokenizer.json, but there is "
                           f"no {path}") from error
    except OSError as error:
        raise MeasureError(f"endpoint: model: {path}: {error.strerror}") from error
    try:
        tokenizer = Tokenizer.from_buffer(data)
    except Exception as error:  # tokenizers raises Exception itself
        raise MeasureError(f"{path}: expected a tokenizer, but got: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text).ids)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:300] + "..."


def _message(body: bytes) -> str:
    """The server's words about an error, from the forms that servers use."""
    text = body.decode("utf-8", errors="replace")
    try:
        found = json.loads(text)
    except ValueError:
        return _short(text)
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    return _short(found if isinstance(found, str) else json.dumps(found))


class _Server:
    """JSON over HTTP. url: without a last slash and without /v1."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise MeasureError("endpoint: url: expected one that begins with http:// or https://, "
                               f"but got {url!r}")
        self.url = url.rstrip("/").removesuffix("/v1")
        local = parts.hostname in ("localhost", "::1") or parts.hostname.startswith("127.")
        proxies = [urllib.request.ProxyHandler({})] if local else []
        self._opener = urllib.request.build_opener(*proxies)

    def get(self, path: str) -> dict[str, Any]:
        return self._open(urllib.request.Request(self.url + path), SHORT_TIMEOUT)

    def post(self, path: str, fields: dict[str, Any], timeout: float = SHORT_TIMEOUT
             ) -> dict[str, Any]:
        return self._open(urllib.request.Request(
            self.url + path, json.dumps(fields).encode(), {"Content-Type": "application/json"}),
            timeout)

    def _open(self, request: urllib.request.Request, timeout: float) -> dict[str, Any]:
        url = request.full_url
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                body = answer.read()
        except urllib.error.HTTPError as error:
            raise HttpError(f"endpoint: {url}: the server refuses with status {error.code}: "
                            f"{_message(error.read())}", error.code) from error
        except TimeoutError as error:
            raise MeasureError(f"endpoint: {url}: expected an answer within {timeout:g} s, but got "
                               "none") from error
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise MeasureError(f"endpoint: {url}: cannot reach the server: {reason}") from error
        except Exception as error:  # http.client's errors about broken answers
            raise MeasureError(f"endpoint: {url}: expected an answer, but got "
                               f"{type(error).__name__}: {error}") from error
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise MeasureError(f"endpoint: {url}: expected a JSON object, but got "
                               f"{_short(body.decode('utf-8', errors='replace'))!r}")
        return found
