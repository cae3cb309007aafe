"""A file that is no checkpoint is one sentence that names it, wherever it was cut."""

import io
import pickle
import zipfile

import pytest
import torch

from waterline.runs import BadInput
from waterline.training.checkpoints import load_checkpoint, load_weights


def whole():
    file = io.BytesIO()
    torch.save({"policy": torch.nn.Linear(40, 30).state_dict(), "done": 3}, file)
    return file.getvalue()


def contents():
    data = whole()
    yield from (data[: len(data) * i // 40] for i in range(40))
    yield from (data[:n] for n in (1, 2, 3, 4, 5, 30, len(data) - 1))
    yield b"\x00" * 5000
    yield data[:100] + b"\xff" * 400 + data[500:]
    yield "Grüße, no checkpoint\n".encode()
    yield pickle.dumps({"policy": 1})
    yield pickle.dumps(ValueError("executed"))
    for saved in (
        [1, 2],
        {"model": torch.zeros(2)},
        {"policy": 3},
        {"policy": None},
        torch.zeros(3),
    ):
        file = io.BytesIO()
        torch.save(saved, file)
        yield file.getvalue()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "a")
    yield file.getvalue()


@pytest.mark.parametrize("content", list(contents()), ids=range(len(list(contents()))))
def test_a_file_that_is_no_checkpoint_is_named(tmp_path, content):
    file = tmp_path / "some.pt"
    file.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        load_checkpoint(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_end_of_a_large_file_may_be_missing(tmp_path):
    """The reader seeks beyond the start of a short file, which the system calls wrong."""
    file = tmp_path / "some.pt"
    torch.save({"policy": {"weight": torch.zeros(200_000)}, "done": 3}, file)
    content = file.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        file.write_bytes(content[: int(share * len(content))])
        with pytest.raises(BadInput, match="is cut short"):
            load_checkpoint(file)


def test_a_folder_or_nothing_is_no_checkpoint(tmp_path):
    for file, said in ((tmp_path, "directory"), (tmp_path / "missing.pt", "is missing")):
        with pytest.raises(BadInput, match=said):
            load_checkpoint(file)


@pytest.mark.parametrize(
    "weights", [{}, {"a": torch.zeros(2)}, {"weight": torch.zeros(1), "bias": torch.zeros(1)},
                {"weight": 3, "bias": "x"}, {1: torch.zeros(2)}],
)  # fmt: skip
def test_weights_of_another_network_are_refused(tmp_path, weights):
    torch.save({"policy": weights}, tmp_path / "other.pt")
    with pytest.raises(BadInput, match=r"does not fit the network|without names"):
        load_weights(torch.nn.Linear(3, 2), tmp_path / "other.pt")


def test_the_whole_file_is_read(tmp_path):
    (tmp_path / "good.pt").write_bytes(whole())
    assert load_checkpoint(tmp_path / "good.pt")["done"] == 3
