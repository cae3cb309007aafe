"""The program that understands mathematics: ``python -m waterline.rewards.math_worker``.

It reads one JSON object a line, ``{"gold": …, "answer": …, "seconds": …}``, and answers each with
one line, ``{"verdict": …}``, after a first line ``{"ready": true}``. A child of it does the work
and may hang or die at any input: this program kills it when its time is over, the kernel when it
uses too much processor time, and an allocation fails when it uses too much memory. The next child
is forked with all libraries loaded, by a program with one thread, in milliseconds.
"""

import contextlib
import json
import os
import resource
import select
import signal
import sys
from functools import lru_cache
from typing import Any, BinaryIO

CPU_SECONDS = 3
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


def _serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """The child: judge one request after another, within the limits of each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for line in requests:
        request = json.loads(line)
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + CPU_SECONDS + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        try:
            verdict = compare(request["gold"], request["answer"])
        except MemoryError:
            verdict = "timeout"
        except Exception:  # the libraries raise nearly anything at odd input
            verdict = "unparseable"
        replies.write(json.dumps({"verdict": verdict}).encode() + b"\n")
        replies.flush()


class _Child:
    """A forked copy of this program that serves until it is killed."""

    def __init__(self) -> None:
        request_read, request_write = os.pipe()
        reply_read, reply_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(request_write)
            os.close(reply_read)
            try:
                _serve(os.fdopen(request_read, "rb"), os.fdopen(reply_write, "wb"))
            finally:
                os._exit(1)
        os.close(request_read)
        os.close(reply_write)
        self.requests, self.replies = os.fdopen(request_write, "wb"), os.fdopen(reply_read, "rb")

    def ask(self, line: bytes, seconds: float) -> bytes | None:
        """The child's reply, or None when it took too long or has died."""
        try:
            self.requests.write(line)
            self.requests.flush()
        except OSError:
            return None
        if not select.select([self.replies], [], [], seconds)[0]:
            return None
        return self.replies.readline() or None

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.replies.close()
        with contextlib.suppress(OSError):  # unsent bytes to a dead process
            self.requests.close()


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
