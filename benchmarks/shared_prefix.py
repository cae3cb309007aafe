"""Shared prefixes against repeated prompts: the update and the sampling of 17×17 mazes.

Both sides use the same model of 3.94M parameters in float32, the same threads and the same
process; their repeats alternate, so that other work on the machine meets both. The last line is
JSON.

    python benchmarks/shared_prefix.py [--repeats 3] [--threads 2] [--no-stop]
"""

import argparse
import copy
import json
import os
import time
from collections.abc import Callable

import numpy as np
import torch

from waterline.policies import SharedPrefixLM
from waterline.policies.maze_transformer import maze_transformer
from waterline.rollouts import Kind, Rollouts, SamplingParams, SharedPrefixEngine, pack_leaves
from waterline.tasks.maze import MazeTask

RESPONSES = 32


def measured(repeats: int, **runs: Callable[[], int]) -> dict[str, tuple[float, float]]:
    """Median seconds and median tokens per second of each run, after one warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            tokens = run()
            taken = time.perf_counter() - start
            if repeat:
                seconds[name].append(taken)
                rates[name].append(tokens / taken)
    return {name: (float(np.median(seconds[name])), float(np.median(rates[name]))) for name in runs}


def update(repeats: int, mazes: MazeTask, prompts: int = 4, length: int = 32) -> dict:
    """Forward and backward pass over ``prompts`` × 32 responses of ``length`` tokens."""
    plain = maze_transformer()
    policy = SharedPrefixLM(copy.deepcopy(plain))
    chosen = mazes.splits["train"][:prompts]
    roots = Rollouts.from_prompts([p.id for p in chosen], [p.tokens for p in chosen])
    rng = np.random.default_rng(0)
    drawn = rng.integers(4, 32, (prompts * RESPONSES, length))
    parent = np.repeat(np.arange(prompts), RESPONSES)
    rollouts = roots.grown(parent, list(drawn), Kind.MODEL)
    leaves = rollouts.leaf_nodes()
    start = len(chosen[0].tokens)
    repeated = np.array([p.tokens for p in chosen]).repeat(RESPONSES, axis=0)
    tokens = torch.from_numpy(np.concatenate([repeated, drawn], axis=1))

    def shared() -> int:
        policy.zero_grad()
        for packed in pack_leaves(rollouts, leaves, 8192):
            values = packed.unrolled(policy(packed.row)[0]) * packed.mask
            (-values.sum() / drawn.size).backward()
        return drawn.size

    def repeat(size: int) -> int:
        plain.zero_grad()
        for part in tokens.split(size):
            logits = plain(part, use_cache=False).logits[:, start - 1 : -1]
            logp = logits.log_softmax(-1).gather(2, part[:, start:, None])
            (-logp.sum() / drawn.size).backward()
        return drawn.size

    times = measured(
        repeats,
        shared=shared,
        by_prompt=lambda: repeat(RESPONSES),
        at_once=lambda: repeat(len(tokens)),  # takes 6 GB
    )
    pairs = zip(policy.model.parameters(), plain.parameters(), strict=True)
    seconds = {name: value[0] for name, value in times.items()}
    return {
        "shared_s": seconds["shared"],
        "repeated_by_prompt_s": seconds["by_prompt"],
        "repeated_at_once_s": seconds["at_once"],
        "ratio_by_prompt": seconds["by_prompt"] / seconds["shared"],
        "ratio_at_once": seconds["at_once"] / seconds["shared"],
        "gradient_gap": max(float((a.grad - b.grad).abs().max()) for a, b in pairs),
    }


def sampling(repeats: int, mazes: MazeTask, stop: tuple[int, ...], max_tokens: int = 64) -> dict:
    """32 responses to each of 8 mazes; tokens after a stop token do not count."""
    plain = maze_transformer().eval()
    engine = SharedPrefixEngine(SharedPrefixLM(copy.deepcopy(plain)))
    chosen = mazes.splits["train"][:8]
    roots = Rollouts.from_prompts([p.id for p in chosen], [p.tokens for p in chosen])
    repeated = torch.tensor([p.tokens for p in chosen]).repeat_interleave(RESPONSES, 0)
    params = SamplingParams(key=0, max_tokens=max_tokens, stop=stop)
    at, counts = np.arange(len(chosen)), np.full(len(chosen), RESPONSES)

    def shared() -> int:
        return len(engine.extend(roots, at, counts, params).tokens) - len(roots.tokens)

    def generate() -> int:
        out = plain.generate(
            repeated,
            attention_mask=torch.ones_like(repeated),
            max_new_tokens=max_tokens,
            do_sample=True,
            top_k=0,
            eos_token_id=list(stop) or None,
            pad_token_id=0,
        )
        response = out[:, repeated.shape[1] :]
        is_stop = torch.isin(response, torch.tensor(stop, dtype=torch.int64))
        return int((is_stop.cumsum(1) - is_stop.int() == 0).sum())

    plain.generation_config.eos_token_id = None
    times = measured(repeats, shared=shared, generate=generate)
    return {
        "shared_tokens_per_s": times["shared"][1],
        "generate_tokens_per_s": times["generate"][1],
        "ratio": times["shared"][1] / times["generate"][1],
    }


def main() -> None:
    """Print the table, then the same as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--no-stop", action="store_true", help="all responses have 64 tokens")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    mazes = MazeTask(17, sft=0, train=8, dev=0, test=0)
    stop = () if options.no_stop else MazeTask.stop_tokens
    u, s = update(options.repeats, mazes), sampling(options.repeats, mazes, stop)
    rows = {
        "update, repeated a prompt at a time (s)": (
            u["shared_s"], u["repeated_by_prompt_s"], u["ratio_by_prompt"]
        ),
        "update, repeated all at once (s)": (
            u["shared_s"], u["repeated_at_once_s"], u["ratio_at_once"]
        ),
        "sampling, 8 × 32 responses (tokens/s)": tuple(s.values()),
    }  # fmt: skip
    print(f"{'':44}{'shared':>10}{'repeated':>10}{'ratio':>8}")
    for name, (shared, repeated, ratio) in rows.items():
        print(f"{name:44}{shared:10.4g}{repeated:10.4g}{ratio:7.1f}×")
    print(f"largest difference between the gradients: {u['gradient_gap']:.1e}")
    print(json.dumps({**vars(options), "update": u, "sampling": s}))


if __name__ == "__main__":
    main()
