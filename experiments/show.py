"""Show what a policy wrote in an evaluation, and what the verifier said; see conf/show.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig
from rich.console import Console

from waterline.evaluation import ResponseStore
from waterline.launch.commands import job, run_command
from waterline.launch.configuration import plain
from waterline.launch.settings import Show
from waterline.reporting import print_questions, print_responses
from waterline.runs import BadInput, RunFolder
from waterline.runs.paths import opened
from waterline.runs.settings import check_settings
from waterline.training.assemble import build_task

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(version_base="1.3", config_path="../conf", config_name="show")
def main(config: DictConfig) -> None:
    with job():
        settings = plain(config)
        check_settings(settings, {"": Show})
        folder, split = RunFolder(settings["run"]), settings["split"]
        of_run = opened(folder.read_config())
        store = ResponseStore(folder.eval / "responses")
        step = store.last(split) if settings["step"] is None else settings["step"]
        task = build_task(of_run)
        prompts = {prompt.id: prompt for prompt in task.splits.get(split, ())}
        asked, verdict, limit = (settings[key] for key in ("prompt", "verdict", "limit"))
        console = Console()
        if asked is None:
            rows = store.read(step, split, columns=["verdict"])
            print_questions(console, rows, prompts, verdict, limit)
        elif asked not in prompts:
            ids = ", ".join(map(str, list(prompts)[:5]))
            raise BadInput(f"prompt={asked}: {split} has no such question; its ids begin {ids}.")
        else:
            rows = store.read(step, split, prompt=asked)
            print_responses(console, rows, prompts[asked], verdict, limit)


if __name__ == "__main__":
    run_command(main, CONF, "show")
