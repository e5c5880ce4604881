"""Is ``roll`` as fast as other libraries, and are its answers right?  Every aggregate that pandas rolls, in one run.

    pip install 'slicewise[bench]'
    python benchmarks/roll.py [--quick] [--only NAME ...] [--runs N] [--save FILE]

A million floats and a million integers, windows of 16, 1 024 and 65 536 values, on one core. Everyone takes turns, and
what is shown is the median of the CPU time in milliseconds, with ``np.cumsum`` of the same values as a unit: one pass.
``roll`` is compared with the definition at windows here and there, and the others with ``roll`` at all whole windows.
Below the table is what speed is paid with: wrong sums among values that are easy to sum up exactly.

The bars: never behind pandas; minima and maxima in at most twice the time of the best of bottleneck and polars; sums,
averages and standard deviations ahead of polars and within four passes of ``np.cumsum``.
"""

from __future__ import annotations

import importlib.util
import math
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _harness import Spread, arguments, clock, heading, in_turns, save

import slicewise.aggregates as sw
from slicewise.swag import roll

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # one core each, as everyone else here

SEED = 20180326
LENGTHS = (16, 1_024, 65_536)
SHARE = 0.9
#: What a library rolls: arrays, one for most aggregates and two for some, and the length of a window.
Rolled = Callable[[Sequence[np.ndarray], int], Any]

AGGREGATES = {
    "count": sw.count("y"),
    "sum": sw.sum("y"),
    "avg": sw.avg("y"),
    "min": sw.min("y"),
    "max": sw.max("y"),
    "stddev": sw.stddev("y"),
    "variance": sw.variance("y"),
    "median": sw.median("y"),
    "percentile": sw.percentile("y", SHARE),
    "skewness": sw.skewness("y"),
    "kurtosis": sw.kurtosis("y"),
    "corr": sw.corr("y", "x"),
    "covar_samp": sw.covar_samp("y", "x"),
}
#: The second column is there for these alone.
PAIRS = ("corr", "covar_samp")


def integers(n: int) -> np.ndarray:
    rng = random.Random(SEED)
    return np.array([rng.randrange(1_000_000) for _ in range(n)])


def floats(n: int) -> np.ndarray:
    return np.random.default_rng(SEED).normal(size=n)


# -- who else rolls


def rivals() -> dict[str, dict[str, Rolled]]:
    """Who else rolls, of those that are installed: name -> aggregate -> function."""
    found = {"numpy views": _views()}
    for name, functions in (("pandas", _pandas), ("bottleneck", _bottleneck), ("polars", _polars)):
        if importlib.util.find_spec(name):
            found[name] = functions()
    return found


def _views() -> dict[str, Rolled]:
    view = np.lib.stride_tricks.sliding_window_view

    def padded(v: np.ndarray, k: int, filler: float) -> np.ndarray:
        return view(np.concatenate([np.full(k - 1, filler, v.dtype), v]), k)

    return {
        "sum": lambda v, k: padded(v[0], k, 0).sum(axis=1),
        "max": lambda v, k: padded(v[0], k, -np.inf).max(axis=1),
    }


def _pandas() -> dict[str, Rolled]:
    import pandas as pd

    def of(call: Callable[..., Any]) -> Rolled:
        return lambda v, k: call(pd.Series(v[0]).rolling(k, min_periods=1), *map(pd.Series, v[1:])).to_numpy()

    names = {"avg": "mean", "stddev": "std", "variance": "var", "skewness": "skew", "kurtosis": "kurt"}
    names |= {"covar_samp": "cov"}
    methods = {name: names.get(name, name) for name in AGGREGATES if name != "percentile"}
    functions = {name: of(lambda r, *o, m=method: getattr(r, m)(*o)) for name, method in methods.items()}
    return functions | {"percentile": of(lambda r: r.quantile(SHARE))}


def _bottleneck() -> dict[str, Rolled]:
    import bottleneck as bn

    names = {"sum": "sum", "avg": "mean", "min": "min", "max": "max", "median": "median"}
    functions = {name: lambda v, k, m=method: getattr(bn, f"move_{m}")(v[0], k, 1) for name, method in names.items()}
    names = {"stddev": "std", "variance": "var"}
    return functions | {
        name: lambda v, k, m=method: getattr(bn, f"move_{m}")(v[0], k, 1, ddof=1) for name, method in names.items()
    }


def _polars() -> dict[str, Rolled]:
    import polars as pl

    names = {"sum": "sum", "avg": "mean", "min": "min", "max": "max", "stddev": "std", "variance": "var"}
    names |= {"median": "median", "skewness": "skew", "kurtosis": "kurtosis"}

    def one(method: str) -> Rolled:
        return lambda v, k: getattr(pl.Series(v[0]), f"rolling_{method}")(window_size=k, min_samples=1).to_numpy()

    def pair(function: Callable[..., Any]) -> Rolled:
        return lambda v, k: (
            pl.DataFrame({"y": v[0], "x": v[1]}).select(function("y", "x", window_size=k)).to_series().to_numpy()
        )

    return {name: one(method) for name, method in names.items()} | {
        "percentile": lambda v, k: pl.Series(v[0]).rolling_quantile(SHARE, "linear", k, min_samples=1).to_numpy(),
        "corr": pair(pl.rolling_corr),
        "covar_samp": pair(pl.rolling_cov),
    }


# -- answers


def by_definition(name: str, window: Sequence[np.ndarray]) -> float:
    """What an aggregate is of one window, with sums that are rounded once."""
    y, n = window[0], len(window[0])
    if name in ("min", "max"):
        return getattr(y, name)()
    if name in ("median", "percentile"):
        return np.quantile(y, 0.5 if name == "median" else SHARE)
    if name in ("count", "sum", "avg"):
        return {"count": n, "sum": math.fsum(y), "avg": math.fsum(y) / n}[name]
    apart = [v - math.fsum(v) / n for v in window]
    second = math.fsum(apart[0] ** 2)
    if name in PAIRS:
        product = math.fsum(apart[0] * apart[1])
        return product / (n - 1) if name == "covar_samp" else product / math.sqrt(second * math.fsum(apart[1] ** 2))
    return {
        "variance": second / (n - 1),
        "stddev": math.sqrt(second / (n - 1)),
        "skewness": math.sqrt(n) * math.fsum(apart[0] ** 3) / second**1.5,
        "kurtosis": n * math.fsum(apart[0] ** 4) / second**2 - 3.0,
    }[name]


def as_pandas(name: str, values: np.ndarray, k: int) -> np.ndarray:
    """Skewness and kurtosis of samples, as pandas has them, from those of populations."""
    if name == "skewness":
        return values * (math.sqrt(k * (k - 1)) / (k - 2))
    return ((k + 1) * values + 6) * ((k - 1) / ((k - 2) * (k - 3))) if name == "kurtosis" else values


def check(name: str, values: Sequence[np.ndarray], k: int, answers: dict[str, Any]) -> None:
    """``roll`` against the definition at some windows, and all others against ``roll`` at all whole ones."""
    ours = np.ma.getdata(answers["roll"])
    # A sum of k terms of size s is rounded at that size, even where it is near 0 itself.
    scale = float(np.abs(values[0]).max()) * (k if name == "sum" else 1)
    for end in np.linspace(k, len(ours), 7).astype(int):
        want = by_definition(name, [v[end - k : end] for v in values])
        if not math.isclose(ours[end - 1], want, rel_tol=1e-9, abs_tol=1e-13 * max(scale, 1)):
            raise SystemExit(f"roll gives {ours[end - 1]} for the {name} of {k} at {end}; it is {want}")
    for rival, answer in answers.items():
        expected = as_pandas(name, ours, k) if rival == "pandas" else ours
        if rival not in ("roll", "np.cumsum") and not np.allclose(
            np.asarray(answer, float)[k - 1 :], expected[k - 1 :], rtol=1e-6, atol=1e-9 * max(scale, 1)
        ):
            raise SystemExit(f"roll and {rival} differ for the {name} of {k}")


def exactness(n: int = 20_000, k: int = 16) -> dict[str, dict[str, float]]:
    """What speed is paid with. Wrong answers among n, and the worst error, where the exact answer is easy.

    Floats: halves up to 100, so that every sum is a double, and 1e17 now and then; only windows without it count.
    Integers: up to 2**58, every sum fits 64 bits.
    """
    rng = np.random.default_rng(SEED)
    halves = rng.integers(0, 200, n) / 2
    halves[500::1000] = 1e17
    large = rng.integers(-(2**58), 2**58, n)
    by_hand = np.array([math.fsum(halves[max(i - k + 1, 0) : i + 1]) for i in range(n)])
    whole = np.array([sum(large[max(i - k + 1, 0) : i + 1].tolist()) for i in range(n)])
    small = by_hand < 1e16
    functions = {"roll": lambda v, k: roll(v[0], k, sw.sum())} | {name: by["sum"] for name, by in rivals().items()}
    out = {}
    for name, function in functions.items():
        errors = np.abs(np.asarray(function([halves], k)) - by_hand)[small]
        wrong = sum(int(got) != want for got, want in zip(function([large], k).tolist(), whole.tolist(), strict=True))
        out[name] = {
            "floats wrong": float((errors > 0).sum()),
            "worst error": float(errors.max()),
            "int wrong": float(wrong),
        }
    return out


# -- the table


def measure(name: str, values: Sequence[np.ndarray], k: int, runs: int) -> dict[str, Spread]:
    """CPU milliseconds of everyone who has the aggregate, in turns, and of one pass."""
    named = dict(zip(("y", "x"), values, strict=False))
    functions: dict[str, Callable[[], Any]] = {"roll": lambda: roll(named, k, AGGREGATES[name])}
    for rival, by_name in rivals().items():
        if name in by_name and rival != "numpy views":
            functions[rival] = lambda f=by_name[name]: f(values, k)
    functions["np.cumsum"] = lambda: np.cumsum(values[0])
    answers, first = {}, 0.0
    for rival, function in functions.items():
        first += clock(lambda r=rival, f=function: answers.__setitem__(r, f()), time.process_time)
    check(name, values, k, answers)
    clocks = [lambda f=function: clock(f, time.process_time) * 1e3 for function in functions.values()]
    taken = in_turns(runs if first < 1 else 1, *clocks)
    return {rival: Spread.of(spent) for rival, spent in zip(functions, taken, strict=True)}


def bars(name: str, spent: dict[str, Spread]) -> dict[str, tuple[float, float]]:
    """The bars of an aggregate that can be told here: how many times the peer's time ``roll`` takes, and may take."""
    ours, times = spent["roll"].median, {rival: spread.median for rival, spread in spent.items()}
    found = {"pandas": (ours / times["pandas"], 1.0)} if "pandas" in times else {}
    best = [times[rival] for rival in ("bottleneck", "polars") if rival in times]
    if name in ("min", "max") and best:
        found["the best of bottleneck and polars"] = (ours / min(best), 2.0)
    if name in ("sum", "avg", "stddev"):
        found["np.cumsum"] = (ours / times["np.cumsum"], 4.0)
        if "polars" in times:
            found["polars"] = (ours / times["polars"], 1.0)
    return found


def main(given: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="50 000 values, windows of 16 and 1 024; no claim")
    parser.add_argument("--only", nargs="+", choices=AGGREGATES, metavar="NAME", help="these aggregates")
    parser.add_argument("--runs", type=int, default=7, help="of which the median is taken")
    options = parser.parse_args(given)
    n, lengths = (50_000, LENGTHS[:2]) if options.quick else (1_000_000, LENGTHS)
    print(heading(seed=SEED, values=n))
    columns = ["roll", *(rival for rival in rivals() if rival != "numpy views"), "np.cumsum"]
    print(f"\n  CPU ms                       {''.join(f'{c:>24}' for c in columns)}")
    data = {"floats": [floats(n), floats(2 * n)[n:]], "integers": [integers(n), integers(2 * n)[n:]]}
    cells, missed = [], []
    for name in options.only or AGGREGATES:
        for kind, values in data.items():
            for k in lengths:
                spent = measure(name, values if name in PAIRS else values[:1], k, options.runs)
                shown = "".join(f"{str(spent[c]) if c in spent else '':>24}" for c in columns)
                told = bars(name, spent)
                behind = [f"{ratio:.2f} x {peer}" for peer, (ratio, most) in told.items() if ratio > most]
                missed += [f"{name} of {k} {kind}: {why}" for why in behind]
                print(f"  {name:<11}{kind:<9}{k:>7}  {shown}  {', '.join(behind)}", flush=True)
                cell = {rival: vars(spread) for rival, spread in spent.items()}
                cells.append({"aggregate": name, "kind": kind, "k": k, "ms": cell, "bars": told})
    print(f"\n{sum(len(c['bars']) for c in cells) - len(missed)} bars reached, {len(missed)} not")
    print("".join(f"  NOT REACHED  {why}\n" for why in missed), end="")
    wrong = exactness()
    print("\nWrong sums of 16 among 20 000: floats beside 1e17, and integers up to 2**58")
    for name, row in wrong.items():
        print(f"  {name:<12}{row['floats wrong']:>8g}{row['int wrong']:>8g}   worst error {row['worst error']:g}")
    if missing := [r for r in ("pandas", "bottleneck", "polars") if not importlib.util.find_spec(r)]:
        print(f"{', '.join(missing)} not installed: not measured.")
    save(options.save, {"cells": cells, "missed": missed, "exactness": wrong})
    return 0


if __name__ == "__main__":
    sys.exit(main())
