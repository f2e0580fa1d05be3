"""What one step of an offline engine does, in plain numbers that travel to a worker process."""

from typing import NamedTuple


class Chunk(NamedTuple):
    """Prompt tokens of one request that a step computes, `count` of them from position `first` on."""

    who: int
    first: int
    count: int


class Step(NamedTuple):
    """What a step does.

    Attributes:
        prompts: prompt tokens to compute, in order. decodes: who makes a token.
        dropped: segments that leave before anything is computed. returned: who comes back with what it shares.
        read: KV tokens that those who decode read. pairs: growth of squared prompt positions.
    """

    prompts: tuple[Chunk, ...]
    decodes: tuple[int, ...]
    dropped: tuple[int, ...]
    returned: tuple[int, ...]
    read: int
    pairs: int

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens that are computed."""
        return sum(chunk.count for chunk in self.prompts)
