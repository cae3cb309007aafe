"""The part of a response that is final: after its thinking, before its end token."""

import re
from functools import lru_cache

from waterline.rewards.answers.symbols import plain_characters

_END = re.compile(
    r"<\|(?:im_end|endoftext|end_of_text|eot_id|eom_id|end▁of▁sentence)\|>"
    r"|</s>|<eos>|<end_of_turn>"
)
_TOKEN = re.compile(r"<\|[^<>|\s]{1,40}\|>|<(?:s|bos|pad|start_of_turn)>")
_FIRST = re.compile(rf"\s*(?:(?:{_END.pattern}|{_TOKEN.pattern})\s*)*")
_THINKING = re.compile(
    r"<(/?)(?:\w+:)?(?:think|thinking|thought|reasoning)>|\[(/?)THINK\]|◁(/?)think▷", re.IGNORECASE
)
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)(?:</answer>|\Z)", re.IGNORECASE | re.DOTALL)


# It is asked for up to three times for one response.
@lru_cache(maxsize=16)
def final_text(response: str) -> str:
    """What a response says in the end, with plain characters; '' when it was still thinking.

    Nothing counts that stands before the last end of thinking (``</think>``, ``</thinking>``,
    ``</reasoning>``, ``[/THINK]``), when thinking begins again and does not end, or behind an end
    token (``<|im_end|>``, ``</s>``, …), after which nobody reads. Where there are ``<answer>``
    groups, the last one counts alone; a stop string may have cut its end off.
    """
    text = plain_characters(response)
    # Some models begin with the token that ends others.
    text = _END.split(text[_FIRST.match(text).end() :], maxsplit=1)[0]  # type: ignore[union-attr]
    begin = 0
    thinks = False
    for tag in _THINKING.finditer(text):
        begin = tag.end()
        thinks = "/" not in tag.groups()
    text = "" if thinks else _TOKEN.sub(" ", text[begin:])
    answers = [answer for answer in _ANSWER.findall(text) if answer.strip()]
    return answers[-1] if answers else text
