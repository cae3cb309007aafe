"""Names of the Hugging Face hub, and folders that stand in their place."""

from pathlib import Path

from waterline.runs.checks import BadInput


def folder_or_name(setting: str, name: str) -> str:
    """``name`` as ``from_pretrained`` takes it: a folder's path, or a name of the hub as it is.

    What looks like a path, or would lie in a folder that there is, never becomes a question to the
    hub.

    Raises:
        BadInput: It looks like one, and there is no such folder.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return str(folder)
    within = len(folder.parts) > 1 and folder.parent.is_dir()
    if within or folder.exists() or name.startswith((".", "/", "~")):
        raise BadInput(f"{setting}={name}: there is no such folder; check the path, or make it.")
    return name
