"""The session page: a whole session in a browser, and what must not get in."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import pytest

from fieldcorr.duel import Session
from fieldcorr.duel.commands import Actions, parse_command
from fieldcorr.duel.journal import read_journal
from fieldcorr.errors import DuelError
from fieldcorr.store import Store
from fieldcorr.web.server import open_port
from tests.web.test_web_report import findings

pytestmark = pytest.mark.slow  # a server in a process of its own takes seconds to begin

Answer = tuple[int, dict[str, str], bytes]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """``fieldcorr duel serve`` in a process of its own, which can be killed and started again."""

    def __init__(self, journal: Path, *options: str, stderr: IO[str] | None = None) -> None:
        self.journal, self.port, self._options = journal, free_port(), options
        self.start(stderr)

    def start(self, stderr: IO[str] | None = None) -> None:
        code = "from fieldcorr.cli import main; main()"
        words = ["duel", "serve", str(self.journal), "--port", str(self.port), *self._options]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        self.link = found[0]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body=body, headers=named)
        response = connection.getresponse()
        answer = response.status, dict(response.getheaders()), response.read()
        connection.close()
        return answer

    def cookie(self) -> str:
        split = urlsplit(self.link)
        status, headers, _ = self.request("GET", f"/?{split.query}")
        assert status == 303
        return headers["set-cookie"].split(";")[0]


def new_journal(store: Store, path: Path) -> Path:
    name = os.path.relpath(store.path, path.parent)
    with Session.new(path, store, horizon=60, seed=4, store_name=name):
        pass
    return path


@pytest.fixture
def server(store: Store, tmp_path: Path) -> Iterator[Server]:
    running = Server(new_journal(store, tmp_path / "page.journal"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def shared(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server for tests that do not mind what was answered before."""
    running = Server(new_journal(store, tmp_path_factory.mktemp("shared") / "x.journal"))
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def guarded(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server for requests that change nothing."""
    running = Server(new_journal(store, tmp_path_factory.mktemp("guarded") / "x.journal"))
    yield running
    running.stop()


def ready(page: Any, lines: int) -> None:
    page.wait_for_selector(f"body[data-ready='{lines}']")


def records(path: Path) -> list[dict[str, Any]]:
    """Return what a journal says, without when and where."""
    return [
        {key: value for key, value in record.items() if key not in ("time", "check")}
        for record in read_journal(path).records
    ]


# -- a session ------------------------------------------------------------------------------------

BUTTONS = {"left": "Left better", "right": "Right better", "same": "Same", "skip": "Skip"}
SAID = ["left", "right", "same", "skip", "right", "left"]


def test_a_session_of_thirty_answers(
    server: Server, store: Store, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    typed: list[str] = []
    page = open_page(server.link, ignored="Failed to load resource")  # while it is killed
    lines = 1
    ready(page, lines)

    def say(button: str, line: str) -> None:
        nonlocal lines
        page.get_by_role("button", name=button, exact=True).click()
        lines += 1
        ready(page, lines)
        typed.append(line)

    for k in range(30):
        if k == 6:
            page.reload()
            ready(page, lines)
        if k == 9:
            page.get_by_label("Led by").fill("C")
            page.get_by_label("Reason for undo or void").fill("wrong button")
            say("Undo", "undo wrong button actor=C")
            assert page.get_by_label("Reason for undo or void").input_value() == ""
        if k == 12:
            page.get_by_label("What").select_option("-")
            page.get_by_label("Contact").select_option("5")
            say("Exclude", "exclude contact 5-")
            page.get_by_label("What").select_option("right")
            page.get_by_label("Adverse event").fill("burning  foot")
            say("Keep the event and exclude at once", "adverse right burning foot actor=C")
            page.get_by_label("Of", exact=True).select_option("3")
            page.get_by_label("Ohm").fill("850")
            say("Keep", "impedance 3 850 actor=C")
        if k == 15:
            page.get_by_label("Amplitude, mA").fill("3.5")
            page.get_by_label("Rater").fill("B")
        if k == 18:
            server.kill()
            server.start()
            page.goto(server.link)
            ready(page, lines)
            page.get_by_label("Amplitude, mA").fill("3.5")
            assert page.get_by_label("Rater").input_value() == "B"
        answer = SAID[k % len(SAID)]
        meta = " amplitude_mA=3.5 rater=B" if k >= 15 else ""
        say(BUTTONS[answer], answer + meta)
    other = tmp_path / "python.journal"
    with Session.open(new_journal(store, other), store) as session:
        actions = Actions(session, store)
        for line in typed:
            actions.perform(parse_command(line))
    assert records(server.journal) == records(other)
    assert len(records(other)) == 34


def test_a_second_tab_sees_the_first(shared: Server, open_page: Callable[..., Any]) -> None:
    lines = read_journal(shared.journal).lines
    first = open_page(shared.link)
    ready(first, lines)
    second = first.context.new_page()
    second.goto(shared.link)
    ready(second, lines)
    first.get_by_role("button", name="Left better").click()
    ready(first, lines + 1)
    ready(second, lines + 1)
    assert second.get_by_text("The session went on in another window.").is_visible()
    assert second.locator(".candidate .name").all_inner_texts() == (
        first.locator(".candidate .name").all_inner_texts()
    )


def test_keys_answer_but_not_inside_a_field(shared: Server, open_page: Callable[..., Any]) -> None:
    lines = read_journal(shared.journal).lines
    page = open_page(shared.link)
    ready(page, lines)
    page.get_by_label("Note").press_sequentially("last left")
    page.keyboard.press("Tab")
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    ready(page, lines + 1)
    last = records(shared.journal)[-1]
    assert (last["answer"], last["meta"]) == ("right", {"note": "last left"})


def test_what_is_not_recorded_stays_in_its_field(
    server: Server, open_page: Callable[..., Any]
) -> None:
    page = open_page(server.link, ignored="Failed to load resource")  # while it is killed
    ready(page, 1)
    told = page.get_by_role("status").first
    page.get_by_label("Amplitude, mA").fill("3,5")
    page.get_by_label("Note").fill("warm")
    page.get_by_role("button", name="Left better").click()
    assert told.inner_text() == '"3,5" is no number. Nothing was recorded.'
    assert records(server.journal) == []
    page.get_by_label("Amplitude, mA").fill("3.5")
    server.kill()
    page.get_by_role("button", name="Left better").click()
    page.wait_for_selector(".told.wrong")
    assert page.get_by_label("Note").input_value() == "warm"
    server.start()
    page.goto(server.link)
    ready(page, 1)


def test_what_was_said_is_in_sight(guarded: Server, open_page: Callable[..., Any]) -> None:
    """On a small laptop, before anything is scrolled: the pair, the answers and the status."""
    page = open_page(guarded.link, width=1280)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.reload()
    ready(page, 1)
    page.get_by_role("button", name="Keep the event and exclude at once").click()
    page.evaluate("scrollTo(0, 0)")
    bottom = "e => e.getBoundingClientRect().bottom"
    dock = page.locator(".dock").evaluate("e => e.getBoundingClientRect().top")
    assert page.locator(".told").inner_text()
    assert page.locator(".told").evaluate(bottom) <= 720
    assert all(picture.evaluate(bottom) <= dock for picture in page.locator(".pictures").all())


def test_a_stale_answer_is_refused(shared: Server) -> None:
    lines = read_journal(shared.journal).lines
    cookie, origin = shared.cookie(), f"http://127.0.0.1:{shared.port}"
    kept = {"cookie": cookie, "origin": origin, "content_type": "application/json"}
    said = json.dumps({"lines": lines, "verb": "left", "words": [], "meta": {}})
    status, _, body = shared.request("POST", "/say", said, **kept)
    assert (status, json.loads(body)["lines"]) == (200, lines + 1)
    status, _, body = shared.request("POST", "/say", said, **kept)
    assert status == 409
    assert "not recorded" in json.loads(body)["problem"]
    assert read_journal(shared.journal).lines == lines + 1


def test_a_blinded_page_tells_nothing(store: Store, tmp_path: Path) -> None:
    server = Server(new_journal(store, tmp_path / "blind.journal"), "--blinded")
    try:
        _, _, body = server.request("GET", "/state", cookie=server.cookie())
        assert not {"ranked", "belief"} & set(json.loads(body))
        assert server.request("GET", "/report", cookie=server.cookie())[0] == 403
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_session_is_for_everyone(
    guarded: Server, open_page: Callable[..., Any], width: int, scheme: str
) -> None:
    page = open_page(guarded.link, width=width, color_scheme=scheme, bypass_csp=True)
    ready(page, 1)
    page.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert findings(page) == []


def test_the_report_is_served(guarded: Server, open_page: Callable[..., Any]) -> None:
    page = open_page(guarded.link)
    ready(page, 1)
    page.goto(f"http://127.0.0.1:{guarded.port}/report")
    page.wait_for_selector("body[data-ready]")
    assert "Session" in page.locator("h2").first.inner_text()


# -- what must not get in -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 401),
        ("/state", {}, 401),
        ("/data", {"cookie": "fieldcorr=x"}, 401),
        ("/?token=wrong", {}, 403),
        ("/?token=", {}, 403),
        ("/", {"host": "evil.example"}, 421),
        ("/state", {"host": "127.0.0.1"}, 421),
        ("/?token=wrong", {"host": "evil.example:80"}, 421),
    ],
)
def test_strangers_are_refused(
    guarded: Server, path: str, headers: dict[str, str], status: int
) -> None:
    found, told, body = guarded.request("GET", path, **headers)
    assert found == status
    assert b"fieldcorr" in body or b"here" in body
    assert "default-src 'none'" in told["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/%2e%2e/server.py", "/server.py", "//etc/passwd", "/..%2fdata.py",
     "/core.js/../../store/reader.py", "/\\..\\server.py", "/page.css%00", "/session.html"],
)  # fmt: skip
def test_no_other_file_is_reachable(guarded: Server, path: str) -> None:
    assert guarded.request("GET", path, cookie=guarded.cookie())[0] == 404


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"origin": "http://evil.example"}, "{}", 403),
        ({"origin": "null"}, "{}", 403),
        ({"origin": ""}, "{}", 403),
        ({"content_type": "text/plain"}, "{}", 415),
        ({"content_type": "application/x-www-form-urlencoded"}, "a=b", 415),
        ({}, "{", 400),
        ({}, "[" * 9000, 400),
        ({}, "[]", 400),
        ({}, '{"lines": true, "verb": "left"}', 400),
        ({}, '{"lines": 1, "verb": "quit"}', 400),
        ({}, '{"lines": 1, "verb": ["left"]}', 400),
        ({}, '{"lines": 1, "verb": "left", "more": 1}', 400),
        ({}, '{"lines": 1, "verb": "left", "meta": {"a": {}}}', 400),
        ({}, '{"lines": 1, "verb": "left", "meta": {"a": "\\ud800"}}', 400),
        ({}, '{"lines": 1, "verb": "left", "meta": {"a": NaN}}', 400),
        ({}, '{"lines": 1, "verb": "left", "meta": {"a": -1e400}}', 400),
        ({}, '{"lines": 1, "verb": "exclude", "words": ["left", "above", "nan"]}', 422),
        ({}, '{"lines": 1, "verb": "note", "words": [1]}', 400),
        ({}, '{"lines": 1, "verb": "exclude", "words": ["contact", "99"]}', 422),
        ({}, '{"lines": 0, "verb": "left"}', 409),
        ({}, " " * 20_000, 413),
    ],
)
def test_bad_words_are_refused(
    guarded: Server, headers: dict[str, str], body: str, status: int
) -> None:
    kept = {
        "cookie": guarded.cookie(),
        "origin": f"http://127.0.0.1:{guarded.port}",
        "content_type": "application/json",
    }
    assert guarded.request("POST", "/say", body, **(kept | headers))[0] == status
    assert records(guarded.journal) == []


def test_the_cookie_is_for_this_page_alone(guarded: Server) -> None:
    _, headers, _ = guarded.request("GET", f"/?{urlsplit(guarded.link).query}")
    said = headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert urlsplit(guarded.link).query.partition("=")[2].lower() not in said


def test_it_listens_on_loopback_alone() -> None:
    with open_port(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        with pytest.raises(DuelError, match="cannot be used"):
            open_port(listening.getsockname()[1])


def test_a_thousand_requests_at_once(guarded: Server) -> None:
    head = f"GET /state HTTP/1.1\r\nHost: 127.0.0.1:{guarded.port}\r\nConnection: close\r\n"
    text = f"{head}Cookie: {guarded.cookie()}\r\n\r\n".encode()

    async def one() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", guarded.port)
        writer.write(text)
        answer = await reader.read()
        writer.close()
        return answer

    async def all_at_once() -> list[bytes]:
        return await asyncio.gather(*(one() for _ in range(1000)))

    with ThreadPoolExecutor(1) as pool:  # the browser's driver has a loop in this thread
        answers = pool.submit(asyncio.run, all_at_once()).result()
    assert {answer.split(b"\r\n", 1)[0] for answer in answers} == {b"HTTP/1.1 200 OK"}


def test_a_second_server_is_refused(guarded: Server) -> None:
    words = ["-m", "fieldcorr", "duel", "serve", str(guarded.journal)]
    run = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "in use by another process" in run.stderr
