"""A trading calendar per exchange: windows from a table, which has holidays and short days as the exchanges have them.

Times are instants, so that the hours of Frankfurt and of New York are what they are in UTC on that day.
"""

import pyarrow as pa

import slicewise as sw

#: When exchanges were open around New Year; the 1st was a holiday, and Frankfurt closed early on the 29th.
CALENDAR = """
    XETR  2023-12-28 08:00  2023-12-28 16:30
    XETR  2023-12-29 08:00  2023-12-29 13:00
    XETR  2024-01-02 08:00  2024-01-02 16:30
    XNYS  2023-12-28 14:30  2023-12-28 21:00
    XNYS  2023-12-29 14:30  2023-12-29 21:00
    XNYS  2024-01-02 14:30  2024-01-02 21:00
"""


def trading_days() -> pa.Table:
    """The calendar as a table: exchange, start, end. A file would do as well: sw.edges("calendar.parquet")."""
    rows = [line.split() for line in CALENDAR.strip().splitlines()]
    columns = {"exchange": [row[0] for row in rows]}
    for name, at in (("start", 1), ("end", 3)):
        texts = pa.array([f"{row[at]} {row[at + 1]}:00" for row in rows])
        columns[name] = texts.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return pa.table(columns)


def workload() -> sw.Workload:
    """Highest price and volume of each trading day, per exchange and symbol."""
    day = sw.edges(trading_days())
    trades = sw.Workload(time="at", keys=["exchange", "symbol"])
    return trades.query("day", day, high=sw.max("price"), volume=sw.sum("size"))
