"""One start of a stream that goes on under another version of Spark: ``python -m tests.spark.stream_upgrade FOLDER``.

Runs the workload over all files that have not been read, into Parquet files by micro-batch, and prints Spark's version.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame

from slicewise.spark import local_session
from tests.sessions import PATIENT
from tests.spark.stream_job import SCHEMA, WORKLOAD


def main(folder: Path) -> None:
    """Go on from the checkpoint, if there is one."""
    session = local_session("upgrade", master="local[2]", conf=PATIENT | {"spark.sql.shuffle.partitions": "2"})
    rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "source"))

    def write(frame: DataFrame, batch: int) -> None:
        frame.write.mode("overwrite").parquet(str(folder / "results" / f"batch={batch}"))

    writer = WORKLOAD.run(rows).writeStream.trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).foreachBatch(write).start()
    query.awaitTermination()
    print(f"on {pyspark.__version__}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
