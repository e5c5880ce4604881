"""Sources of rows that come with slicewise, beside those of Spark: :mod:`~slicewise.sources.kafka`, from PyPI alone."""
