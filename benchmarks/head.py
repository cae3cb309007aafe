"""Peak memory of an update of long responses with a large vocabulary, beside one without a head.

    python benchmarks/head.py [--tokens 16384] [--vocabulary 152000]

A model of two layers of width 128 in float32 on the CPU. Counted are tensors, by the profiler: the
weights and their gradients, which both have, are left out. The last line is JSON.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch.profiler import profile
from transformers import LlamaConfig, LlamaForCausalLM

from waterline.policies import SharedPrefixLM
from waterline.rollouts import Kind, Rollouts, pack_leaves

MIB = 2**20


def peak(run: Callable[[], None]) -> float:
    """Most bytes of tensors at once beyond those at the start, in MiB."""
    with profile(profile_memory=True) as seen:
        run()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    sizes = [
        event["args"]["Bytes"]
        for event in sorted(events, key=lambda event: event.get("ts", 0))
        if event.get("name") == "[memory]" and event["args"].get("Device Type") == 0
    ]
    return float(np.cumsum(sizes).max()) / MIB


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=16_384)
    parser.add_argument("--vocabulary", type=int, default=152_000)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=arguments.vocabulary, hidden_size=128, intermediate_size=512,
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=arguments.tokens, tie_word_embeddings=True,
        )
    )  # fmt: skip
    policy = SharedPrefixLM(model)
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, arguments.vocabulary, arguments.tokens)
    table = Rollouts.from_prompts([0], [drawn[:64]])
    table = table.grown(np.array([0]), [drawn[64:]], Kind.MODEL)
    (leaves,) = pack_leaves(table, table.leaf_nodes(), arguments.tokens)
    for parameter in policy.parameters():
        parameter.grad = torch.zeros_like(parameter)

    def with_head() -> None:
        logp, _ = policy(leaves.row, entropy=True, entropy_grad=False)
        logp.sum().backward()

    def without_head() -> None:
        policy.head_rows, before, head = len(drawn), policy.head_rows, policy.head
        policy.head = lambda hidden: hidden  # type: ignore[method-assign]
        try:
            row = leaves.row
            row = type(row)(row.layout, row.tokens, row.predictor, row.target % 128)
            policy(row, entropy=True, entropy_grad=False)[0].sum().backward()
        finally:
            policy.head_rows, policy.head = before, head  # type: ignore[method-assign]

    found = {"with the head": peak(with_head), "without the head": peak(without_head)}
    found["one chunk of logits"] = policy.head_rows * arguments.vocabulary * 4 / MIB
    found["all logits"] = len(drawn) * arguments.vocabulary * 4 / MIB
    allowed = 1.3 * found["without the head"] + found["one chunk of logits"]
    for name, value in found.items():
        print(f"{name:<24}{value:10,.0f} MiB")
    print(json.dumps({**{k: round(v) for k, v in found.items()}, "allowed": round(allowed)}))


if __name__ == "__main__":
    main()
