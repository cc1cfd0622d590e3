"""A session that is killed again and again, and the client that goes on with it.

Run as a program: ``python -m tests.duel.killing JOURNAL KILLS SEED ALGORITHM``. Each session is a
process of its own, forked from one that has everything loaded, so that a kill costs milliseconds.
The client answers through pipes and kills at random moments; after a kill it repeats the answer
that was not acknowledged. It prints one JSON object: what it meant to say, and what was
acknowledged.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any, cast

from fieldcorr.duel import Session
from fieldcorr.duel.terminal import JsonFront, converse, read_lines
from tests.duel.support import correlations

ARMS = 12
MATRIX = correlations(ARMS)


class NoStore:
    """Stands in for a store where only names of configurations are looked up."""

    def index_of(self, text: str) -> int:
        """Return the arm."""
        return int(text)

    def record(self, _name: str) -> dict[str, Any]:
        """Return nothing: no stimulator is described."""
        return {}


def serve(journal: Path, reading: int, writing: int) -> None:
    """Run one session on two pipes."""
    with Session.open(journal, MATRIX) as session, os.fdopen(reading) as stream:

        def write(text: str) -> None:
            os.write(writing, text.encode())

        converse(
            session, cast("Any", NoStore()), read_lines(stream), JsonFront(write), forgiving=False
        )


class Client:
    """Answers duels, remembers what was acknowledged, kills the session at random moments."""

    def __init__(self, journal: Path, seed: int) -> None:
        self.journal = journal
        self.rng = random.Random(seed)
        self.meant: list[str] = []
        self.acknowledged = 0
        self.unheard = 0  # answers sent and not acknowledged because of a kill
        self.repeated = 0  # of those, the ones that had been recorded all the same

    def session(self, *, kill: bool) -> None:
        """Start a session, answer some duels, end it by SIGKILL or by closing its input."""
        to_child, from_client = os.pipe()
        to_client, from_child = os.pipe()
        child = os.fork()
        if not child:
            os.close(from_client)
            os.close(to_client)
            serve(self.journal, to_child, from_child)
            os._exit(0)
        os.close(to_child)
        os.close(from_child)
        with os.fdopen(to_client) as heard:
            try:
                self.talk(child, heard, from_client, rounds=self.rng.randrange(4), kill=kill)
            finally:
                os.close(from_client)
                heard.read()
                os.waitpid(child, 0)

    def talk(self, child: int, heard: Any, said: int, *, rounds: int, kill: bool) -> None:
        """Answer ``rounds`` duels and leave; if killing, kill around the last answer."""
        if kill and self.rng.random() < 0.15:
            time.sleep(self.rng.uniform(0.0, 0.02))
            os.kill(child, signal.SIGKILL)
            return
        for number in range(rounds + 1):
            if self.acknowledged == len(self.meant):
                self.meant.append(self.rng.choice(["left", "right", "same", "skip"]))
            if not self.hear(heard, "ask"):
                return
            os.write(said, f"{len(self.meant)}: {self.meant[-1]}\n".encode())
            if kill and number == rounds:
                time.sleep(self.rng.choice([0.0, 0.0003, 0.001, 0.003]) * self.rng.random())
                os.kill(child, signal.SIGKILL)
            reply = self.hear(heard, "done")
            self.unheard += not reply
            if reply:
                self.acknowledged = len(self.meant)
                self.repeated += "already" in reply["text"]

    def hear(self, heard: Any, kind: str) -> dict[str, Any]:
        """Read until a complete line of this type; empty when the session is gone."""
        for line in heard:
            if line.endswith("\n"):
                said: dict[str, Any] = json.loads(line)
                if said["type"] == kind:
                    return said
        return {}


def main(journal: Path, kills: int, seed: int, algorithm: str) -> None:
    """Kill a session ``kills`` times, then let it end, and report."""
    # A tiny delta: nothing is ever eliminated, so there is always something to ask.
    settings = {"delta": 1e-9} if algorithm == "CorrDuel" else {}
    with Session.new(
        journal, MATRIX, horizon=10_000, algorithm=algorithm, settings=settings
    ) as session:
        warm = session.engine.fresh()
    warm.answer("left")
    warm.ask()
    client = Client(journal, seed)
    for _ in range(kills):
        client.session(kill=True)
    while client.acknowledged < len(client.meant) or not client.meant:
        client.session(kill=False)
    counts = {"unheard": client.unheard, "repeated": client.repeated}
    print(json.dumps({"meant": client.meant, **counts}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
