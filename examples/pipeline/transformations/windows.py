"""A pipeline: clicks as they come, windows over them as a stream, and the same windows over all of them.

Spark calls these functions before there are any clicks, and must not be asked about a table in them: ``known`` says
what its columns are, and whether it is read as a stream.
"""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import slicewise as sw

spark = SparkSession.active()
CLICKS = Path(__file__).parents[1] / "clicks"
COLUMNS = StructType.fromDDL("ts TIMESTAMP, user STRING, price DOUBLE")
WORKLOAD = (
    sw.Workload(time="ts", keys=["user"], watermark="10 seconds", lateness="5 minutes")
    .query("minutes", sw.tumbling("1 minute"), clicks=sw.count(), spent=sw.sum("price"))
    .query("visits", sw.session("2 minutes"), clicks=sw.count(), dearest=sw.max("price"))
)


def new_clicks() -> DataFrame:
    """What comes in, as a stream."""
    return spark.readStream.schema(COLUMNS).json(CLICKS.as_uri())


@dp.table
def clicks() -> DataFrame:
    return new_clicks()


@dp.table
def windows_as_they_end() -> DataFrame:
    # Spark looks at what goes into a stateful stream before there are tables of the pipeline: it reads from outside.
    return WORKLOAD.run(sw.spark.known(new_clicks(), COLUMNS, stream=True))


@dp.materialized_view
def windows() -> DataFrame:
    return WORKLOAD.run(sw.spark.known(spark.read.table("clicks"), COLUMNS, stream=False))
