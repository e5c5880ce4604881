"""Context-free windows by brute force: every window of a family near the origin, listed from its definition."""

from __future__ import annotations

from hypothesis import strategies as st

import slicewise as sw
from slicewise.windows import Between, Cumulative, Landmark, Sliding, Window

#: Times that tests ask about lie within this, windows that could matter to them within FAR.
NEAR, FAR = 60, 250


def windows_of(window: Window) -> list[tuple[int, int]]:
    """All windows of a family as (start, end), within FAR of the origin."""
    if isinstance(window, Sliding):
        every, length, offset = int(window.every.size), int(window.length.size), int(window.offset)
        return [(s, s + length) for s in range(offset - FAR * every, FAR * every, every) if abs(s) <= FAR]
    if isinstance(window, Cumulative):
        every, length, offset = int(window.every.size), int(window.length.size), int(window.offset)
        periods = range(offset - FAR * length, FAR * length, length)
        growing = range(every, length + 1, every)
        return [(p, p + grown) for p in periods for grown in growing if abs(p) <= FAR]
    if isinstance(window, Landmark):
        every, since = int(window.every.size), int(window.since)
        return [(since, end) for end in range(since + every, FAR, every)]
    assert isinstance(window, Between)
    return [(int(window.start), int(window.end))]


def edges_of(windows: list[Window]) -> list[int]:
    """Where any window begins or ends."""
    return sorted({edge for w in windows for both in windows_of(w) for edge in both})


def step_of(window: Window, start: int, end: int) -> int:
    """Where the part of a window begins that must have brought rows for it to be reported."""
    return max(start, end - int(window.every.size)) if isinstance(window, Landmark) else start


def open_starts_of(windows: list[Window], horizon: int) -> list[int]:
    """The begins at or before the horizon that windows beyond it still need; of a landmark also its present step."""
    found = set()
    for window in windows:
        still_open = [(s, e) for s, e in windows_of(window) if e > horizon]
        found |= {s for s, _ in still_open}
        if isinstance(window, Landmark) and still_open:
            found.add(step_of(window, *min(still_open)))
    return sorted(s for s in found if s <= horizon)


def context_free(*, landmarks: bool = True) -> st.SearchStrategy[Window]:
    """One context-free window: slides shorter, equal and longer than lengths, offsets, negative times."""
    length, offset = st.integers(1, 20), st.integers(-9, 9)
    kinds = [
        st.builds(lambda n, o: sw.tumbling(n, offset=o), length, offset),
        st.builds(lambda n, e, o: sw.sliding(n, every=e, offset=o), length, length, offset),
        st.builds(
            lambda e, k, o: sw.cumulative(e * k, every=e, offset=o), st.integers(1, 6), st.integers(1, 4), offset
        ),
        st.builds(lambda s, n: sw.between(s, s + n), st.integers(-50, 40), length),
    ]
    if landmarks:
        kinds.append(st.builds(lambda e, s: sw.landmark(every=e, since=s), st.integers(1, 15), st.integers(-50, 50)))
    return st.one_of(kinds)


def mixes(*, landmarks: bool = True) -> st.SearchStrategy[list[Window]]:
    """Some context-free windows."""
    return st.lists(context_free(landmarks=landmarks), min_size=1, max_size=4, unique=True)
