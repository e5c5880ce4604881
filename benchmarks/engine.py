"""How fast is the engine?  One table per question, one run, every answer checked.

    python benchmarks/engine.py [--quick] [--rows N] [--repeat K] [--only TABLE ...]

1. Figures 8 and 9 of general stream slicing: 1 to 1000 concurrent tumbling windows with lengths spread over 1..20 s,
   2000 tuples per second of event time, sum; in order, and with 20 % of the tuples delayed by 0..2 s plus a session
   window. Beside two floors measured in the same run: ``np.add.reduceat`` over the same chunks, and a bare Python loop.
2. Flatness: one sliding window of 1 to 1000 s every second.
3. Steps of 2000 tuples: the same windows in whole seconds, a watermark a second; microseconds per step.
4. Small steps: one row and one window due, while 10^2 to 10^5 slices are held (general stream slicing, Figure 11).
5. Memory: what is stored while the rate of tuples grows.

Rates are medians over the repetitions, with the spread from the slowest to the fastest. The machine may be shared: read
the ratios.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from _harness import Spread, arguments, bar, heading, in_turns, rate_of, save

import slicewise as sw
from slicewise.testing import Stream, disordered, football

SECOND = 1_000_000
CONCURRENT = (1, 10, 100, 1000)
TABLES = ("concurrent", "one at a time", "flatness", "steps", "small steps", "memory")
#: Scotty (Java, one thread, JIT warm) on a machine of the same kind; million tuples per second at 1, 10, 100 and 1000
#: windows. Not measured in this run, so a comparison with it is only as good as the machine is the same.
SCOTTY = {
    ("in order", "seconds"): (38, 37, 30, 21),
    ("in order", "milliseconds"): (38, 37, 20, 0.5),
    ("out of order", "seconds"): (18, 20, 19, 13),
    ("out of order", "milliseconds"): (18, 18, 12, 0.5),
}


def lengths(windows: int, unit: str) -> list[int]:
    """Window lengths spread evenly over 1..20 seconds, in whole seconds or in distinct milliseconds."""
    if unit == "seconds":
        return [(1 + i % 20) * SECOND for i in range(windows)]
    return [SECOND + round(19_000 * i / max(1, windows - 1)) * 1000 for i in range(windows)]


def tumbling_workload(windows: int, unit: str, session: bool) -> sw.Workload:
    workload = sw.Workload("t", unit="microseconds", watermark="2 seconds")
    for i, length in enumerate(lengths(windows, unit)):
        workload = workload.query(f"w{i}", sw.tumbling(f"{length} us"), total=sw.sum("v"))
    return workload.query("session", sw.session("1 second"), total=sw.sum("v")) if session else workload


def chunks_of(stream: Stream, seconds: int = 10) -> list[dict[str, np.ndarray]]:
    """Chunks of some seconds of arrivals."""
    return [{"t": c.times, "v": c.columns["v"]} for c in stream.chunks(2000 * seconds)]


def run_batches(workload: sw.Workload, chunks: list[dict], ordered: bool) -> tuple[float, list[sw.Results], object]:
    """Seconds for all chunks but the first, which warms up; the results; the operator."""
    op = workload.operator(ordered=ordered)
    results, latest, started = [], 0, 0.0
    for number, chunk in enumerate(chunks):
        if number == 1:
            started = time.perf_counter()
        results.append(op.process_batch(chunk))
        if not ordered:
            latest = max(latest, int(chunk["t"].max()))
            results.append(op.advance(latest - 2 * SECOND))
    seconds = time.perf_counter() - started
    stats = op.stats()
    results.append(op.close())
    return seconds, results, stats


def check_answers(workload: sw.Workload, results: list[sw.Results], stream: Stream) -> int:
    """Compare every window of every query with plain NumPy over the whole stream; returns how many there were."""
    order = np.argsort(stream.times, kind="stable")
    times, values = stream.times[order], stream.columns["v"][order]
    blocks = [b for r in results for b in r.blocks]
    query = np.concatenate([b.query for b in blocks])
    start = np.concatenate([b.start for b in blocks])
    total = np.concatenate([b.values[0].values for b in blocks])
    for number, said in enumerate(workload.queries):
        mine = np.flatnonzero(query == number)
        mine = mine[np.argsort(start[mine])]
        expected_start, expected = _expected(said.window, times, values)
        assert np.array_equal(start[mine], expected_start), f"{said.name}: windows differ"
        assert np.array_equal(total[mine], expected), f"{said.name}: totals differ"
    return len(query)


def _expected(window: object, times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    running = np.concatenate([[0], np.cumsum(values)])
    if window.kind == "session":
        starts = np.concatenate([[0], np.flatnonzero(np.diff(times) > window.gap.size) + 1])
        return times[starts], np.add.reduceat(values, starts)
    length, every = window.length.size, window.every.size
    first, last = (times[0] - length) // every + 1, times[-1] // every
    start = np.arange(first, last + 1) * every
    low, high = np.searchsorted(times, start), np.searchsorted(times, start + length)
    held = low < high
    return start[held], (running[high] - running[low])[held]


def floor_reduceat(chunks: list[dict]) -> float:
    """Nothing but summing the same chunks by whole seconds."""
    started = time.perf_counter()
    for chunk in chunks[1:]:
        seconds = np.arange(int(chunk["t"][0]) // SECOND + 1, int(chunk["t"][-1]) // SECOND + 1) * SECOND
        starts = np.concatenate([[0], np.searchsorted(chunk["t"], seconds)])
        np.add.reduceat(chunk["v"], starts[starts < len(chunk["t"])])
    return time.perf_counter() - started


def concurrent_windows(rows: int, repeat: int) -> Iterator[dict]:
    """Figures 8 and 9, process_batch."""
    ordered_stream = football(rows, seed=1)
    streams = {"in order": ordered_stream, "out of order": disordered(ordered_stream, 0.2, 2 * SECOND, seed=2)}
    for case, stream in streams.items():
        chunks = chunks_of(stream)
        counted = rows - len(chunks[0]["t"])
        print(f"\nprocess_batch, {case}{' with a session window' if case != 'in order' else ''}: million tuples/s")
        columns = f"{'windows':>8} {'lengths':<13} {'slicewise':<24} {'reduceat':<24} {'Scotty*':>8}"
        print(f"  {columns} {'slices':>7} {'KiB':>6}")
        for unit in ("seconds", "milliseconds"):
            for place, windows in enumerate(CONCURRENT):
                workload = tumbling_workload(windows, unit, session=case != "in order")
                _, results, stats = run_batches(workload, chunks, case == "in order")
                checked = check_answers(workload, results, stream)
                ours, floor = in_turns(
                    repeat,
                    lambda w=workload, c=chunks, o=case == "in order": run_batches(w, c, o)[0],
                    lambda c=chunks: floor_reduceat(c),
                )
                rate, base, scotty = rate_of(counted, ours), rate_of(counted, floor), SCOTTY[case, unit][place]
                print(
                    f"  {windows:>8} {unit:<13} {rate!s:<24} {base!s:<24} {scotty:>8} {stats.slices:>7} "
                    f"{stats.bytes / 1024:>6.1f}  {'ahead' if rate.median > scotty else 'BEHIND'}, {checked} answers"
                )
                yield {
                    "table": "concurrent",
                    "case": case,
                    "unit": unit,
                    "windows": windows,
                    "rate": rate.median,
                    "reduceat": base.median,
                    "scotty": scotty,
                    "slices": stats.slices,
                    "bytes": stats.bytes,
                }


def one_at_a_time(rows: int, repeat: int) -> Iterator[dict]:
    """Process, one tuple at a time, beside a bare loop over the same rows."""
    stream = football(rows, seed=3)
    late = disordered(stream, 0.2, 2 * SECOND, seed=4)
    print("\nprocess, one tuple at a time: million tuples/s")
    print(f"  {'windows':>8} {'stream':<13} {'slicewise':<24} {'bare loop':<24} {'ratio':>6}")
    for case, source in (("in order", stream), ("out of order", late)):
        pairs = [(int(t), {"v": int(v)}) for t, v in zip(source.times, source.columns["v"], strict=True)]

        def bare(pairs: list = pairs) -> float:
            """What any tuple-at-a-time code must do at least: look at the tuple and keep its time and value."""
            started = time.perf_counter()
            times: list[int] = []
            values: list[int] = []
            for t, row in pairs:
                times.append(t)
                values.append(row["v"])
            return time.perf_counter() - started

        for windows in CONCURRENT:
            workload = tumbling_workload(windows, "seconds", session=case != "in order")

            def ours(workload: sw.Workload = workload, pairs: list = pairs, case: str = case) -> float:
                op = workload.operator(ordered=case == "in order", types={"v": "bigint"})
                for t, row in pairs[:20_000]:
                    op.process(t, row)
                process, due = op.process, pairs[20_000][0] + 10 * SECOND
                started = time.perf_counter()
                if case == "in order":
                    for t, row in pairs[20_000:]:
                        process(t, row)
                else:
                    for t, row in pairs[20_000:]:
                        process(t, row)
                        if t >= due:
                            op.advance(t - 2 * SECOND)
                            due = t + 10 * SECOND
                return time.perf_counter() - started

            op = workload.operator(ordered=case == "in order")
            found = [op.process(t, row) for t, row in pairs]
            check_answers(workload, [*[r for r in found if r], op.close()], source)
            mine, loop = in_turns(repeat, ours, bare)
            rate, base = rate_of(rows - 20_000, mine), rate_of(rows, loop)
            print(f"  {windows:>8} {case:<13} {rate!s:<24} {base!s:<24} {base.median / rate.median:>6.1f}")
            yield {
                "table": "one at a time",
                "case": case,
                "windows": windows,
                "rate": rate.median,
                "bare loop": base.median,
            }


def flatness(rows: int, repeat: int) -> Iterator[dict]:
    """One sliding window of growing length, every second."""
    stream = football(rows, seed=5)
    chunks = chunks_of(stream)
    counted = rows - len(chunks[0]["t"])
    floats = [{"t": c["t"], "v": c["v"].astype(float)} for c in chunks]
    print("\nsliding window every second, in order: million tuples/s")
    print(f"  {'length':>8} {'sum of integers':<24} {'sum of floats':<24} {'max':<24}")
    for seconds in (1, 10, 100, 1000):
        window = sw.sliding(f"{seconds} seconds", every="1 second")
        summing = sw.Workload("t", unit="microseconds").query("w", window, total=sw.sum("v"))
        highest = sw.Workload("t", unit="microseconds").query("w", window, total=sw.max("v"))
        check_answers(summing, run_batches(summing, chunks, True)[1], stream)
        found = in_turns(
            repeat,
            lambda w=summing: run_batches(w, chunks, True)[0],
            lambda w=summing: run_batches(w, floats, True)[0],
            lambda w=highest: run_batches(w, chunks, True)[0],
        )
        rates = [rate_of(counted, s) for s in found]
        print(f"  {seconds:>7}s " + " ".join(f"{r!s:<24}" for r in rates))
        yield {"table": "flatness", "seconds": seconds, "rates": [r.median for r in rates]}


def steps(rows: int, repeat: int) -> Iterator[dict]:
    """A second of arrivals at a time: what a step costs that has few rows."""
    stream = football(rows, seed=1)
    cases = {"in order": stream, "out of order": disordered(stream, 0.2, 2 * SECOND, seed=2)}
    print("\n2000 tuples a step, a watermark a second, out of order with a session window: microseconds per step")
    taken: dict[tuple[str, int], float] = {}
    for case, source in cases.items():
        chunks = chunks_of(source, seconds=1)
        for windows in CONCURRENT:
            workload, ordered = tumbling_workload(windows, "seconds", session=case != "in order"), case == "in order"
            _, results, _ = run_batches(workload, chunks, ordered)
            checked = check_answers(workload, results, source)
            spent = [run_batches(workload, chunks, ordered)[0] for _ in range(repeat)]
            step = Spread.of([seconds * 1e6 / (len(chunks) - 1) for seconds in spent])
            taken[case, windows] = step.median
            print(f"  {windows:>8} {case:<13} {step!s:<24} {checked} answers")
            yield {"table": "steps", "case": case, "windows": windows, "microseconds": step.median}
    fewest, most = CONCURRENT[0], CONCURRENT[-1]
    bar("a step of one query, in order, at most 90 us", taken["in order", fewest], at_most=90)
    bar("a step of 1000 queries, in order, at most 130 us", taken["in order", most], at_most=130)
    for windows in (fewest, most):
        ratio = taken["out of order", windows] / taken["in order", windows]
        bar(f"{windows} queries out of order with a session, at most 2.5 times that", ratio, at_most=2.5)


def small_steps(repeat: int) -> Iterator[dict]:
    """One row a step and one window due, with more and more slices held: microseconds and combines per step."""
    print("\none row a step, one window due: microseconds per step (combines)")
    print(f"  {'slices':>8} {'max, eager':>20} {'sum, prefix':>20}")
    for held in (100, 1_000, 10_000, 100_000):
        found = [_small_steps(aggregate, held, 40 * repeat) for aggregate in (sw.max, sw.sum)]
        print(f"  {held:>8} " + " ".join(f"{us:>12.0f} ({combines:>5.1f})" for us, combines in found))
        yield {"table": "small steps", "slices": held, "microseconds": [f[0] for f in found]}


def _small_steps(aggregate: Callable[[str], object], held: int, steps: int) -> tuple[float, float]:
    workload = sw.Workload("t").query("w", sw.sliding(held, every=1), a=aggregate("v"))
    op = workload.operator(types={"v": "bigint"})
    values = np.arange(held + steps + 20) * 7 % 1009
    op.process_batch({"t": np.arange(held), "v": values[:held]})
    op.advance(held - 1)
    seconds, before = [], 0
    for t in range(held, held + steps + 20):
        if t == held + 20:
            before = op.stats().combines
        started = time.perf_counter()
        op.process(t, {"v": int(values[t])})
        (result,) = op.advance(t)
        seconds.append(time.perf_counter() - started)
        window = values[result.start : result.end] if result.start >= 0 else values[: result.end]
        assert result.values["a"] == (window.max() if aggregate is sw.max else window.sum())
    return Spread.of(seconds[20:]).median * 1e6, (op.stats().combines - before) / steps


def memory() -> Iterator[dict]:
    """What is stored while the rate of tuples grows a hundredfold and the slices stay."""
    print("\nmemory, 100 windows of 1..20 s, out of order: stored after 60 s of event time")
    print(f"  {'tuples/s':>9} {'tuples seen':>12} {'slices':>7} {'KiB':>8}")
    for rate in (200, 2_000, 20_000):
        times = np.arange(60 * rate) * (SECOND // rate)
        workload = tumbling_workload(100, "milliseconds", session=False)
        chunks = [{"t": t, "v": t % 1000} for t in np.array_split(times, 6)]
        stats = run_batches(workload, chunks, ordered=False)[2]
        print(f"  {rate:>9} {len(times):>12} {stats.slices:>7} {stats.bytes / 1024:>8.1f}")
        yield {"table": "memory", "rate": rate, "slices": stats.slices, "bytes": stats.bytes}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repetitions")
    parser.add_argument("--only", nargs="+", default=[], choices=TABLES, metavar="TABLE", help="these tables")
    given = parser.parse_args()
    rows, repeat = (400_000, 3) if given.quick else (given.rows, given.repeat)
    print(heading(tuples=rows))
    tables: dict[str, Callable[[], Iterator[dict]]] = {
        "concurrent": lambda: concurrent_windows(rows, repeat),
        "one at a time": lambda: one_at_a_time(min(rows, 400_000), repeat),
        "flatness": lambda: flatness(max(rows, 4_000_000 if not given.quick else 0), repeat),
        "steps": lambda: steps(rows, repeat),
        "small steps": lambda: small_steps(repeat),
        "memory": memory,
    }
    found = [figures for name in given.only or TABLES for figures in tables[name]()]
    print("\n* Scotty was measured on a machine of the same kind, not in this run.")
    save(given.save, found)


if __name__ == "__main__":
    main()
