"""slicewise on Spark: the only folder that imports pyspark. ``workload.run(df)`` is the door to it."""

from slicewise.spark.frames import latest, only
from slicewise.spark.running import run
from slicewise.spark.session import local_session

__all__ = ["latest", "local_session", "only", "run"]
