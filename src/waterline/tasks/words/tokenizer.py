"""A compact tokenizer with a chat template, as language models have it."""

import re
from functools import lru_cache
from string import Formatter
from typing import TYPE_CHECKING

import waterline.tasks.words.problems as problems

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, START, END = "<pad>", "<|im_start|>", "<|im_end|>"
INSTRUCTION = "Let's think step by step and output the final answer within \\boxed{}."
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# A word with the blank before it, a digit, a blank before a digit, or any other character; so
# numbers are read digit by digit, as SmolLM2 reads them.
PIECES = r"\\boxed\{| ?[A-Za-z']+|[0-9]| (?=[0-9])|[^A-Za-z0-9]"


@lru_cache(maxsize=1)
def word_tokenizer() -> "PreTrainedTokenizerFast":
    """One piece, one token: every word that a problem can hold, digits, signs and roles.

    Decoding gives the text back to the letter, for text that the problems are made of; what else a
    text holds becomes ``<unk>``.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {piece: i for i, piece in enumerate([PAD, "<unk>", START, END, *_pieces()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECES), "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, unk_token="<unk>",
        additional_special_tokens=[START], clean_up_tokenization_spaces=False,
    )  # fmt: skip
    fast.chat_template = CHAT_TEMPLATE
    return fast


def _pieces() -> list[str]:
    """All pieces, sorted: the ids do not depend on the order of the lists that they come from."""
    text = ["user\n", "assistant\n", INSTRUCTION, " " + INSTRUCTION, "0123456789+-*/=;.?,{} \\"]
    forms = [v for v in vars(problems).values() if isinstance(v, tuple) and isinstance(v[0], str)]
    for words in forms:
        for form in words:
            parts = [part for part, *_ in Formatter().parse(form)]
            text += parts
            # A word that fills a place in a sentence has a blank before it, or begins the sentence.
            text += [form, f" {form}"] if parts == [form] else [f" {parts[0]}"]
    return sorted({piece for part in text for piece in re.findall(PIECES, part)})
