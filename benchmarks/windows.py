"""How much does each kind of window cost?  One run, every answer checked against plain NumPy.

    python benchmarks/windows.py [--rows N] [--repeat K]

Each kind in order and with 20 % of the tuples delayed by 0..2 s, beside a tumbling time window on the same stream; then
1 to 1000 concurrent count windows out of order, beside a tuple buffer that computes each window from its rows whenever
it is reported or corrected; then slide policies over windows of 500, 5 000 and 50 000 rows, a row at a time, in batches
and out of order: what a row takes should not depend on the size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from _harness import Spread, arguments, heading, save

import slicewise as sw
from slicewise.columns import Column
from slicewise.testing import Stream, disordered, football

SECOND = 1_000_000
CHUNK = 20_000
Windows = tuple[np.ndarray, np.ndarray]


class EveryHundredth:
    """A user's window, a batch at a time: one begins with every hundredth row and ends when the next but one begins."""

    def __init__(self) -> None:
        self.seen = 0

    def on_batch(self, times: np.ndarray, columns: dict) -> tuple[np.ndarray, np.ndarray]:
        number = self.seen + np.arange(len(times))
        self.seen += len(times)
        begins = number % 100 == 0
        return begins.astype(int), (begins & (number >= 200)).astype(int)


class EverySecond:
    """A user's window that places its edges: a second, if it has rows."""

    def notify_context(self, time: int, row: dict, edges: object) -> None:
        start = time - time % SECOND
        if not edges.starts or edges.starts[-1] < start:
            edges.add_start(start)
            edges.add_end(start + SECOND)


class SecondsSchedule:
    """A schedule of the user's: tumbling windows of a second."""

    def next_edge(self, t: int) -> int:
        return t // SECOND * SECOND + SECOND

    def windows(self, after: int, upto: int) -> dict[str, np.ndarray]:
        start = np.arange(after // SECOND, -(-upto // SECOND)) * SECOND
        return {"start": start, "end": start + SECOND}


def _seconds() -> dict[str, np.ndarray]:
    """A table of edges: the seconds of a day, in any order."""
    start = np.random.default_rng(3).permutation(86_400) * SECOND
    return {"start": start, "end": start + SECOND}


def kinds() -> dict[str, tuple[object, Callable[[np.ndarray, np.ndarray], Windows]]]:
    """Windows, each with its own plain definition: from times and values in order to ranges of rows."""
    return {
        "tumbling 1 s": (sw.tumbling("1 second"), _every_second),
        "the same from a table": (sw.edges(_seconds()), _every_second),
        "the same from a schedule": (sw.edges(SecondsSchedule()), _every_second),
        "tumbling rows(1000)": (sw.tumbling(sw.rows(1000)), lambda t, v: _counts(len(t), 1000, 1000)),
        "sliding rows(1000), every rows(100)": (
            sw.sliding(sw.rows(1000), every=sw.rows(100)),
            lambda t, v: _counts(len(t), 1000, 100),
        ),
        "between rows(1000) and rows(9000)": (
            sw.between(sw.rows(1000), sw.rows(9000)),
            lambda t, v: (np.array([1000]), np.array([9000])),
        ),
        "landmark, every rows(1000)": (
            sw.landmark(every=sw.rows(1000)),
            lambda t, v: _since_start(np.arange(1000, len(t) + 1, 1000)),
        ),
        "cumulative rows(10000), every rows(1000)": (
            sw.cumulative(sw.rows(10_000), every=sw.rows(1000)),
            lambda t, v: _growing(np.arange(1000, len(t) + 1, 1000), 10_000),
        ),
        "tumbling units(1000)": (sw.tumbling(sw.units(1000, "odometer")), _units),
        "landmark, every units(1000)": (
            sw.landmark(every=sw.units(1000, "odometer"), since=0),
            lambda t, v: _since_start(_units(t, v)[1]),
        ),
        "cumulative units(10000), every units(1000)": (
            sw.cumulative(sw.units(10_000, "odometer"), every=sw.units(1000, "odometer")),
            _growing_units,
        ),
        "session units(1)": (sw.session(sw.units(1, "odometer")), _unit_sessions),
        "punctuated": (sw.punctuated("v < 100"), _punctuated),
        "punctuated, with an end": (sw.punctuated("v < 100", "v > 20000"), _with_ends),
        "punctuated, by rows that are no data": (sw.punctuated("v < 100"), _between_markers),
        "frames": (sw.frames("v > 20000"), _frames),
        "rows(1000), every 1 s": (sw.sliding(sw.rows(1000), every="1 second"), _last_rows),
        "1 s, every rows(100)": (sw.sliding("1 second", every=sw.rows(100)), _last_second),
        "user defined, in batches": (sw.user_defined(EveryHundredth), _every_hundredth),
        "user defined, by edges": (sw.user_defined(EverySecond), _every_second),
    }


def _every_second(t: np.ndarray, v: np.ndarray) -> Windows:
    starts = np.unique(t // SECOND) * SECOND
    return np.searchsorted(t, starts), np.searchsorted(t, starts + SECOND)


def _counts(n: int, length: int, every: int) -> Windows:
    low = np.arange(0, n - length + 1, every)
    return low, low + length


def _units(t: np.ndarray, v: np.ndarray) -> Windows:
    odometer = t // 1000
    starts = np.unique(odometer // 1000) * 1000
    return np.searchsorted(odometer, starts), np.searchsorted(odometer, starts + 1000)


def _since_start(high: np.ndarray) -> Windows:
    return np.zeros(len(high), np.int64), high


def _growing(high: np.ndarray, length: int) -> Windows:
    return (high - 1) // length * length, high


def _growing_units(t: np.ndarray, v: np.ndarray) -> Windows:
    odometer = t // 1000
    bases = np.unique(odometer // 10_000) * 10_000
    low, high = np.repeat(bases, 10), (bases[:, None] + np.arange(1000, 10_001, 1000)).ravel()
    low, high = np.searchsorted(odometer, low), np.searchsorted(odometer, high)
    return low[low < high], high[low < high]


def _unit_sessions(t: np.ndarray, v: np.ndarray) -> Windows:
    low = np.concatenate([[0], 1 + np.flatnonzero(np.diff(t // 1000) > 1)])
    return low, np.append(low[1:], len(t))


def _with_ends(t: np.ndarray, v: np.ndarray) -> Windows:
    events = np.flatnonzero((v < 100) | (v > 20000))
    starts = v[events] < 100
    return events[starts], np.append(events[1:], len(t))[starts]


def _between_markers(t: np.ndarray, v: np.ndarray) -> Windows:
    """From marker to marker, without the markers; windows without data are not reported."""
    low, high = _punctuated(t, v)
    low = low + (v[low] < 100)
    return low[low < high], high[low < high]


def _punctuated(t: np.ndarray, v: np.ndarray) -> Windows:
    low = np.unique(np.concatenate([[0], np.flatnonzero(v < 100)]))
    return low, np.append(low[1:], len(t))


def _frames(t: np.ndarray, v: np.ndarray) -> Windows:
    meets = np.concatenate([[False], v > 20000, [False]])
    return np.flatnonzero(meets[1:] & ~meets[:-1]), np.flatnonzero(~meets[1:] & meets[:-1])


def _last_rows(t: np.ndarray, v: np.ndarray) -> Windows:
    high = np.searchsorted(t, np.arange(t[0] // SECOND + 1, t[-1] // SECOND + 2) * SECOND)
    return np.maximum(high - 1000, 0), high


def _last_second(t: np.ndarray, v: np.ndarray) -> Windows:
    last = np.arange(99, len(t), 100)
    return np.searchsorted(t, t[last] - SECOND, "right"), last + 1


def _every_hundredth(t: np.ndarray, v: np.ndarray) -> Windows:
    low = np.arange(0, len(t), 100)
    return low, np.minimum(low + 200, len(t))


def batches(stream: Stream) -> list[dict[str, np.ndarray]]:
    return [{"t": c.times, "v": c.columns["v"], "odometer": c.times // 1000} for c in stream.chunks(CHUNK)]


def run(
    workload: sw.Workload, chunks: list[dict], ordered: bool, wait: int = 2 * SECOND
) -> tuple[float, list[sw.Results]]:
    """Seconds for all chunks but the first, which warms up, and the results."""
    op = workload.operator(ordered=ordered)
    results, latest, started = [], 0, 0.0
    for number, chunk in enumerate(chunks):
        started = time.perf_counter() if number == 1 else started
        results.append(op.process_batch(chunk))
        if not ordered:
            latest = max(latest, int(chunk["t"].max()))
            results.append(op.advance(latest - wait))
    return time.perf_counter() - started, [*results, op.close()]


def check(results: list[sw.Results], stream: Stream, define: Callable) -> int:
    """Compare the totals of all windows with the plain definition, in the order of their first rows."""
    order = np.argsort(stream.times, kind="stable")
    times, values = stream.times[order], stream.columns["v"][order]
    low, high = define(times, values)
    running = np.concatenate([[0], np.cumsum(values)])
    found = np.concatenate([b.values[0].values for r in results for b in r.blocks])
    assert np.array_equal(np.sort(found), np.sort(running[high] - running[low])), "totals differ"
    return len(found)


def each_kind(rows: int, repeat: int) -> Iterator[dict]:
    in_order = football(rows, seed=1)
    streams = {"in order": in_order, "out of order": disordered(in_order, 0.2, 2 * SECOND, seed=2)}
    for case, stream in streams.items():
        chunks = batches(stream)
        print(f"\n{case}: million tuples/s, and what part of tumbling's that is")
        base = 0.0
        for name, (window, define) in kinds().items():
            markers = "v < 100" if define is _between_markers else None
            workload = sw.Workload("t", unit="microseconds", punctuation=markers).query("q", window, total=sw.sum("v"))
            _, results = run(workload, chunks, case == "in order")
            answers = check(results, stream, define)
            seconds = Spread.of([run(workload, chunks, case == "in order")[0] for _ in range(repeat)]).median
            rate = (rows - CHUNK) / seconds / 1e6
            base = base or rate
            verdict = "" if rate >= base / 10 else "  BELOW A TENTH"
            print(f"  {name:<42} {rate:>7.2f}   1/{base / rate:<5.1f} {answers:>7} answers checked{verdict}")
            yield {"table": "each kind", "case": case, "window": name, "rate": rate}


class TupleBuffer:
    """The rival: all rows in order, and every window computed anew from its rows whenever it is reported.

    When a row comes late, every window from its place on holds other rows, and is computed again. Bookkeeping is done
    on arrays for all windows at once; ``fold`` computes sums of ranges of rows, and looks at each row of each range.
    """

    def __init__(self, lengths: np.ndarray, fold: Callable, lateness: int) -> None:
        self.lengths, self.fold, self.lateness = lengths, fold, lateness
        self.times, self.values = np.empty(0, np.int64), np.empty(0, np.int64)
        self.dropped = 0
        self.next = np.zeros(len(lengths), np.int64)  # of each length, the first window that was never reported

    def step(self, chunk: dict[str, np.ndarray], watermark: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The windows to report, as lengths and starts, with their sums."""
        had = len(self.times)
        times, values = np.concatenate([self.times, chunk["t"]]), np.concatenate([self.values, chunk["v"]])
        order = np.argsort(times, kind="stable")
        self.times, self.values = times[order], values[order]
        moved = np.flatnonzero(order[:had] != np.arange(had))
        changed = self.dropped + (int(moved[0]) if len(moved) else had)
        complete = self.dropped + int(np.searchsorted(self.times, watermark))
        first, last = np.minimum(self.next, changed // self.lengths), complete // self.lengths
        many = np.maximum(last - first, 0)
        which = np.repeat(np.arange(len(many)), many)
        start = (np.arange(len(which)) - np.repeat(np.cumsum(many) - many - first, many)) * self.lengths[which]
        low = start - self.dropped
        sums = self.fold(self.times, self.values, low, low + self.lengths[which])
        self.next = np.maximum(self.next, last)
        final = self.dropped + int(np.searchsorted(self.times, watermark - self.lateness))
        gone = int(((np.minimum(final // self.lengths, self.next)) * self.lengths).min()) - self.dropped
        self.times, self.values, self.dropped = self.times[gone:], self.values[gone:], self.dropped + gone
        return self.lengths[which], start, sums


def bare_sums(times: np.ndarray, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The fastest there is for sums of integers and nothing else: one call of NumPy, no nulls, no overflow."""
    if not len(low):
        return low
    both = np.stack([low, high], axis=1).ravel()
    return np.add.reduceat(np.append(values, 0), both)[::2]


def same_sums(times: np.ndarray, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """What any aggregate takes: its own functions on arrays, as slicewise calls them, over the rows of each window."""
    monoid, start = sw.sum("v").bind(pa.int64()), np.zeros(1, np.int64)
    out = np.empty(len(low), np.int64)
    for i, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        out[i] = monoid.lift_fold([Column(values[a:b], pa.int64())], times[a:b], start)[0][0]
    return out


def run_buffer(
    lengths: np.ndarray, fold: Callable, chunks: list[dict], wait: int, lateness: int
) -> tuple[float, int, dict[tuple[int, int], int]]:
    """Seconds, how many answers, and the last answer for each window."""
    buffer, latest, found, started = TupleBuffer(lengths, fold, lateness), 0, [], 0.0
    for number, chunk in enumerate(chunks):
        started = time.perf_counter() if number == 1 else started
        latest = max(latest, int(chunk["t"].max()))
        found.append(buffer.step(chunk, latest - wait))
    seconds = time.perf_counter() - started
    found.append(buffer.step({"t": chunks[0]["t"][:0], "v": chunks[0]["v"][:0]}, 2**62))
    answers = [np.concatenate(c).tolist() for c in zip(*found, strict=True)]
    return seconds, len(answers[0]), {(n, at): total for n, at, total in zip(*answers, strict=True)}


def final_answers(results: list[sw.Results], lengths: np.ndarray) -> dict[tuple[int, int], int]:
    """The last answer for each window of the workload's."""
    return {
        (int(lengths[q]), int(at)): int(total)
        for r in results
        for b in r.blocks
        for q, at, total in zip(b.query, b.start, b.values[0].values, strict=True)
    }


def many_counts(rows: int, repeat: int) -> Iterator[dict]:
    stream = disordered(football(rows, seed=3), 0.2, 2 * SECOND, seed=4)
    chunks = batches(stream)
    cases = {
        "reported 2 s later, never corrected": (2 * SECOND, 0),
        "reported at once, corrected for 2 s": (0, 2 * SECOND),
    }
    print("\nconcurrent tumbling count windows of 1000..20 000 rows, sum, out of order: million tuples/s")
    print("beside a tuple buffer: with the same functions as slicewise, and with one bare call of np.add.reduceat")
    for case, (wait, lateness) in cases.items():
        print(f"  {case}")
        for windows in (1, 10, 100, 1000):
            lengths = np.unique(1000 + 19_000 * np.arange(windows) // max(1, windows - 1))
            workload = sw.Workload("t", lateness=lateness)
            for length in lengths.tolist():
                workload = workload.query(f"w{length}", sw.tumbling(sw.rows(length)), total=sw.sum("v"))
            ours, same, bare = [], [], []
            for _ in range(repeat):
                ours.append(run(workload, chunks, False, wait)[0])
                same.append(run_buffer(lengths, same_sums, chunks, wait, lateness)[0])
                bare.append(run_buffer(lengths, bare_sums, chunks, wait, lateness)[0])
            results = run(workload, chunks, False, wait)[1]
            _, answers, expected = run_buffer(lengths, bare_sums, chunks, wait, lateness)
            assert sum(map(len, results)) == answers, "one of the two says more than the other"
            assert final_answers(results, lengths) == expected, "the two disagree"
            a, b, c = ((rows - CHUNK) / Spread.of(s).median / 1e6 for s in (ours, same, bare))
            print(
                f"  {windows:>5} windows   slicewise {a:>6.2f}   same functions {b:>6.2f} {a / b:>6.1f}x"
                f"   bare {c:>6.2f} {a / c:>5.1f}x   {answers:>7} answers checked"
            )
            rates = {"slicewise": a, "same functions": b, "bare": c}
            yield {"table": "counts", "case": case, "windows": windows, **rates}


def _policy(n: int) -> sw.Workload:
    def evict(total: dict, oldest: dict) -> bool:
        return bool(total["n"] - oldest["n"] >= n)

    window = sw.policy(evict, watch={"n": sw.count()})
    return sw.Workload("t", lateness=100).query("last", window, total=sw.sum("v"))


def policies(repeat: int, rows: int = 1000) -> Iterator[dict]:
    """Milliseconds per row under a policy, each answer checked."""
    print(f"\n{'policy, ms per row':24}{'a row at a time':>18}{'in a batch':>14}{'out of order':>16}")
    for n in (500, 5_000, 50_000):
        times: dict[str, list[float]] = {"single": [], "batch": [], "late": []}
        for _ in range(repeat):
            op = _policy(n).operator(types={"v": pa.int64()})
            values = np.random.default_rng(n).integers(0, 1000, n + 2 * rows)
            op.process_batch({"t": np.arange(n) * 2, "v": values[:n]})
            op.advance(2 * n)
            start = time.perf_counter()
            for i in range(n, n + rows):
                op.process(2 * i, {"v": int(values[i])})
                (result,) = op.advance(2 * i + 1)
                if result.values["total"] != values[i + 1 - n : i + 1].sum():
                    raise SystemExit(f"the sum of the last {n} rows is wrong at row {i}")
            times["single"].append((time.perf_counter() - start) / rows)
            at = n + rows
            start = time.perf_counter()
            op.process_batch({"t": np.arange(at, at + rows) * 2, "v": values[at : at + rows]})
            *_, result = op.advance(2 * (at + rows))
            times["batch"].append((time.perf_counter() - start) / rows)
            if result.values["total"] != values[at + rows - n : at + rows].sum():
                raise SystemExit(f"the sum of the last {n} rows is wrong after a batch")
            start = time.perf_counter()
            for i in range(20):  # each lies before the last 30 rows and a few others, all of which are corrected
                op.process(2 * (at + rows - 30) - 1, {"v": 1})
                op.advance(2 * (at + rows) + i + 1)
            times["late"].append((time.perf_counter() - start) / 20)
        shown = [Spread.of(t).median * 1000 for t in times.values()]
        print(f"{n:>12,} rows{'':7}{shown[0]:>18.2f}{shown[1]:>14.3f}{shown[2]:>16.2f}")
        yield {"table": "policies", "rows": n, **dict(zip(times, shown, strict=True))}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    print(heading(rows=given.rows))
    found = [*each_kind(given.rows, given.repeat), *many_counts(given.rows, given.repeat), *policies(given.repeat)]
    save(given.save, found)


if __name__ == "__main__":
    main()
