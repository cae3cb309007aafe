"""A step on a two-word language, whose every outcome can be written down.

The tokens are 0 and 1, and 1 ends a response, so that there are three responses of up to two
tokens: '1', '0 1' and '0 0'. An engine plays them from a script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Qwen2Config, Qwen2ForCausalLM

from waterline.losses import PolicyLoss
from waterline.policies import SharedPrefixLM
from waterline.rewards import Judgement
from waterline.rollouts import Finish, Kind, Rollouts, SamplingParams
from waterline.success import DiscountedBeta
from waterline.tasks import Prompt
from waterline.training.sequences.candidates import SequenceCandidates, Sequences
from waterline.training.sequences.update import PolicyUpdate, UpdateSettings
from waterline.training.step import Learned, Pieces, StepRecord, run_step

STOP, CAP = 1, 2
RESPONSES = ((1,), (0, 1), (0, 0))
SHORT, RIGHT, CUT = range(3)  # their places
PROMPTS = [
    Prompt(7, "", (0, 0, 1), ""),
    Prompt(-3, "", (1, 1), ""),
    Prompt(40, "", (0, 1, 1, 0), ""),
]
PARAMS = SamplingParams(key=0, max_tokens=2)


class Words:
    """Decodes to the numbers themselves."""

    pad_token_id, eos_token_id = 0, STOP

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return " ".join(map(str, token_ids))


class Rewards:
    """'0 1' alone succeeds; rewards are those of ``rewards``, by text."""

    def __init__(self, rewards: Mapping[str, float]) -> None:
        self.rewards = rewards

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        success = np.array([r == "0 1" for r in responses], dtype=bool)
        reward = np.array([self.rewards[r] for r in responses], dtype=float)
        return Judgement(success, reward, np.where(success, "correct", "wrong"))


RIGHT_OR_WRONG = Rewards({"1": 0.0, "0 1": 1.0, "0 0": 0.0})
PARTIAL = Rewards({"1": 0.5, "0 1": 1.0, "0 0": 0.25})


class Script:
    """An engine that plays each prompt's responses in the order of their sample numbers."""

    responses = "sequences"

    def __init__(self, lines: Mapping[int, Sequence[int]]) -> None:
        self.lines = lines  # by prompt id, places in RESPONSES
        self.asked: list[list[int]] = []  # the counts of each call

    def extend(
        self, rollouts: Rollouts, at_nodes: Any, counts: Any, params: SamplingParams
    ) -> Rollouts:
        self.asked.append(np.asarray(counts).tolist())
        parent = np.repeat(at_nodes, counts)
        played = {int(i): int((rollouts.prompt[rollouts.sample >= 0] == i).sum())
                  for i in rollouts.prompt}  # fmt: skip
        spans, sample, finish = [], [], []
        for prompt in rollouts.prompt[parent].tolist():
            line = self.lines[prompt]
            spans.append(np.array(RESPONSES[line[played[prompt] % len(line)]], dtype=np.int64))
            sample.append(played[prompt])
            finish.append(Finish.STOP if spans[-1][-1] == STOP else Finish.LENGTH)
            played[prompt] += 1
        return rollouts.grown(
            parent, spans, Kind.MODEL, finish=np.array(finish, dtype=np.int8), version=0,
            sample=np.array(sample, dtype=np.int64),
            logp=[np.zeros(len(span), dtype=np.float32) for span in spans],
        )  # fmt: skip


def model() -> Qwen2ForCausalLM:
    """A random model of the language, in float64."""
    config = Qwen2Config(
        vocab_size=2, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, initializer_range=0.5,
        bos_token_id=0, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return Qwen2ForCausalLM(config).double().eval()


def token_logp(plain: Any, prompt: Prompt) -> list[tuple[Tensor, Tensor]]:
    """For each of RESPONSES the (T,) log π of its tokens and the (T,) entropies, by autograd."""
    found = []
    for response in RESPONSES:
        tokens = torch.tensor([*prompt.tokens, *response])
        log_probs = plain(input_ids=tokens[None], use_cache=False).logits[0].log_softmax(-1)
        log_probs = log_probs[len(prompt.tokens) - 1 : -1]
        logp = log_probs.gather(1, torch.tensor(response)[:, None])[:, 0]
        found.append((logp, -(log_probs.exp() * log_probs).sum(-1)))
    return found


def flat(module: torch.nn.Module) -> Tensor:
    """The gradient as one vector; it is taken out of the module."""
    parts = [p.grad if p.grad is not None else torch.zeros_like(p) for p in module.parameters()]
    gradient = torch.cat([p.double().reshape(-1) for p in parts])
    module.zero_grad()
    return gradient


class Step:
    """Steps with the pieces given, one after another, over batches from ``prompts``.

    ``gradients`` has what the optimizer was given, flat; the weights never move.
    """

    def __init__(
        self,
        allocator: Any,
        advantage: Any,
        lines: Mapping[int, Sequence[int]],
        *,
        n0: int = 4,
        verifier: Any = PARTIAL,
        success: Any = None,
        loss: PolicyLoss | None = None,
        settings: UpdateSettings | None = None,
        ranks: Any = None,
    ) -> None:
        self.policy = SharedPrefixLM(model().float())
        self.gradients: list[Tensor] = []
        self.learned_from: Sequences | None = None
        self.pieces = Pieces(
            success=DiscountedBeta() if success is None else success, allocator=allocator,
            engine=Script(lines), verifier=verifier, advantage=advantage,
            loss=loss or PolicyLoss(normalisation="token-mean"), n0=n0,
        )  # fmt: skip
        more = {} if ranks is None else {"ranks": ranks}
        self.update = PolicyUpdate(
            policy=self.policy, loss=self.pieces.loss, optimize=self._optimize,
            backward=Tensor.backward, settings=settings or UpdateSettings(max_tokens=24),
            step_on_no_signal=True, **more,
        )  # fmt: skip

    def _optimize(self) -> float:
        self.gradients.append(flat(self.policy.model))
        return 1.0

    def learn(self, responses: Sequences, advantage: Tensor, weight: Tensor) -> Learned:
        self.learned_from, self.advantage, self.weight = responses, advantage, weight
        return self.update(responses, advantage, weight)

    def __call__(
        self, prompts: Sequence[Prompt], spare: Sequence[Prompt] = (), progress: float = 0.0
    ) -> StepRecord:
        def add(k: int, ids: NDArray[np.int64]) -> list[Prompt]:
            return [prompt for prompt in spare if prompt.id not in ids][:k]

        candidates = SequenceCandidates(
            prompts, self.pieces.engine, self.pieces.verifier, Words(), PARAMS, add=add,
            fill=self.update.fill, reads=self.pieces.advantage.reads,
        )  # fmt: skip
        return run_step(self.pieces, candidates, self.learn, progress)
