"""How long an autoscaler must want more, or less, before it gets it."""

from collections import deque


class Windows:
    """The latest wants of one model: only what all of them agree on is done."""

    def __init__(self, up_ticks: int, down_ticks: int):
        self.up_ticks, self.down_ticks = up_ticks, down_ticks
        self.wants: deque[int] = deque(maxlen=max(up_ticks, down_ticks))

    def settle(self, want: int, n: int) -> int:
        """What to do about the latest `want` where `n` rows are up or starting: the least change that all agree on."""
        self.wants.append(want)
        wants = list(self.wants)
        lately, down = wants[-self.up_ticks :], wants[-self.down_ticks :]
        if len(down) == self.down_ticks and max(down) < n:
            return max(down)
        if len(lately) == self.up_ticks and min(lately) > n:
            return min(lately)
        return n
