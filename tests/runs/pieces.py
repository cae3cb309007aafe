"""Pieces for the tests of the configuration; named by `_target_` as `runs.pieces.<name>`."""


class Uniform:
    def __init__(self) -> None:
        pass


class Level:
    def __init__(self, n_max: int = 64, u0: float = 0.05) -> None:
        if n_max < 2:
            raise ValueError(f"n_max is {n_max}: raise it to 2 or more.")
        self.n_max, self.u0 = n_max, u0


class Loss:
    def __init__(self, normalisation: str, *, clip: object = None) -> None:
        self.normalisation, self.clip = normalisation, clip


class Anything:
    def __init__(self, **options: object) -> None:
        self.options = options


class Positional:
    def __init__(self, first: int, /, second: int = 0) -> None:
        self.first, self.second = first, second


class Broken:
    def __init__(self) -> None:
        raise TypeError("a bug inside")


def advantage(rewards: list[float], group: list[int], eps: float = 0.0) -> tuple[object, ...]:
    return rewards, group, eps


NOT_CALLABLE = 3
