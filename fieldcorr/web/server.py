"""The session page: a small server on loopback, whose only state is the journal.

Starlette and uvicorn rather than the standard library's server: they parse HTTP strictly, bound
what a request may send, and run everything that touches the engine on one loop, one at a time.
Nothing is reachable but the few files of the page and the session itself.
"""

import hmac
import json
import secrets
import socket
from typing import TYPE_CHECKING, Any

from fieldcorr.duel.commands import VERBS, Actions, Command
from fieldcorr.duel.session import Session, read_session
from fieldcorr.errors import ConfigurationError, DuelError, JournalError, missing_extra
from fieldcorr.web.assets import asset
from fieldcorr.web.data import page_data
from fieldcorr.web.report import report_page
from fieldcorr.web.sessions import Record, state_record

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise missing_extra("the session page", "starlette and uvicorn", "serve") from error

if TYPE_CHECKING:
    from fieldcorr.store import Store

LOOPBACK = "127.0.0.1"
MOST_BYTES = 16_384
"""Of what a page may send at once."""
MOST_TEXT = 2_000
MOST_NUMBER = 1e300
BACKLOG = 1024
FILES = {
    "page.css": "text/css",
    **dict.fromkeys(
        ("core.js", "dom.js", "section.js", "picker.js", "report.js", "session.js"),
        "text/javascript",
    ),
}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Refused(Exception):
    """A request that is not answered; the status says why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Guard:
    """Lets through only what comes from this page: Host, Origin and cookie must be its own.

    A foreign Host is a name that someone has pointed at this machine (DNS rebinding), a foreign
    Origin another page in the same browser.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app = app
        self._hosts = {f"{LOOPBACK}:{port}", f"localhost:{port}"}
        self._token = token
        self._cookie, self._secret = f"fieldcorr-{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is refused, hand on the rest."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = {name for name, _ in message["headers"]}
                added = [(name.encode(), text.encode()) for name, text in HEADERS.items()]
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in added if pair[0] not in kept),
                ]
            await send(message)

        try:
            answer = self._answer(Request(scope)) or self._app
        except Refused as refused:
            answer = PlainTextResponse(f"{refused}\n", status_code=refused.status)
        await answer(scope, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        """Return a redirection with the cookie for the link, None for a request of the page."""
        host = request.headers.get("host", "")
        if host not in self._hosts:
            raise Refused(421, "this address is not served here")
        if request.method not in ("GET", "HEAD"):
            if request.headers.get("origin") != f"http://{host}":
                raise Refused(403, "only the page itself may send something")
            if request.headers.get("content-type") != "application/json":
                raise Refused(415, "only JSON is understood")
        if request.url.path == "/" and "token" in request.query_params:
            if not _same(request.query_params["token"], self._token):
                raise Refused(403, "this link is not valid: open the one that fieldcorr printed")
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict")
            return answer
        if not _same(request.cookies.get(self._cookie, ""), self._secret):
            raise Refused(401, "open the link that fieldcorr printed when it was started")
        return None


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


class SessionPage:
    """What the page asks and says; every answer is the state after it."""

    def __init__(self, session: Session, store: "Store", *, blinded: bool = False) -> None:
        self._session, self._store, self._blinded = session, store, blinded
        self._actions = Actions(session, store)
        data = page_data(store, self._actions.stimulation)
        self._data = json.dumps(data, separators=(",", ":")).encode()

    def app(self, *, port: int, token: str) -> ASGIApp:
        """Return the guarded application for this port."""
        routes = [
            Route("/", self._page),
            Route("/data", self._store_data),
            Route("/state", self._state),
            Route("/say", self._say, methods=["POST"]),
            Route("/report", self._report),
            Route("/{name}", self._file),
        ]
        return Guard(Starlette(routes=routes), port=port, token=token)

    def state(self) -> Record:
        """Return where the session stands."""
        return state_record(self._session, self._store, blinded=self._blinded)

    async def _page(self, _: Request) -> Response:
        return Response(asset("session.html"), media_type="text/html")

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in FILES:
            return PlainTextResponse("there is no such page\n", status_code=404)
        return Response(asset(name), media_type=FILES[name])

    async def _store_data(self, _: Request) -> Response:
        return Response(self._data, media_type="application/json")

    async def _state(self, request: Request) -> Response:
        if request.query_params.get("lines") == str(self._session.journal.lines):
            return Response(status_code=204)
        return JSONResponse(self.state())

    async def _say(self, request: Request) -> Response:
        try:
            command, lines = _command(await _body(request))
            if lines != self._session.journal.lines:
                raise Refused(409, "the session has moved on: not recorded, look again")
            told = self._actions.perform(command)
        except Refused as refused:
            return self._problem(refused.status, str(refused))
        except JournalError as error:
            return self._problem(500, f"{error}; nothing more is recorded: start fieldcorr again")
        except (DuelError, ConfigurationError) as error:
            return self._problem(422, str(error))
        return JSONResponse(self.state() | {"told": told})

    def _problem(self, status: int, text: str) -> Response:
        state = {} if status == 500 else self.state()
        return JSONResponse(state | {"problem": text}, status_code=status)

    async def _report(self, _: Request) -> Response:
        if self._blinded and not self._session.engine.done:
            return PlainTextResponse("blinded: no report before the end\n", status_code=403)
        page = await run_in_threadpool(self._report_text)
        # The page brings a policy of its own, by hashes, in its head.
        policy = "frame-ancestors 'none'"
        return Response(page, media_type="text/html", headers={"content-security-policy": policy})

    def _report_text(self) -> str:
        return report_page(self._store, read_session(self._session.journal.path, self._store))


async def _body(request: Request) -> Any:
    data = b""
    try:
        async for part in request.stream():
            data += part
            if len(data) > MOST_BYTES:
                raise Refused(413, f"more than {MOST_BYTES} bytes")
        return json.loads(data)
    except ClientDisconnect as error:
        raise Refused(400, "cut before its end") from error
    except (ValueError, RecursionError) as error:
        raise Refused(400, "this is no JSON") from error


def _command(said: object) -> tuple[Command, int]:
    """Read what a page says: {"lines", "verb", "words", "meta"}; refuse anything else."""
    if not isinstance(said, dict) or not set(said) <= {"lines", "verb", "words", "meta"}:
        raise Refused(400, "not what this page says")
    lines, verb = said.get("lines"), said.get("verb")
    words, meta = said.get("words", []), said.get("meta", {})
    if verb not in VERBS or verb in ("help", "quit") or type(lines) is not int:
        raise Refused(400, "not what this page says")
    if not isinstance(words, list) or not all(_is_text(word) for word in words):
        raise Refused(400, "words: short texts are needed")
    if not isinstance(meta, dict) or not all(
        _is_text(key) and (_is_text(value) or _is_number(value)) for key, value in meta.items()
    ):
        raise Refused(400, "meta: short texts and numbers are needed")
    return Command(str(verb), tuple(words), meta), lines


def _is_text(value: object) -> bool:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_number(value: Any) -> bool:
    """Tell whether a value is a number that a journal can keep, neither infinite nor NaN."""
    return type(value) in (int, float) and abs(value) < MOST_NUMBER


def open_port(port: int) -> socket.socket:
    """Return a socket that listens on loopback alone; port 0 is any that is free."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen(BACKLOG)  # the link is good from the moment that it is printed
    except (OSError, OverflowError) as error:
        listening.close()
        raise DuelError(f"port {port}: cannot be used: {error}") from error
    return listening


def serve(page: SessionPage, listening: socket.socket, token: str) -> None:
    """Serve until the process is told to stop."""
    app = page.app(port=listening.getsockname()[1], token=token)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        backlog=BACKLOG,
    )
    uvicorn.Server(config).run(sockets=[listening])


def link(listening: socket.socket, token: str) -> str:
    """Return what to open in a browser."""
    return f"http://{LOOPBACK}:{listening.getsockname()[1]}/?token={token}"


def new_token() -> str:
    """Return the secret of a link."""
    return secrets.token_urlsafe(24)
