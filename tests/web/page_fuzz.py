"""Requests that no page would send, by seed, and what must hold after each of them.

A session page runs as ``fieldcorr duel serve`` does. It is sent answers, stale answers, races of
answers, wrong types, broken JSON, bodies beyond any size, foreign headers, cut connections and
noise. After every request the journal holds what was acknowledged, in this order, and nothing else.
"""

import json
import re
import socket
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fieldcorr.duel import Session
from fieldcorr.duel.commands import VERBS, Actions, Command
from fieldcorr.store import open_store
from tests.damage import ODD, ODD_TEXTS, damaged
from tests.store.mutations import Rng
from tests.store.synthetic import make_store, values
from tests.web.test_web_session import Server, records

AT_ONCE = 250
"""Requests to one session; then another begins."""

ANSWERS = ("left", "right", "same", "skip")
WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "exclude": (("right", "above", "0.9"), ("contact", "3"), ("3-",), ("0-", "1+"), ()),
    "include": (("3-",), ("contact", "3"), ("left",)),
    "compare": (("0-", "1+", "with", "1-", "0+"), ("with",), ("0-", "1+", "with", "0-", "1+")),
    "rank": (("0-", "1+", ">", "1-", "0+"), (">", ">"), ("0-", "1+")),
    "horizon": (("500",), ("1",), ("10",), ("99999",), ("-1",)),
    "void": (("1",), ("2",), ("0",), ("²",)),
    "note": (("größer \u2028 \x1b[2J",), ("x" * 2000,), ("",)),
}
METAS: tuple[dict[str, Any], ...] = (
    {}, {}, {"amplitude_mA": 3.2}, {"rater": "B"}, {"größe": "²", "n": 10**30, "x": -0.0},
    {"x": float("nan")}, {"n": 10**400},
)  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "left")
PATHS = (
    "/", "/say", "/state", "/state?lines=", "/state?lines=1e9", "/data", "/report", "/core.js",
    "/?token=", "/?token=%00", "/%", "/%ff", "/../say", "//say", "/say/", "/" + 9000 * "x", "*",
    "http://evil.example/say", "/say?lines=1#x", "/\u00b2",
)  # fmt: skip
HEADERS = (
    ("host", "evil.example"), ("host", ""), ("origin", "null"), ("origin", "http://evil.example"),
    ("cookie", "fieldcorr=x"), ("cookie", "=;;="), ("content-type", "text/plain"),
    ("content-type", "application/json; charset=utf-7"), ("content-length", "-1"),
    ("content-length", "1e3"), ("content-length", "9" * 30), ("transfer-encoding", "gzip"),
    ("transfer-encoding", "chunked"), ("expect", "100-continue"), ("range", "bytes=0-0,5-"),
    ("upgrade", "websocket"), ("connection", "upgrade"), ("x", "\u00b2" * 100), ("x", "y" * 70_000),
    ("accept-encoding", "\x7f"), ("x-forwarded-for", "1.1.1.1"), ("if-none-match", "*"),
)  # fmt: skip
BODIES = (
    b"", b"null", b"{", b"[" * 9000, b'{"a":' * 2000, b"\xff\xfe{}", b"\0" * 100, b"NaN",
    b"[" * 200_000, b" " * 3_000_000, b"9" * 5000, b'"\\ud800"', b"{}" * 5,
)  # fmt: skip


class Reply(NamedTuple):
    """What came back: status 0 if nothing did."""

    status: int
    body: bytes


class Page:
    """A running session page, and what it has acknowledged."""

    def __init__(self, store: Path, folder: Path, engine: str) -> None:
        self.store, self._folder, self._engine = store, folder, engine
        self._log = folder / "log.txt"
        self.acknowledged: list[Command] = []
        with self._log.open("w") as log:
            self.server = Server(self._new(folder / "page.journal"), stderr=log)
        self.cookie = self.server.cookie()

    def _new(self, journal: Path) -> Path:
        settings = {"delta": 1e-9} if self._engine == "CorrDuel" else {}  # there is always a pair
        with open_store(self.store) as store:
            Session.new(
                journal, store, horizon=500, seed=4, algorithm=self._engine, settings=settings,
                store_name=self.store.name,
            ).close()  # fmt: skip
        return journal

    @property
    def lines(self) -> int:
        """Number of lines that the journal has by what was acknowledged."""
        return 1 + len(self.acknowledged)

    def head(self, method: str, path: str, *more: tuple[str, str]) -> bytes:
        """Return a request without its body; headers that are given replace those of the page."""
        own = f"127.0.0.1:{self.server.port}"
        kept = {
            "host": own, "origin": f"http://{own}", "cookie": self.cookie,
            "content-type": "application/json",
        }  # fmt: skip
        replaced = [(n, v) for n, v in kept.items() if n not in dict(more)]
        lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in [*replaced, *more])]
        return "\r\n".join([*lines, "connection: close", "", ""]).encode("utf-8")

    def said(self, body: bytes) -> bytes:
        """Return the request that says something."""
        return self.head("POST", "/say", ("content-length", str(len(body)))) + body

    def send(self, request: bytes, *, listen: bool = True) -> Reply:
        """Send bytes and hear what comes back until the end."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=300) as link:
            heard = b""
            try:
                link.sendall(request)
                link.shutdown(socket.SHUT_WR)
                while listen and (part := link.recv(65536)):
                    heard += part
            except TimeoutError:
                raise
            except OSError:
                pass  # refused before all of it was sent
        heard = heard.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")  # where it was asked for
        head, _, body = heard.partition(b"\r\n\r\n")
        found = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
        return Reply(int(found[1]) if found else 0, body)

    def judged(self, request: bytes, reply: Reply) -> None:
        """Take down what was acknowledged, and refuse an answer that is none.

        What was recorded while the connection was lost counts as acknowledged: a page that hears
        nothing looks again.
        """
        assert reply.status < 500, (request[:1000], reply)
        if reply.status == 0:
            reply = self.send(self.head("GET", f"/state?lines={self.lines}"))
        if request.startswith(b"POST /say ") and reply.status == 200:
            said = json.loads(self._body_of(request))
            command = said["verb"], tuple(said.get("words", [])), said.get("meta", {})
            self.acknowledged.append(Command(*command))
            assert json.loads(reply.body)["lines"] == self.lines, (request[:1000], reply.body[:100])
        now = self.send(self.head("GET", f"/state?lines={self.lines}"))
        assert now.status == 204, (request[:1000], reply.status, now.status)

    @staticmethod
    def _body_of(request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        return body[: int(length[1]) if length else 0]

    def close(self) -> None:
        """Stop, and compare the journal with another one of all that was acknowledged."""
        assert self.server.stop() == 0
        log = self._log.read_text()
        assert "Traceback" not in log, log
        assert all(letter.isprintable() or letter == "\n" for letter in log), log
        other = self._folder / "other.journal"
        with open_store(self.store) as store, Session.open(self._new(other), store) as session:
            actions = Actions(session, store)
            for command in self.acknowledged:
                actions.perform(command)
        assert records(self.server.journal) == records(other)


def proper(page: Page, rng: Rng) -> dict[str, Any]:
    """Return something that the page might say, more or less."""
    verb = str(rng.choice([*ANSWERS, *ANSWERS, "undo", *WORDS]))
    words = WORDS.get(verb, ((),))
    return {
        "lines": page.lines,
        "verb": verb,
        "words": words[rng.integers(len(words))],
        "meta": METAS[rng.integers(len(METAS))],
    }


def encoded(said: Any) -> bytes:
    """Return JSON, with NaN and infinity as Python writes them."""
    return json.dumps(said).encode()


def an_answer(page: Page, rng: Rng) -> bytes:
    return page.said(encoded(proper(page, rng)))


def stale(page: Page, rng: Rng) -> bytes:
    """Return an answer to another question."""
    lines = page.lines + int(rng.choice([-2, -1, 1, 2, 10**6]))
    return page.said(encoded(proper(page, rng) | {"lines": lines}))


def wrong_type(page: Page, rng: Rng) -> bytes:
    said = proper(page, rng)
    odd = (*ODD, *ODD_TEXTS, float("nan"), float("inf"), 10**400, "\ud800", *VERBS)[
        rng.integers(len(ODD) + len(ODD_TEXTS) + 4 + len(VERBS))
    ]
    key = str(rng.choice(["lines", "verb", "words", "meta", "more", "word", "value", "key"]))
    inside: dict[str, dict[str, Any]] = {
        "word": {"words": [odd]},
        "value": {"meta": {"a": odd}},
        "key": {"meta": {str(odd): 1}},
    }
    return page.said(encoded(said | inside.get(key, {key: odd})))


def broken_json(page: Page, rng: Rng) -> bytes:
    return page.said(damaged(encoded(proper(page, rng)), rng))


def odd_body(page: Page, rng: Rng) -> bytes:
    body = BODIES[rng.integers(len(BODIES))]
    if rng.integers(2):
        return page.said(body)
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)  # an empty body is its own end
    return page.head("POST", "/say", ("transfer-encoding", "chunked")) + chunks


def foreign(page: Page, rng: Rng) -> bytes:
    """Return another method, another path, other headers."""
    method = str(rng.choice(METHODS)) if rng.integers(2) else "GET"
    more = [HEADERS[k] for k in rng.choice(len(HEADERS), rng.integers(0, 4))]
    return page.head(method, PATHS[rng.integers(len(PATHS))], *more)


def foreign_say(page: Page, rng: Rng) -> bytes:
    """Return an answer under headers that a page does not send."""
    body = encoded(proper(page, rng))
    more = (HEADERS[k] for k in rng.choice(len(HEADERS), rng.integers(1, 4)))
    return page.head("POST", "/say", ("content-length", str(len(body))), *more) + body


def cut(page: Page, rng: Rng) -> bytes:
    """Return an answer without its end."""
    request = an_answer(page, rng)
    return request[: -int(rng.integers(1, len(request)))]


def noisy(page: Page, rng: Rng) -> bytes:
    return damaged(an_answer(page, rng), rng)


def noise(page: Page, rng: Rng) -> bytes:
    del page
    return rng.bytes(int(rng.integers(1, 5000)))


KINDS: tuple[Callable[[Page, Rng], bytes], ...] = (
    an_answer, stale, wrong_type, broken_json, odd_body, foreign, foreign_say, cut, noisy, noise,
)  # fmt: skip


def race(page: Page, rng: Rng) -> None:
    """Say several things about one question at the same moment: one of them counts."""
    requests = [page.said(encoded(proper(page, rng) | {"words": []})) for _ in range(4)]
    with ThreadPoolExecutor(len(requests)) as pool:
        replies = list(pool.map(page.send, requests))
    heard = [(q, r) for q, r in zip(requests, replies, strict=True) if r.status == 200]
    assert len(heard) <= 1, replies
    for request, reply in heard or [(b"", replies[0])]:
        page.judged(request, reply)


def unheard(page: Page, rng: Rng) -> None:
    """Go away after an answer, then say it again: it counts once."""
    request = an_answer(page, rng)
    page.send(request, listen=False)
    reply = page.send(request)
    page.judged(request, Reply(0, b"") if reply.status == 409 else reply)


def attempt(page: Page, seed: int) -> None:
    """Send what a seed says."""
    rng = np.random.default_rng(seed)
    kind = int(rng.integers(len(KINDS) + 2))
    if kind >= len(KINDS):
        (race, unheard)[kind - len(KINDS)](page, rng)
        return
    request = KINDS[kind](page, rng)
    page.judged(request, page.send(request))


def try_requests(
    first: int, last: int, folder: Path, engines: tuple[str, ...] = ("BayesDuel", "CorrDuel")
) -> Iterator[str]:
    """Send the requests ``first`` to ``last``; yield what went wrong."""
    store = make_store(folder / "a.h5", values(slim=True, count=60))
    for number, start in enumerate(range(first, last, AT_ONCE)):
        place = folder / str(number)
        place.mkdir()
        (place / "a.h5").hardlink_to(store)
        page = Page(place / "a.h5", place, engines[number % len(engines)])
        try:
            for seed in range(start, min(start + AT_ONCE, last)):
                attempt(page, seed)
            page.close()
        except Exception:
            page.server.kill()
            yield f"requests from seed {start} on: {traceback.format_exc()}"
