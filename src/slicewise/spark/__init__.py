"""slicewise on Spark: the only folder that imports pyspark. ``workload.run(df)`` is the door to it."""

from slicewise.installation import without_pyspark

try:
    from slicewise.spark.result_frames import latest, only
    from slicewise.spark.running import run
    from slicewise.spark.session import local_session
    from slicewise.spark.streaming.inspecting import Inspection, inspect
except ImportError as error:
    raise without_pyspark(error) from error

__all__ = ["Inspection", "inspect", "latest", "local_session", "only", "run"]
