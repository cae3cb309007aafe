"""The engine against the plain model: distribution, random numbers, log-probabilities, bits."""

import itertools

import numpy as np
import pytest
import torch

from policies.models import VOCABULARY, pair, plain_logp, tiny
from waterline.policies import SharedPrefixLM
from waterline.rollouts import (
    EngineError,
    Finish,
    Kind,
    Rollouts,
    SamplingParams,
    SharedPrefixEngine,
    pack_leaves,
)
from waterline.runs import RunFailed
from waterline.runs.seeds import uniforms

IDS = [5, -7, 2**62, 0, -(2**63)]
COUNTS = np.array([0, 1, 2, 7, 64])
PARAMS = SamplingParams(key=11, max_tokens=40, stop=(7, 2))


def prompts(lengths=(3, 1, 20, 9, 33)) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, VOCABULARY, n).tolist() for n in lengths]


def engine(name: str = "qwen2", **sizes: int) -> SharedPrefixEngine:
    # A flatter distribution than the tests of log-probabilities need: responses should be long.
    model = tiny(name)
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(0.4)
    return SharedPrefixEngine(SharedPrefixLM(model), **sizes)


def responses(table: Rollouts) -> dict[tuple[int, int], tuple[list[int], list[float], int]]:
    """(prompt id, sample) → tokens, log-probabilities, finish."""
    return {
        (int(table.prompt[n]), int(table.sample[n])): (
            table.span(n).tolist(), table.sampled_logp(n).tolist(), int(table.finish[n])
        )
        for n in np.flatnonzero(table.sample >= 0)
    }  # fmt: skip


def boundary_distance(policy: SharedPrefixLM, path: list[int], uniform: float) -> float:
    """How far ``uniform`` is from the nearest step of the cumulative distribution after path."""
    table = Rollouts.from_prompts([0], [path])
    row = next(pack_leaves(table.observed(np.array([0]), [np.array([0])]), np.array([1]), 1000)).row
    row = type(row)(row.layout, row.tokens, torch.tensor([len(path) - 1]), torch.tensor([0]))
    logits = policy.head(policy.prefill(row)[0]).detach()
    return float((logits[0].double().softmax(-1).cumsum(-1) - uniform).abs().min())


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "gpt_neox", "gpt2"])
def test_log_probabilities_equal_the_trainers(name: str) -> None:
    sampler = engine(name)
    table = sampler.extend(Rollouts.from_prompts(IDS, prompts()), np.arange(5), COUNTS, PARAMS)
    assert np.bincount(table.parent[5:], minlength=5).tolist() == COUNTS.tolist()
    gap = 0.0
    for packed in pack_leaves(table, table.leaf_nodes(), 500):
        logp = packed.unrolled(sampler.policy(packed.row)[0].detach())
        for r, i in enumerate(packed.leaf.tolist()):
            engine_logp = table.sampled_logp(table.leaf_nodes()[i])
            trainer_logp = logp[r][packed.mask[r]].numpy()
            assert engine_logp.shape == trainer_logp.shape
            gap = max(gap, float(np.abs(engine_logp - trainer_logp).max()))
    assert gap < 1e-4


def test_each_token_inverts_its_own_uniform() -> None:
    plain, _ = pair()
    sampler = SharedPrefixEngine(SharedPrefixLM(tiny()))
    roots = Rollouts.from_prompts(IDS, prompts())
    params = SamplingParams(key=3, max_tokens=12, stop=(7,), temperature=1.3)
    table = sampler.extend(roots, np.arange(5), COUNTS, params)
    checked = 0
    for node in table.leaf_nodes():
        path = np.concatenate([table.span(n) for n in table.path(int(node))])
        first = len(path) - len(table.span(node))
        logits = plain(torch.from_numpy(path)[None], use_cache=False).logits[0, first - 1 : -1]
        probs = (logits.double() / 1.3).softmax(-1).detach().numpy()
        drawn = uniforms(3, table.prompt[[node]], table.sample[[node]], np.arange(len(probs)))[0]
        for token, p, u in zip(table.span(node), probs, drawn, strict=True):
            cumulative = p.cumsum()
            if np.abs(cumulative - u).min() > 1e-5:
                assert token == np.searchsorted(cumulative, u, side="right")
                checked += 1
        np.testing.assert_allclose(
            table.sampled_logp(node),
            np.log(probs[np.arange(len(probs)), table.span(node)]),
            atol=1e-4,
        )
    assert checked > 0.99 * (len(table.tokens) - len(roots.tokens)) > 100


def test_frequencies_are_the_enumerated_path_probabilities() -> None:
    plain, policy = pair()
    with torch.no_grad():  # five tokens have nearly all the mass, four others never occur
        for model in (plain, policy.model):
            bias = torch.full((VOCABULARY,), -40.0)
            bias[[3, 5, 7, 11, 13]] = 0.0
            model.lm_head.bias = torch.nn.Parameter(bias)
            model.lm_head.weight.mul_(0.2)
    drawn, params = 20_000, SamplingParams(key=1, max_tokens=3, stop=(7,))
    table = Rollouts.from_prompts([9], [[1, 4, 6]])
    table = SharedPrefixEngine(policy).extend(table, np.array([0]), np.array([drawn]), params)
    seen: dict[tuple[int, ...], int] = {}
    for node in table.leaf_nodes():
        path = tuple(table.span(node).tolist())
        seen[path] = seen.get(path, 0) + 1
    expected = {}
    for length in (1, 2, 3):
        for path in itertools.product([3, 5, 7, 11, 13], repeat=length):
            if 7 in path[:-1] or (path[-1] != 7 and length < 3):
                continue
            logp = plain_logp(plain, torch.tensor([1, 4, 6, *path]))[0]
            expected[path] = float(logp[2:].detach().sum().exp())
    assert sum(expected.values()) == pytest.approx(1, abs=1e-4)
    assert seen.keys() <= expected.keys()
    usual = {p: drawn * e for p, e in expected.items() if drawn * e >= 5}
    rare = drawn - sum(usual.values())
    terms = [(seen.get(p, 0) - e) ** 2 / e for p, e in usual.items()]
    terms.append((drawn - sum(seen.get(p, 0) for p in usual) - rare) ** 2 / max(rare, 1))
    # The chi-square statistic has mean k and standard deviation √(2k).
    assert sum(terms) < len(terms) + 4 * np.sqrt(2 * len(terms))


def test_the_same_batch_gives_the_same_bits() -> None:
    roots = Rollouts.from_prompts(IDS, prompts())
    tables = [engine().extend(roots, np.arange(5), COUNTS, PARAMS) for _ in range(2)]
    assert (tables[0].tokens == tables[1].tokens).all()
    logp = [table.columns["sampled_logp"].tobytes() for table in tables]
    assert logp[0] == logp[1]


def test_responses_do_not_depend_on_the_batch() -> None:
    lengths = (3, 1, 20, 9, 33, 12, 12)
    ids, texts = [*IDS, 77, 78], prompts(lengths)
    counts = np.array([0, 1, 200, 7, 640, 300, 300])
    sampler = engine()

    def sampled(order: list[int], rounds: int = 1, **sizes: int) -> dict:
        table = Rollouts.from_prompts([ids[i] for i in order], [texts[i] for i in order])
        left, runner = counts[order], engine(**sizes)
        for r in range(rounds):
            now = left // (rounds - r)
            table = runner.extend(table, np.arange(len(order)), now, PARAMS)
            left = left - now
        return responses(table)

    reference = sampled(list(range(7)))
    assert len(reference) == counts.sum()
    others = [
        sampled([6, 2, 5, 0, 4, 1, 3]),
        sampled([4]),
        sampled([1, 2, 3]),
        sampled(list(range(7)), rounds=2),
        sampled(list(range(7)), max_rows=50),
        sampled(list(range(7)), max_prefill_tokens=10),
    ]
    compared = same = 0
    for other in others:
        for (prompt, sample), (tokens, logp, finish) in other.items():
            expected, expected_logp, expected_finish = reference[prompt, sample]
            compared += 1
            if tokens == expected:
                same += 1
                assert finish == expected_finish
                np.testing.assert_allclose(logp, expected_logp, atol=1e-4)
                continue
            first = next(t for t, (a, b) in enumerate(zip(tokens, expected)) if a != b)  # noqa: B905
            u = float(uniforms(PARAMS.key, [prompt], [sample], first)[0, 0])
            path = texts[ids.index(prompt)] + tokens[:first]
            assert boundary_distance(sampler.policy, path, u) < 1e-5
    assert compared > 3000
    assert same >= 0.999 * compared


def test_prompts_in_company_and_alone_give_the_same_responses() -> None:
    texts = prompts()
    together = engine().extend(Rollouts.from_prompts(IDS, texts), np.arange(5), COUNTS, PARAMS)
    for i in range(5):
        alone = engine(max_rows=5).extend(
            Rollouts.from_prompts([IDS[i]], [texts[i]]), np.array([0]), COUNTS[[i]], PARAMS
        )
        for key, (tokens, logp, finish) in responses(alone).items():
            assert responses(together)[key][0] == tokens
            assert responses(together)[key][2] == finish
            np.testing.assert_allclose(responses(together)[key][1], logp, atol=1e-5)


def test_two_rounds_continue_the_sample_numbers() -> None:
    roots = Rollouts.from_prompts(IDS, prompts())
    sampler = engine()
    once = sampler.extend(roots, np.arange(5), COUNTS, PARAMS)
    half = sampler.extend(roots, np.arange(5), COUNTS // 2, PARAMS)
    twice = sampler.extend(half, np.arange(5), COUNTS - COUNTS // 2, PARAMS)
    assert {k: v[0] for k, v in responses(once).items()} == {
        k: v[0] for k, v in responses(twice).items()
    }


def test_nodes_come_in_the_order_asked_for() -> None:
    roots = Rollouts.from_prompts(IDS, prompts())
    asked, counts = np.array([3, 1, 3, 4]), np.array([2, 1, 3, 2])
    table = engine().extend(roots, asked, counts, PARAMS)
    assert table.parent[5:].tolist() == [3, 3, 1, 3, 3, 3, 4, 4]
    assert table.sample[5:].tolist() == [0, 1, 0, 2, 3, 4, 0, 1]
    assert (table.kind[5:] == Kind.MODEL).all()


def test_a_depth_three_tree_is_sampled_along_its_unrolled_paths() -> None:
    sampler = engine()
    params = SamplingParams(key=2, max_tokens=9, stop=(7, 2))
    table = sampler.extend(
        Rollouts.from_prompts(IDS[:3], prompts()[:3]), np.arange(3), np.array([2, 0, 3]), params
    )
    turns = table.leaf_nodes()
    observations = [np.array([4, 4]), np.array([5]), np.zeros(0, np.int64), np.arange(6)]
    table = table.observed(turns[:4], observations)
    seen = table.leaf_nodes()
    table = sampler.extend(table, seen, np.array([2, 1, 3, 0, 2]), params)
    inner = table.leaf_nodes()[-2:]
    table = sampler.extend(table, inner, np.array([2, 2]), params)  # branches of a response
    numbers = [(int(q), int(s)) for q, s in zip(table.prompt, table.sample, strict=True) if s >= 0]
    assert len(set(numbers)) == len(numbers) == 5 + 8 + 4
    # An unrolled path is a prompt of its own: the same log-probabilities, from the flat engine.
    for packed in pack_leaves(table, table.leaf_nodes(), 60):
        logp = packed.unrolled(sampler.policy(packed.row)[0].detach())
        for r, i in enumerate(packed.leaf.tolist()):
            path = table.path(int(table.leaf_nodes()[i]))
            sampled = np.concatenate([table.sampled_logp(n) for n in path])
            sampled = sampled[~np.isnan(sampled)]
            np.testing.assert_allclose(sampled, logp[r][packed.mask[r]].numpy(), atol=1e-4)
    for node in np.flatnonzero(table.sample >= 0):
        path = np.concatenate([table.span(n) for n in table.path(int(node))]).tolist()
        first = len(path) - len(table.span(node))
        for t, token in enumerate(table.span(node).tolist()):
            u = float(uniforms(2, table.prompt[[node]], table.sample[[node]], t)[0, 0])
            flat = Rollouts.from_prompts([0], [path[: first + t]])
            row = next(pack_leaves(flat.observed(np.array([0]), [np.array([0])]), np.array([1]), 9))
            end = torch.tensor([first + t - 1])
            hidden, _ = sampler.policy.prefill(
                type(row.row)(row.row.layout, row.row.tokens, end, end)
            )
            logits = sampler.policy.head(hidden)
            cumulative = logits.detach()[0].double().softmax(-1).cumsum(-1).numpy()
            assert token == np.searchsorted(cumulative, u, side="right")


def test_stop_tokens_and_length_end_a_response() -> None:
    roots = Rollouts.from_prompts(IDS, prompts())
    for stop in [(), (7, 2), (0, 1, 3, 4, 5)]:
        params = SamplingParams(key=4, max_tokens=6, stop=stop)
        table = engine().extend(roots, np.arange(5), COUNTS, params)
        ends = set()
        for node in table.leaf_nodes():
            tokens, finish = table.span(node).tolist(), table.finish[node]
            ends.add(int(finish))
            assert not set(tokens[:-1]) & set(stop)
            assert finish == (Finish.STOP if tokens[-1] in stop else Finish.LENGTH)
            assert len(tokens) == 6 or finish == Finish.STOP
        assert ends == ({Finish.STOP, Finish.LENGTH} if stop else {Finish.LENGTH})


def test_finished_responses_leave_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = engine()
    given: list[int] = []
    hidden = sampler.policy.hidden

    def counted(tokens, positions, keep, tree):
        given.append(len(tokens))
        return hidden(tokens, positions, keep, tree)

    monkeypatch.setattr(sampler.policy, "hidden", counted)
    table = sampler.extend(Rollouts.from_prompts(IDS, prompts()), np.arange(5), COUNTS, PARAMS)
    lengths = (table.stop - table.start)[table.leaf_nodes()]
    assert given[0] == sum(len(p) for p in prompts()) - 3  # the prompt without samples is not run
    unfinished = [int((lengths > t).sum()) for t in range(1, lengths.max())]
    assert len(given) - 1 == len(unfinished)
    for rows, alive in zip(given[1:], unfinished, strict=True):
        assert alive <= rows <= max(1, alive / 0.875)
    assert given[-1] < 0.5 * given[1]


def test_top_k_and_top_p_bound_what_is_drawn() -> None:
    roots = Rollouts.from_prompts([1], [[3, 4]])
    greedy = SamplingParams(key=4, max_tokens=8, top_k=1)
    table = engine().extend(roots, np.array([0]), np.array([6]), greedy)
    assert len({tuple(table.span(n).tolist()) for n in table.leaf_nodes()}) == 1
    narrow = SamplingParams(key=4, max_tokens=8, top_p=1e-9)
    other = engine().extend(roots, np.array([0]), np.array([6]), narrow)
    assert (other.tokens == table.tokens).all()
    assert other.columns["sampled_logp"][2:].max() < 0  # log-probabilities are of the whole softmax


@pytest.mark.parametrize("nodes", [[], [0, 1]])
def test_nothing_to_sample_adds_nothing(nodes: list[int]) -> None:
    roots = Rollouts.from_prompts([1, 2], [[3, 4], [5]])
    table = engine().extend(roots, np.array(nodes), np.zeros(len(nodes)), PARAMS)
    assert len(table) == 2
    assert table.tokens.tolist() == [3, 4, 5]
    assert len(table.leaves()) == 0


def test_no_prompts_give_an_empty_table() -> None:
    table = engine().extend(Rollouts.from_prompts([], []), np.array([]), np.array([]), PARAMS)
    assert len(table) == len(table.leaves()) == len(table.roots()) == 0


def test_sampling_leaves_the_policys_mode_and_gradients_alone() -> None:
    sampler = engine()
    sampler.policy.train()
    table = sampler.extend(Rollouts.from_prompts([1], [[3]]), np.array([0]), np.array([3]), PARAMS)
    assert sampler.policy.training
    assert all(p.grad is None for p in sampler.policy.parameters())
    sampler.sync([], version=12)
    table = sampler.extend(table, np.array([0]), np.array([1]), PARAMS)
    assert table.version.tolist() == [-1, 0, 0, 0, 12]


def test_bad_requests_are_sentences() -> None:
    roots, sampler = Rollouts.from_prompts([1], [[3]]), engine()
    for nodes, counts, sentence in [
        ([0], [-1], "a count is negative"),
        ([1], [1], "outside the table's 1 nodes"),
        ([-1], [1], "outside the table's 1 nodes"),
        ([0], [1, 2], "one count per node"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            sampler.extend(roots, np.array(nodes), np.array(counts), PARAMS)
    with pytest.raises(ValueError, match="max_rows=0: must be a whole number"):
        engine(max_rows=0)


def test_weights_without_probabilities_are_the_engines_fault_and_not_bad_input() -> None:
    roots, sampler = Rollouts.from_prompts([1], [[3]]), engine()
    with torch.no_grad():
        next(sampler.policy.parameters()).fill_(float("nan"))
    with pytest.raises(EngineError, match="not finite; check the weights") as caught:
        sampler.extend(roots, np.array([0]), np.array([1]), PARAMS)
    assert isinstance(caught.value, RunFailed)
    assert not isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    # Where nothing is to be sampled, the weights are not asked.
    assert len(sampler.extend(roots, np.array([0]), np.array([0]), PARAMS)) == 1
