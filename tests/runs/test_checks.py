import numpy as np
import pytest

from waterline.runs import BadInput, as_bad_input, sentence_errors, unknown_name


def test_an_unknown_name_gets_the_nearest_known_one():
    message = str(unknown_name("method", "serra", ["sera", "maxrl"]))
    assert message == "There is no method 'serra': did you mean 'sera' (known: maxrl, sera)."
    assert "choose one" in str(unknown_name("method", "qqq", ["sera"]))
    assert "known: none" in str(unknown_name("method", "qqq", []))


def test_bad_input_is_one_line_and_status_2(capsys):
    with pytest.raises(SystemExit) as ended, sentence_errors():
        raise BadInput("The maze size is 8: use an odd number.")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: The maze size is 8: use an odd number.\n"


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ValueError, match="bug") as raised, sentence_errors():
        raise ValueError("bug")
    assert not isinstance(raised.value, BadInput)


def test_set_up_turns_value_errors_into_bad_input():
    with pytest.raises(BadInput, match="n_max"), as_bad_input():
        raise ValueError("n_max is 0: raise it.")
    first = BadInput("kept")
    with pytest.raises(BadInput) as raised, as_bad_input():
        raise first
    assert raised.value is first
    with pytest.raises(TypeError), as_bad_input():
        raise TypeError


def test_too_little_memory_is_one_line_and_status_1(capsys):
    with pytest.raises(SystemExit) as ended, sentence_errors():
        np.empty(2**56)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("error: Not enough memory (Unable to allocate")
