"""slicewise on Spark: with sources/ the only folder that imports pyspark. ``workload.run(df)`` is the door to it."""

from slicewise.installation import old_pyspark, without_pyspark

try:
    import pyspark

    too_old = old_pyspark(pyspark.__version__)
    if too_old is not None:
        raise too_old
    from slicewise.spark.known_frame import known
    from slicewise.spark.probing import Probe, Worker, probe
    from slicewise.spark.result_frames import latest, only
    from slicewise.spark.running import run
    from slicewise.spark.session import local_session
    from slicewise.spark.shipping import ship
    from slicewise.spark.streaming.inspecting import Inspection, inspect
    from slicewise.spark.upserting import upsert
except ImportError as error:
    raise without_pyspark(error) from error

__all__ = [
    "Inspection",
    "Probe",
    "Worker",
    "inspect",
    "known",
    "latest",
    "local_session",
    "only",
    "probe",
    "run",
    "ship",
    "upsert",
]
