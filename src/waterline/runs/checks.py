"""Errors that a user can act on, and how an entry point shows them."""

import difflib
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from waterline.runs.terminal import file_fault, steady_streams


class BadInput(ValueError):
    """Input that a user can fix; its message is one sentence: what, where, and what to do."""


class RunFailed(RuntimeError):
    """A run cannot go on, and its input is not the reason; its message is one sentence."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> BadInput:
    """The error for a name that is not among the known ones, with the nearest of them.

    Args:
        what: What was named, such as ``"method"``.
        name: The name that was given.
        known: The names that exist.
    """
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=1)
    hint = f"did you mean {near[0]!r}" if near else "choose one"
    return BadInput(f"There is no {what} {name!r}: {hint} (known: {', '.join(choices) or 'none'}).")


@contextmanager
def as_bad_input(path: str = "") -> Iterator[None]:
    """Turn a ValueError into :class:`BadInput`: for set-up, where a wrong value is the user's.

    ``path`` is the node of the configuration that is read: a message that begins with a setting
    of it, as ``discount=2: …`` does, then begins with the whole path of the setting.
    """
    try:
        yield
    except ValueError as error:
        if isinstance(error, BadInput) and not path:
            raise
        text = str(error)
        if path and not text.startswith(path):
            text = f"{path}{'.' if re.match(r'[A-Za-z_]+=', text) else ': '}{text}"
        raise BadInput(text) from error


@contextmanager
def sentence_errors() -> Iterator[None]:
    """Print an error that explains itself as one line on stderr, without a traceback.

    :class:`BadInput` exits with status 2, :class:`RunFailed` with status 1; so do errors of files,
    see :func:`file_fault`.

    A context manager rather than a decorator, since Hydra finds the configuration next to the
    file in which its task function is defined, and a wrapper would be defined here.
    """
    steady_streams()
    try:
        yield
    except (BadInput, RunFailed) as error:
        _end(str(error), 2 if isinstance(error, BadInput) else 1)
    except MemoryError as error:
        reason = str(error).rstrip(".") or "no more to be had"
        _end(f"Not enough memory ({reason}): take smaller sizes, or a machine with more.", 1)
    except OSError as error:
        if (fault := file_fault(error)) is None:
            raise
        _end(*fault)


def _end(sentence: str, status: int) -> NoReturn:
    print(f"error: {sentence}", file=sys.stderr, flush=True)
    raise SystemExit(status) from None
