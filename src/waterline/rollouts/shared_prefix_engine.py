"""The engine for small models: samples from the trainer's own weights, prefixes computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from waterline.policies import SharedPrefixLM
from waterline.rollouts.decode import DecodeAttention, Prefix
from waterline.rollouts.engine import Capabilities, EngineError, check_request, sample_indices
from waterline.rollouts.pack import chunk_paths, pack_nodes
from waterline.rollouts.sampling import Diverged, SamplingParams, invert, kept_probabilities
from waterline.rollouts.table import Finish, Ints, Kind, Rollouts
from waterline.runs.seeds import uniforms
from waterline.runs.settings import Whole, checked

# Hidden states (m, d), and the one (R,) from which each row samples; None where row i has state i.
_States = tuple[Tensor, Tensor | None]
_UNIFORM_BLOCK = 32
# Rows leave when this share of them has finished: each leave copies the others' own keys.
_LEAVE_SHARE = 0.125


class SharedPrefixEngine:
    """Decodes all responses of a batch in step.

    A prefix is run once, whatever the number of its responses, and their attention reads its keys
    in place. Finished responses leave the batch.

    Args:
        policy: whose weights are sampled from.
        max_rows: responses decoded at once; more are decoded in turns.
        max_prefill_tokens: tokens of prefixes in one forward pass.
    """

    @checked
    def __init__(
        self, policy: SharedPrefixLM, max_rows: Whole = 4096, max_prefill_tokens: Whole = 16384
    ) -> None:
        self.policy = policy
        self.max_rows = max_rows
        self.max_prefill_tokens = max_prefill_tokens
        self.version = 0

    responses: ClassVar[str] = "sequences"
    capabilities = Capabilities(in_process=True, inner_nodes=True)

    def sync(self, named_tensors: Iterable[tuple[str, Tensor]], version: int) -> None:
        """The weights are the trainer's own: only the version changes."""
        self.version = version

    def sleep(self) -> None:
        """Nothing is held between calls."""

    wake = close = sleep

    def extend(
        self, rollouts: Rollouts, at_nodes: Ints, counts: Ints, params: SamplingParams
    ) -> Rollouts:
        at_nodes, counts = np.asarray(at_nodes, np.int64), np.asarray(counts, np.int64)
        check_request(rollouts, at_nodes, counts)
        parent = np.repeat(at_nodes, counts)
        sample = sample_indices(rollouts, parent)
        spans: list[Ints] = []
        logps: list[np.ndarray] = []
        finish: list[np.ndarray] = []
        with self.policy.sampling():
            for first in range(0, len(parent), self.max_rows):
                rows = slice(first, first + self.max_rows)
                try:
                    decoded = self._decode(rollouts, parent[rows], sample[rows], params)
                except Diverged as error:
                    raise EngineError(str(error)) from error
                tokens, logp, lengths, ends = decoded
                spans += [t[:n] for t, n in zip(tokens, lengths, strict=True)]
                logps += [v[:n] for v, n in zip(logp, lengths, strict=True)]
                finish.append(ends)
        return rollouts.grown(
            parent, spans, Kind.MODEL, finish=np.concatenate(finish or [np.zeros(0, np.int8)]),
            version=self.version, sample=sample, logp=logps,
        )  # fmt: skip

    def _prefill(
        self, rollouts: Rollouts, nodes: Ints, counts: Ints
    ) -> tuple[list[Prefix], list[_States], Ints]:
        """Prefixes that end at ``nodes``, the states of ``counts`` rows each, and lengths (n,)."""
        prefixes: list[Prefix] = []
        states: list[_States] = []
        lengths: list[int] = []
        for chunk in chunk_paths(rollouts, nodes, self.max_prefill_tokens):
            needed = sorted({i for node in chunk for i in rollouts.path(node)})
            row, place = pack_nodes(rollouts, needed, predict=False)
            paths = [row.layout.path(place[node]) for node in chunk]
            ends, which = np.unique([path[-1] for path in paths], return_inverse=True)
            row = replace(row, predictor=torch.from_numpy(ends))
            hidden, kept = self.policy.prefill(row)
            which = np.repeat(which, counts[len(prefixes) : len(prefixes) + len(chunk)])
            states.append((hidden, torch.from_numpy(which).to(hidden.device)))
            for path in paths:
                keys = [_at(kept[layer][0], path) for layer in sorted(kept)]
                values = [_at(kept[layer][1], path) for layer in sorted(kept)]
                prefixes.append(Prefix(keys, values))
                lengths.append(len(path))
        return prefixes, states, np.array(lengths)

    def _decode(
        self, rollouts: Rollouts, parent: Ints, sample: Ints, params: SamplingParams
    ) -> tuple[Ints, np.ndarray, Ints, np.ndarray]:
        """Tokens (R, T), log-probabilities (R, T), lengths (R,) and finish reasons (R,)."""
        # Rows of one node must stand together; the caller's order comes back at the end.
        order = np.argsort(parent, kind="stable")
        nodes, block = np.unique(parent[order], return_inverse=True)
        prefixes, states, prefix_lengths = self._prefill(rollouts, nodes, np.bincount(block))
        device = self.policy.device
        attention = DecodeAttention(prefixes, torch.from_numpy(block).to(device))
        position = torch.from_numpy(prefix_lengths[block]).to(device)
        draw = _uniform_source(params.key, rollouts.prompt[parent[order]], sample[order])
        stop = torch.tensor(sorted(params.stop), dtype=torch.int64, device=device)
        n = len(parent)
        tokens = np.zeros((n, params.max_tokens), dtype=np.int64)
        logps = np.zeros((n, params.max_tokens), dtype=np.float32)
        lengths = np.full(n, params.max_tokens, dtype=np.int64)
        ends = np.full(n, Finish.LENGTH, dtype=np.int8)
        rows = np.arange(n)  # the row of the output that each row of the batch fills
        done = np.zeros(n, dtype=bool)
        for step in range(params.max_tokens):
            token, logp = self._sample(states, draw(rows, step).to(device), params)
            alive = rows[~done]
            tokens[alive, step] = token.cpu().numpy()[~done]
            logps[alive, step] = logp.cpu().numpy()[~done]
            stopped = torch.isin(token, stop).cpu().numpy() & ~done
            lengths[rows[stopped]] = step + 1
            ends[rows[stopped]] = Finish.STOP
            done |= stopped
            if done.all() or step + 1 == params.max_tokens:
                break
            if done.mean() >= _LEAVE_SHARE:
                kept = torch.from_numpy(np.flatnonzero(~done)).to(device)
                attention.keep(kept)
                rows, token, position = rows[~done], token[kept], position[kept]
                done = np.zeros(len(rows), dtype=bool)
            states = [(self.policy.hidden(token, position + step, None, attention), None)]
            attention.step += 1
        back = np.argsort(order, kind="stable")
        return tokens[back], logps[back], lengths[back], ends[back]

    def _sample(
        self, states: list[_States], uniform: Tensor, params: SamplingParams
    ) -> tuple[Tensor, Tensor]:
        """Next tokens (R,) and their log-probabilities, from one chunk of logits at a time."""
        found = []
        first = 0
        for hidden, which in states:
            for rows in torch.arange(len(hidden if which is None else which)).split(
                self.policy.head_rows
            ):
                if which is None:
                    logits = self.policy.head(hidden[rows[0] : rows[-1] + 1])
                else:
                    needed, place = which[rows].unique(return_inverse=True)
                    logits = self.policy.head(hidden[needed])[place]
                log_probs = (logits / params.temperature).log_softmax(dim=-1)
                drawn = uniform[first : first + len(rows)]
                token = invert(kept_probabilities(log_probs, params), drawn)
                found.append((token, log_probs.gather(1, token.unsqueeze(1)).squeeze(1)))
                first += len(rows)
        tokens, logp = (torch.cat(parts) for parts in zip(*found, strict=True))
        return tokens, logp


def _at(values: Tensor, path: Ints) -> Tensor:
    """The entries (G, A, d) of a path in a row's (G, L, d), in place where they stand together."""
    if path[-1] - path[0] + 1 == len(path):
        return values[:, path[0] : path[-1] + 1]
    return values[:, torch.from_numpy(path).to(values.device)]


def _uniform_source(key: int, prompt: Ints, sample: Ints) -> Callable[[Ints, int], Tensor]:
    """One uniform per (row, step), drawn in blocks of steps."""
    block = np.zeros((len(prompt), _UNIFORM_BLOCK))

    def draw(rows: Ints, step: int) -> Tensor:
        within = step % _UNIFORM_BLOCK
        if within == 0:
            index = np.arange(step, step + _UNIFORM_BLOCK)
            block[rows] = uniforms(key, prompt[rows], sample[rows], index)
        return torch.from_numpy(block[rows, within])

    return draw
