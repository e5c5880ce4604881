"""Plot: pictures of results, with matplotlib. ``timeline`` draws windows, ``series`` their values.

Results may be a :class:`slicewise.Results`, an Arrow table or a pandas DataFrame of them, or a Spark DataFrame, which
is collected. Times are shown in UTC.
"""

from slicewise.plot.lines import bands, series
from slicewise.plot.timelines import timeline

__all__ = ["bands", "series", "timeline"]
