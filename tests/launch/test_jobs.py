"""What a list of overrides becomes: jobs with names, folders, and what is done."""

import hydra
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from training.tiny import CONF, TINY
from waterline.launch.configuration import plain, setting
from waterline.launch.finish import finished
from waterline.launch.jobs import Job, carry_out, jobs_of, names, require_right
from waterline.runs import BadInput, RunFolder, State, identity


@pytest.fixture
def conf():
    hydra.core.global_hydra.GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def test_names_tell_neighbours_apart():
    common = ("experiment=maze/laptop", "final.n=8")
    rows = [
        (*common, "method=sera", "losses=seqnorm", "allocation.n0=8", f"seed={s}") for s in (0, 1)
    ]
    rows += [(*common, "method=sera", "stage=base", "seed=0"), (*common, "method=sera", "seed=0")]
    rows += [rows[-1]]
    assert names(rows) == [
        "sera seqnorm n0=8 seed=0", "sera seqnorm n0=8 seed=1", "base seed=0", "sera seed=0",
        "sera seed=0 (job 4)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["/a b/ma,ze=(1)", "größe", "it's", "a\\", "\\'", "[1]", "null", ""]
)
def test_any_text_is_an_override(text):
    (override,) = OverridesParser.create().parse_overrides([setting("task.path", text)])
    assert override.value() == text


def test_folders_follow_from_the_configuration(conf, tmp_path):
    common = ("experiment=maze/laptop", f"paths.results={tmp_path}", *TINY)
    rows = [
        (*common, "method=sera", "stage=base"),
        (*common, "method=maxrl"),
        (*common, "method=maxrl", "allocation.n_max=64"),  # MaxRL does not read it
        (*common, "method=maxrl", "seed=x"),
    ]
    base, run, wrong = jobs_of(rows, [None, 0, 0, None])
    assert base.folder == tmp_path / "maze-laptop/base/seed-0"
    assert run.needs is base
    assert tmp_path / "maze-laptop/maxrl" in run.folder.parents
    assert [job.done for job in (base, run, wrong)] == [False] * 3
    assert [job.wrong for job in (base, run)] == [None] * 2
    with pytest.raises(BadInput, match="seed=x: must be a whole number"):
        require_right([base, wrong])


def test_a_dry_run_says_what_is_wrong(capsys):
    jobs = [Job("right", ()), Job("sera seed=x", (), wrong="seed=x: must be a whole number.")]
    error = carry_out(jobs, None, "here", dry_run=True)
    assert str(error) == "1 of 2 jobs have wrong settings: fix them."
    assert "wrong (seed=x: must be a whole number.): sera seed=x" in capsys.readouterr().out


def test_done_is_a_finished_run_of_the_same_settings_with_what_final_asks(conf, tmp_path):
    row = ("experiment=maze/laptop", "method=maxrl", f"paths.results={tmp_path}", *TINY)
    config = plain(hydra.compose("train", overrides=[*row]))
    (job,) = jobs_of([row])
    folder = RunFolder(job.folder)
    folder.record_start("{}", identity(config))
    assert not jobs_of([row])[0].done
    folder.set_state(State.done)
    assert jobs_of([row])[0].done
    test = (*row, "final.split=test", "final.n=4")
    asked = plain(hydra.compose("train", overrides=[*test]))["final"]
    assert not finished(folder, asked)
    assert not jobs_of([test])[0].done
