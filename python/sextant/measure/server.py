"""JSON over HTTP, with urllib alone. A server's answers are bounded in size, depth and time.

A request runs in a thread that is left behind at its deadline, since timeouts of sockets count
from byte to byte. Redirects are followed within the server only, and a Retry-After of 429 and 503
is obeyed up to a limit. The key, if there is one, is in no message.
"""

from __future__ import annotations

import email.utils
import json
import os
import queue
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from email.message import Message
from typing import Any, Callable, NamedTuple

from sextant.measure.errors import MeasureError

KEY = "SEXTANT_API_KEY"  # environment variable
MOST_BYTES = 32 << 20  # of an answer: token numbers of a prompt of 4 million tokens
MOST_ERROR_BYTES = 64 << 10
MOST_LETTERS = 300  # of a server's words in a message
MOST_TRIES = 10  # redirects and waits of a request
LONGEST_WAIT = 120.0  # seconds, of all waits of a request
REDIRECTS, REPEATED = (301, 302, 303, 307, 308), (307, 308)  # REPEATED: with their bodies
BUSY = (429, 503)


class HttpError(MeasureError):
    """A server's answer with an error status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Answer(NamedTuple):
    status: int
    headers: Message
    body: bytes


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """The redirect stays an error, which _Server handles."""


class Server:
    """url: without a last slash and without /v1."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise MeasureError("endpoint: url: expected one that begins with http:// or https://, "
                               f"but got {url!r}")
        if "@" in parts.netloc:
            raise MeasureError("endpoint: url: expected none with a name or a password, as it is "
                               f"written to files; the environment variable {KEY} holds a key")
        self.url = url.rstrip("/").removesuffix("/v1")
        self._key = _key()
        local = parts.hostname in ("localhost", "::1") or parts.hostname.startswith("127.")
        proxies = [urllib.request.ProxyHandler({})] if local else []
        self._opener = urllib.request.build_opener(_NoRedirects, *proxies)

    def get(self, path: str, timeout: float) -> dict[str, Any]:
        """timeout: seconds from the request to the last byte of its answer."""
        return self._open(self.url + path, None, timeout)

    def post(self, path: str, fields: dict[str, Any], timeout: float) -> dict[str, Any]:
        return self._open(self.url + path, json.dumps(fields).encode(), timeout)

    def words(self, text: str) -> str:
        """A server's words on one line for a message: shortened, printable, without the key."""
        text = text.replace(self._key, f"({KEY})") if self._key else text
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return line if len(line) <= MOST_LETTERS else line[:MOST_LETTERS] + "..."

    def _open(self, url: str, data: bytes | None, timeout: float) -> dict[str, Any]:
        waited = 0.0
        for tries in range(1, MOST_TRIES + 1):
            answer = self._once(url, data, timeout)
            if 200 <= answer.status < 300:
                return self._object(url, answer.body)
            location = answer.headers.get("Location")
            if answer.status in REDIRECTS and location:
                url = self._redirected(url, location, data is None or answer.status in REPEATED)
                continue
            wait = _seconds(answer.headers.get("Retry-After")) if answer.status in BUSY else None
            if wait is None or waited + wait > LONGEST_WAIT or tries == MOST_TRIES:
                limit = "" if wait is None else (f" (it asks to wait {wait:.0f} s, after "
                                                 f"{waited:.0f} s; at most {LONGEST_WAIT:.0f} s "
                                                 f"and {MOST_TRIES} times)")
                raise HttpError(f"endpoint: {url}: the server refuses with status {answer.status}: "
                                f"{self._message(answer.body)}{limit}", answer.status)
            time.sleep(wait)
            waited += wait
        raise MeasureError(f"endpoint: {url}: expected an answer, but got {MOST_TRIES} redirects")

    def _once(self, url: str, data: bytes | None, timeout: float) -> _Answer:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data, headers)

        def ask() -> _Answer:
            try:
                with self._opener.open(request, timeout=timeout) as answer:
                    return _Answer(answer.status, answer.headers, answer.read(MOST_BYTES + 1))
            except urllib.error.HTTPError as error:
                with error:
                    return _Answer(error.code, error.headers, error.read(MOST_ERROR_BYTES))

        try:
            answer = _within(timeout, ask)
        except TimeoutError as error:
            raise MeasureError(f"endpoint: {url}: expected an answer within {timeout:g} s, but got "
                               "none") from error
        except OSError as error:
            reason = self.words(str(getattr(error, "reason", error)))
            raise MeasureError(f"endpoint: {url}: cannot reach the server: {reason}") from error
        except Exception as error:  # http.client's errors about broken answers
            raise MeasureError(f"endpoint: {url}: expected an answer, but got "
                               f"{type(error).__name__}: {self.words(str(error))}") from error
        if len(answer.body) > MOST_BYTES:
            raise MeasureError(f"endpoint: {url}: expected an answer of at most {MOST_BYTES} "
                               "bytes, but got more")
        return answer

    def _redirected(self, url: str, location: str, may_follow: bool) -> str:
        try:
            target = urllib.parse.urljoin(url, location)
            if may_follow and _origin(target) == _origin(url):
                return target
        except ValueError:  # not a URL
            target = location
        raise MeasureError(f"endpoint: {url}: expected an answer, but got a redirect to "
                           f"{self.words(target)}, which is not followed; expected as --endpoint "
                           "the URL of the server itself")

    def _object(self, url: str, body: bytes) -> dict[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise MeasureError(f"endpoint: {url}: expected a JSON object, but got "
                               f"{self.words(body.decode('utf-8', errors='replace'))!r}")
        return found

    def _message(self, body: bytes) -> str:
        """The server's words about an error, from the forms that servers use."""
        text = body.decode("utf-8", errors="replace")
        try:
            found = json.loads(text)
            for name in ("error", "message", "detail"):
                if isinstance(found, dict) and found.get(name):
                    found = found[name]
            return self.words(found if isinstance(found, str) else json.dumps(found))
        except (ValueError, RecursionError):
            return self.words(text)


def _key() -> str:
    key = os.environ.get(KEY, "").strip()
    if not all("!" <= c <= "~" for c in key):
        raise MeasureError(f"endpoint: {KEY}: expected printable letters of ASCII without spaces, "
                           "but got others")
    return key


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _seconds(retry_after: str | None) -> float | None:
    """Of a number or a date; None if it is neither."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after[:20])
    try:
        date = email.utils.parsedate_to_datetime(retry_after)
        return max(0.0, date.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _within(seconds: float, function: Callable[[], _Answer]) -> _Answer:
    """function(), in a thread that is left behind after `seconds`. Raises TimeoutError."""
    ended: queue.SimpleQueue = queue.SimpleQueue()

    def run() -> None:
        try:
            ended.put((function(), None))
        except BaseException as error:  # raised below
            ended.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        answer, error = ended.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return answer
