"""Training sets are whole numbers of batches."""


def require_whole_batches(prompts: int, batch: int) -> None:
    """Raise ValueError unless ``prompts`` training prompts are one or more batches of ``batch``.

    A last, smaller batch would have to be dropped, and its prompts would stay unseen in the first
    epoch; one unseen prompt makes the counts of a whole batch uniform.
    """
    if batch < 1:
        raise ValueError(f"A batch has {batch} prompts, but needs at least 1.")
    if prompts < batch or prompts % batch:
        nearest = max(batch, prompts // batch * batch)
        raise ValueError(
            f"The training set has {prompts} prompts, which is no multiple of the batch of {batch};"
            f" set its size to {nearest} or {nearest + batch}, or change the batch."
        )
