import pytest

from waterline.tasks.maze import MazeTask, MazeTokenizer
from waterline.tasks.maze.grid import TOKEN_IDS, VOCABULARY


def test_vocabulary_ids() -> None:
    names = dict(enumerate(VOCABULARY))
    assert len(names) == 32
    assert names[0] == "<pad>"
    assert names[1] == "<bos>"
    assert names[2] == "<eos>"
    assert names[3] == "<unk>"
    assert [names[i] for i in range(4, 8)] == ["GRID_START", "GRID_END", "PATH_START", "DONE"]
    assert [names[i] for i in range(8, 13)] == ["PATH", "WALL", "GOAL", "START", "NEWLINE"]
    assert [names[i] for i in range(13, 18)] == ["UP", "DOWN", "LEFT", "RIGHT", "\n"]
    assert names[18] == "RESERVED_0"
    assert names[31] == "RESERVED_13"


def test_round_trip() -> None:
    task = MazeTask(9, sft=2, train=2, dev=1, test=1)
    for split in task.splits.values():
        for prompt in split:
            assert tuple(task.tokenizer.encode(prompt.text)) == prompt.tokens
            assert task.tokenizer.decode(prompt.tokens) == prompt.text
            whole = prompt.tokens + task.target(prompt)
            assert task.tokenizer.decode(whole) == prompt.answer
    assert task.tokenizer.decode([1, 13, 7, 2, 0, 3], skip_special_tokens=True) == "UP DONE"
    assert task.tokenizer.encode("UP elsewhere DONE") == [13, 3, 7]


def hugging_face(transformers):
    """The same language as a tokenizer of that library."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    core = Tokenizer(models.WordLevel(dict(TOKEN_IDS), unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>",
        unk_token="<unk>", padding_side="left", clean_up_tokenization_spaces=False,
    )  # fmt: skip


def test_equal_to_hugging_face(tmp_path) -> None:
    transformers = pytest.importorskip("transformers")
    own = MazeTokenizer()
    hugging_face(transformers).save_pretrained(tmp_path)
    prompt = MazeTask(7, sft=0, train=1, dev=0, test=0).splits["train"][0]
    texts = [
        prompt.answer,
        "UP,DOWN PATH!<eos>",
        "<eos><pad> <<bos>> ?!<unk>?",
        "RESERVED_13 resérved \n UP\tLEFT",
        " ".join(VOCABULARY),
        "",
    ]
    for theirs in (
        hugging_face(transformers),
        transformers.AutoTokenizer.from_pretrained(tmp_path),
    ):
        assert len(theirs) == len(own) == 32
        assert theirs.get_vocab() == {word: i for i, word in enumerate(VOCABULARY)}
        for name in ("pad", "bos", "eos", "unk"):
            assert getattr(theirs, f"{name}_token_id") == getattr(own, f"{name}_token_id")
        assert set(theirs.all_special_ids) == {0, 1, 2, 3}
        for text in texts:
            assert theirs.encode(text, add_special_tokens=False) == own.encode(text)
            assert theirs.encode(text) == own.encode(text)
        every = list(range(32))
        for skip in (False, True):
            assert theirs.decode(every, skip_special_tokens=skip) == own.decode(every, skip)
