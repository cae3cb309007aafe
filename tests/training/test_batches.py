"""Which prompts and images a step has: functions of its number."""

import numpy as np
import pytest

from training.tiny_images import TinyTask
from waterline.runs import BadInput
from waterline.training.batches import further_rows, rows_at
from waterline.training.labels.batches import StepBatches

IDS = np.array([70, -3, 2**62, 41, 0, 8, -(2**63), 5])


def test_an_epoch_has_each_prompt_once_in_an_order_of_its_own():
    orders = []
    for epoch in range(3):
        batches = [rows_at(8, 2, 5, 4 * epoch + place) for place in range(4)]
        assert [e for e, _ in batches] == [epoch] * 4
        orders.append([row for _, rows in batches for row in rows])
        assert sorted(orders[-1]) == list(range(8))
    assert orders[0] != orders[1] != orders[2]
    assert rows_at(8, 2, 6, 0) != rows_at(8, 2, 5, 0)
    with pytest.raises(BadInput, match="needs as many in the data set"):
        rows_at(3, 4, 0, 0)


def test_further_rows_are_new_and_follow_from_the_step():
    taken = [41, -3, 2**62]
    rows = further_rows(IDS, taken, seed=5, step=7, k=8)
    assert sorted(rows) == [0, 4, 5, 6, 7], "as many as there are, each once"
    assert not set(IDS[rows].tolist()) & set(taken)
    assert further_rows(IDS, taken, 5, 7, 8) == rows, "a function of the arguments alone"
    for k in range(6):
        assert further_rows(IDS, taken, 5, 7, k) == rows[:k]
    others = [further_rows(IDS, taken, seed, step, 8) for seed, step in ((5, 8), (6, 7))]
    assert all(sorted(other) == sorted(rows) for other in others)
    assert any(other != rows for other in others)


def test_a_second_call_goes_on_where_the_first_ended():
    first = further_rows(IDS, [41], 5, 7, 3)
    taken = [41, *IDS[first].tolist()]
    assert further_rows(IDS, taken, 5, 7, 9) == further_rows(IDS, [41], 5, 7, 9)[3:]


def test_nothing_is_further_where_all_are_taken():
    assert further_rows(IDS, IDS.tolist(), 0, 0, 4) == []
    assert further_rows(IDS[:0], [], 0, 0, 4) == []
    # An id that is not in the training set takes nothing.
    assert len(further_rows(IDS, [999], 0, 0, 99)) == len(IDS)


def test_every_row_comes_first_equally_often():
    firsts = [further_rows(IDS, [41], 0, step, 1)[0] for step in range(2100)]
    counts = np.bincount(firsts, minlength=len(IDS))
    assert counts[3] == 0
    assert (abs(np.delete(counts, 3) - 300) < 75).all()  # 4.7 standard deviations


def test_further_images_have_the_augmentation_of_the_steps_epoch():
    split = TinyTask().splits["train"]
    batches = StepBatches(split, 4, seed=0)
    step = 4  # of the second epoch
    here = batches[step]
    new = batches.further(step, here.ids.tolist(), 3)
    assert len(new.ids) == 3
    assert not set(new.ids.tolist()) & set(here.ids.tolist())
    assert new.images.ids.tolist() == new.ids.tolist()
    # The same image in its own batch of that epoch has the same pixels.
    for other in (3, 5):
        batch = batches[other]
        for i, image in enumerate(batch.ids.tolist()):
            if image in new.ids:
                place = new.ids.tolist().index(image)
                assert new.images.pixels[place].equal(batch.images.pixels[i])
                break
        else:
            continue
        break
    else:
        pytest.fail("none of the further images is in another batch of the epoch")


def test_ranks_share_the_further_images():
    split = TinyTask().splits["train"]
    whole = StepBatches(split, 4, seed=0)
    taken = whole[2].ids.tolist()
    expected = whole.further(2, taken, 5)
    parts = [StepBatches(split, 4, 0, rank, 2).further(2, taken, 5) for rank in range(2)]
    for rank, part in enumerate(parts):
        assert part.ids.tolist() == expected.ids.tolist()
        assert part.images.ids.tolist() == expected.ids[rank::2].tolist()
