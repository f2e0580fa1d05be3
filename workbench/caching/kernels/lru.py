"""An LRU cache under requests: replay of a sequence, and the exact distributions for equally popular models."""

import math

import numpy as np

from workbench.jit import kernel


@kernel
def lru_replay(time_s, model, models, capacity, stay_s, idle_s):
    """Fill, for every eviction, how long the model had been in the cache and how long since its last use.

    Parameters:
        time_s: float64[n], requests in order. model: int64[n], which of `models` each asks for.
        capacity: how many the cache holds.
        stay_s, idle_s: float64[n], filled from the front.

    Returns how many evictions there were.
    """
    held = np.full(capacity, -1, np.int64)  # most recently used first
    loaded, used = np.zeros(models), np.zeros(models)
    evictions = 0
    for request in range(time_s.size):
        wanted, now = model[request], time_s[request]
        place = 0
        while place < capacity - 1 and held[place] != wanted:
            place += 1
        if held[place] != wanted:
            if held[place] >= 0:
                stay_s[evictions] = now - loaded[held[place]]
                idle_s[evictions] = now - used[held[place]]
                evictions += 1
            loaded[wanted] = now
        for later in range(place, 0, -1):
            held[later] = held[later - 1]
        held[0] = wanted
        used[wanted] = now
    return evictions


@kernel
def lru_gone(models, capacity, requests, stay, idle):
    """Fill P(evicted by now) after an expected number of requests to all models together, all equally popular.

    Parameters:
        requests: float64[k], expected requests since the load (or since the last use).
        stay, idle: float64[k]; `idle` counts from a last use after which none follows.

    Requests are Poisson, so their number is; each moves a model that is not asked for one place back when it asks for
    one behind it. `stay` starts over whenever the model itself is asked for, `idle` excludes that.
    """
    for place in range(requests.size):
        mean = requests[place]
        stays, idles = np.zeros(capacity), np.zeros(capacity)  # where it stands, the most recently used place first
        stays[0], idles[0] = 1.0, 1.0
        stay_left, idle_left = 0.0, 0.0
        for count in range(int(mean + 12 * math.sqrt(mean) + 40)):
            weight = 1.0 if count == 0 else 0.0
            if mean > 0:
                weight = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1.0))
            stay_left += weight * stays.sum()
            idle_left += weight * idles.sum()
            again = stays.sum() / models
            for at in range(capacity - 1, 0, -1):
                stays[at] = (stays[at] * at + stays[at - 1] * (models - at)) / models
                idles[at] = (idles[at] * at + idles[at - 1] * (models - at + 1)) / models
            stays[0], idles[0] = again, 0.0
        stay[place], idle[place] = 1 - stay_left, 1 - idle_left


def lru_replay_slow(time_s, model, capacity):
    """The same replay over a plain list: rows (stay, idle), one an eviction."""
    cache, rows = [], []  # [name, loaded, used], most recently used first
    for now, wanted in zip(time_s, model, strict=True):
        entry = next((entry for entry in cache if entry[0] == wanted), None)
        if entry is None:
            if len(cache) == capacity:
                _, loaded, used = cache.pop()
                rows.append((now - loaded, now - used))
            entry = [wanted, now, now]
        else:
            cache.remove(entry)
        entry[2] = now
        cache.insert(0, entry)
    return rows
