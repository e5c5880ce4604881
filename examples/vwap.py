"""The trader of the Cutty paper: a stock's volume-weighted average price, and candles beside it.

Every 5 minutes over the last 10, and over windows of the trader's own, which become shorter and more frequent while the
stock is cheap. Both are one workload: prices are averaged once per slice, whichever window asks.
"""

from __future__ import annotations

import sys
from pathlib import Path

import slicewise as sw

sys.path.insert(0, str(Path(__file__).parent / "windows"))
from trader import MINUTE, Trader

prices = {"vwap": sw.weighted_avg("price", "volume"), "candle": sw.ohlc("price")}
workload = (
    sw.Workload(time="at", unit="microseconds", keys=["stock"])
    .query("last 10 min", sw.sliding("10 minutes", every="5 minutes"), **prices)
    .query("trader's own", sw.user_defined(Trader, columns=["price"]), **prices)
)

#: Minute, price and volume: the price falls below 10 in minute 25.
trades = [(1, 12.0, 100), (4, 12.5, 300), (8, 11.5, 200), (13, 11.0, 100), (19, 10.5, 500), (24, 10.2, 200)]
trades += [(25, 9.5, 400), (28, 9.0, 600), (31, 9.8, 100)]


def show(results):
    for r in results:
        start, end = (None if at is None else at // MINUTE for at in (r.start, r.end))
        candle = " ".join(f"{name} {value:g}" for name, value in r.values["candle"].items())
        until = "open" if end is None else end
        print(f"{r.query:<12}  minutes {start:>2} to {until:<4}  {r.values['vwap']:.3f}  {candle}")


op = workload.operator(ordered=True)
for minute, price, volume in trades:
    show(op.process(minute * MINUTE, {"stock": "ACME", "price": price, "volume": volume}))
show(op.close())
