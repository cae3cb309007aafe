"""Counter-based uniforms: the published vectors, a scalar reading of the paper, statistics."""

import time

import numpy as np
import pytest

from waterline.runs import permutation, stream_key, uniforms
from waterline.runs.seeds import philox4x32

MASK = 0xFFFFFFFF


def philox_plain(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 on Python integers, as the paper writes it."""
    c, k = list(counter), list(key)
    for round_ in range(10):
        if round_:
            k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
        high0, low0 = divmod(c[0] * 0xD2511F53, 2**32)
        high1, low1 = divmod(c[2] * 0xCD9E8D57, 2**32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
    return c


def philox_words(counter: list[int], key: list[int]) -> list[int]:
    words = tuple(np.array([word], dtype=np.uint64) for word in counter)
    return [int(word[0]) for word in philox4x32(words, key[0] | key[1] << 32)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("counter", "key", "output"),
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([MASK] * 4, [MASK] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_published_known_answers(counter, key, output):
    assert " ".join(f"{word:08x}" for word in philox_words(counter, key)) == output


def test_philox_equals_a_scalar_implementation():
    rng = np.random.default_rng(0)
    for _ in range(200):
        words = [int(word) for word in rng.integers(0, 2**32, size=6)]
        assert philox_words(words[:4], words[4:]) == philox_plain(words[:4], words[4:])


def test_uniforms_are_the_first_two_words_of_the_block_that_the_address_names():
    key, prompt, sample, token = stream_key(3, "rollout", 7), -5_000_000_001, 41, 12
    pattern = prompt % 2**64
    words = philox_plain([pattern & MASK, pattern >> 32, sample, token], [key & MASK, key >> 32])
    expected = ((words[0] >> 5) * 2**26 + (words[1] >> 6)) / 2**53
    assert uniforms(key, [prompt], [sample], token).tolist() == [[expected]]


def test_a_sample_does_not_depend_on_its_batch():
    key = stream_key(0, "rollout", 1)
    ids, samples, tokens = np.array([9, 9, 2**40, -3, 0]), np.array([0, 1, 5, 0, 2]), np.arange(6)
    together = uniforms(key, ids, samples, tokens)
    assert together.shape == (5, 6)
    for row, (prompt, sample) in enumerate(zip(ids, samples, strict=True)):
        for token in tokens:
            assert uniforms(key, [prompt], [sample], token)[0, 0] == together[row, token]
    order = np.array([3, 0, 4, 1, 2])
    np.testing.assert_array_equal(
        uniforms(key, ids[order], samples[order], tokens), together[order]
    )
    ragged = uniforms(key, ids, samples, (tokens[None] + np.arange(5)[:, None]) % 6)
    np.testing.assert_array_equal(ragged[2], np.roll(together[2], -2))


def test_every_part_of_the_address_matters():
    def draw(seed=0, stage="rollout", step=0, prompt=0, sample=0, token=0):
        return uniforms(stream_key(seed, stage, step), [prompt], [sample], token).item()

    draws = {
        draw(),
        draw(seed=1),
        draw(stage="evaluation"),
        draw(step=1),
        draw(prompt=1),
        draw(prompt=2**32),
        draw(sample=1),
        draw(token=1),
    }
    assert len(draws) == 8


def test_uniforms_are_uniform_and_uncorrelated():
    n, m = 2_000, 50
    draws = uniforms(
        stream_key(11, "rollout", 3), np.arange(n) // 8, np.arange(n) % 8, np.arange(m)
    )
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    cells = np.bincount((draws.ravel() * 256).astype(int), minlength=256)
    expected = n * m / 256
    # 255 degrees of freedom: mean 255, standard deviation 22.6.
    assert 165 < np.sum((cells - expected) ** 2 / expected) < 345
    for left, right in [(draws[1:], draws[:-1]), (draws[:, 1:], draws[:, :-1])]:
        correlation = np.corrcoef(left.ravel(), right.ravel())[0, 1]
        assert abs(correlation) < 5 / np.sqrt(left.size)
    # The low bits come from the second word.
    low = (draws.ravel() * 2**53).astype(np.int64) & 0xFF
    assert abs(low.mean() - 127.5) < 5 * 73.9 / np.sqrt(low.size)


@pytest.mark.parametrize(
    ("ids", "samples", "tokens"),
    [
        ([0], [-1], 0),
        ([0], [2**32], 0),
        ([0], [0], -1),
        ([0, 1], [0], 0),
        ([0, 1], [0, 1], [[0]] * 3),
    ],
)
def test_addresses_out_of_range_are_errors(ids, samples, tokens):
    with pytest.raises(ValueError, match=r"index|indices"):
        uniforms(0, ids, samples, tokens)


def test_no_rows_and_no_tokens_are_empty():
    assert uniforms(0, [], [], [0, 1]).shape == (0, 2)
    assert uniforms(0, [1, 2], [0, 0], np.zeros(0, np.int64)).shape == (2, 0)


def test_512_rows_of_32_tokens_take_under_3_ms():
    ids, samples, tokens = np.arange(512) // 16, np.arange(512) % 16, np.arange(32)
    seconds = []
    for step in range(30):
        start = time.perf_counter()
        uniforms(stream_key(0, "rollout", step), ids, samples, tokens)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 3e-3


@pytest.mark.parametrize("n", [0, 1, 2, 100])
def test_permutation_holds_every_item_once(n):
    order = permutation(0, 0, n)
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(n))


def test_permutation_is_a_function_of_seed_and_epoch():
    np.testing.assert_array_equal(permutation(1, 2, 50), permutation(1, 2, 50))
    assert not np.array_equal(permutation(1, 2, 50), permutation(1, 3, 50))
    assert not np.array_equal(permutation(1, 2, 50), permutation(2, 2, 50))


def test_permutation_puts_each_item_first_equally_often():
    firsts = np.bincount([permutation(0, epoch, 5)[0] for epoch in range(1_000)], minlength=5)
    # Four degrees of freedom: 18.5 is exceeded once in a thousand.
    assert np.sum((firsts - 200.0) ** 2 / 200.0) < 18.5
