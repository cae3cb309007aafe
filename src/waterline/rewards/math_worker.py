"""The program that understands mathematics: ``python -m waterline.rewards.math_worker``.

It reads one JSON object a line, ``{"gold": …, "answer": …, "seconds": …}``, and answers each with
one line, ``{"verdict": …}``, after a first line ``{"ready": true}``. A child of it does the work
and may hang or die at any input: the kernel ends it after its seconds of processor time, so that a
busy machine changes no verdict, this program where it waits for ten times as long, and an
allocation fails when it uses too much memory. The next child is forked with all libraries loaded,
by a program with one thread, in milliseconds.
"""

import json
import multiprocessing
import os
import resource
import signal
import sys
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any

PATIENCE = 10  # seconds waited, for each of processor time
MEMORY_BYTES = 2 * 1024**3


def _parse(text: str) -> list[Any]:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse

    return list(
        parse(text, [LatexExtractionConfig(), ExprExtractionConfig()], parsing_timeout=None)
    )


_parse_gold = lru_cache(maxsize=4_096)(_parse)


def _far_apart(gold: Any, answer: Any) -> bool:
    """Two numbers that differ by more than rounding; absolute rounding would miss tiny ones."""
    if not (getattr(gold, "is_number", False) and getattr(answer, "is_number", False)):
        return False
    difference, scale = abs((gold - answer).evalf(30)), abs(gold.evalf(30))
    return bool(difference > 1e-5 * scale)


def compare(gold: str, answer: str) -> str:
    """The verdict on ``answer`` by Math-Verify; both are texts with one marked answer."""
    from math_verify import verify

    golds = _parse_gold(gold)
    if not golds:
        return "error"
    answers = _parse(answer)
    if not answers:
        return "unparseable"
    if not verify(golds, answers, timeout_seconds=None):
        return "wrong"
    return "wrong" if _far_apart(golds[0], answers[0]) else "correct"


def _serve(ours: Connection, theirs: Connection) -> None:
    """The child: judge one request after another, within the limits of each."""
    ours.close()  # or the child would keep its own requests open when the program is gone
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    while True:
        request = json.loads(theirs.recv_bytes())
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])  # it ends the process
        try:
            verdict = compare(request["gold"], request["answer"])
        except MemoryError:
            verdict = "timeout"
        except Exception:  # the libraries raise nearly anything at odd input
            verdict = "unparseable"
        signal.setitimer(signal.ITIMER_PROF, 0)
        theirs.send_bytes(json.dumps({"verdict": verdict}).encode() + b"\n")


class _Child:
    """A forked copy of this program that serves until it is killed."""

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        fork = multiprocessing.get_context("fork")
        self.process = fork.Process(target=_serve, args=(self.pipe, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, line: bytes, seconds: float) -> bytes | None:
        """The child's reply, or None when it used ``seconds`` of processor time or has died."""
        try:
            self.pipe.send_bytes(line)
            return self.pipe.recv_bytes() if self.pipe.poll(PATIENCE * seconds) else None
        except (OSError, EOFError):
            return None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def main() -> None:
    """Serve until the input ends."""
    # Libraries may print: only this program's own copy of the output leads to the parent.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    compare(r"\boxed{\frac{1}{2}}", r"\boxed{\sqrt{2}}")  # load the libraries before any clock runs
    replies.write(b'{"ready": true}\n')
    replies.flush()
    child = _Child()
    for line in sys.stdin.buffer:
        reply = child.ask(line, json.loads(line)["seconds"])
        if reply is None:
            child.end()
            child = _Child()
            reply = b'{"verdict": "timeout"}\n'
        replies.write(reply)
        replies.flush()
    child.end()


if __name__ == "__main__":
    main()
