# Odradek's commands. `make help` lists them.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON   ?= $(shell command -v python3.11 || command -v python3)
VENV     := .venv
BIN      := $(VENV)/bin
SOURCES  := $(wildcard odradek protocol client storage coordinator broker cli programs commands console bench release)
SETUP    := $(VENV)/.setup-dev
EXAMPLES_SETUP := $(VENV)/.setup-examples
PIPELINE_SETUP := $(VENV)/.setup-pipeline
BROWSER_SETUP := $(VENV)/.setup-browser
WORKERS  ?= 2
TESTS    := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(SETUP) ## make .venv with the locked dependencies and the `odradek` command

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(SETUP): requirements/dev.lock pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: run
run: $(SETUP) ## run a broker on 127.0.0.1:9092 with its data in ./data; compiled from the second start on
	exec "$$($(BIN)/python -m bench.wheel)" run --listen 127.0.0.1:9092 --data ./data

.PHONY: lint
lint: $(SETUP) ## formatting, lint, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES) hatch_build.py tests
	$(BIN)/lint-imports

.PHONY: format
format: $(SETUP) ## rewrite the sources in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: check
check: lint ## lint and the unit tests on the source tree; under two minutes, in WORKERS processes (default 2)
	$(TESTS) -q --ignore=tests/interop --ignore=tests/pipeline/spark --ignore=tests/console/test_in_chromium.py

.PHONY: quick
quick: $(SETUP) ## the pure tests of what changed since main (or SINCE=REVISION), in under a minute
	$(BIN)/python -m tests.quick $(SINCE)

OF_THE_TREE := bench commands console compiled/test_differences.py compiled/test_rules.py docs pipeline release test_docs.py test_tidy.py
SOURCE_ONLY = $(shell grep -rl --include=test_*.py source_only tests --exclude-dir=interop)

.PHONY: test
test: lint test-source test-wheel test-spark ## all tests: on the source tree, then on a wheel with real clients, and a slice on Spark

.PHONY: test-source
test-source: $(SETUP) ## the tests of what is no part of the broker, and those that a wheel can't run, on the source tree
	$(TESTS) -q $(OF_THE_TREE:%=tests/%) --ignore=tests/pipeline/spark
	$(TESTS) -q $(SOURCE_ONLY) -m source_only

.PHONY: test-wheel
test-wheel: $(BROWSER_SETUP) ## all tests of the broker on a wheel, with real clients; prints the slowest
	$(TESTS) tests --installed --durations 30 $(OF_THE_TREE:%=--ignore=tests/%)

.PHONY: test-spark
test-spark: $(PIPELINE_SETUP) ## a slice of test-pipeline: loads into an Iceberg table, with audits
	$(BIN)/python -m pytest -q tests/pipeline/spark -m ci

.PHONY: test-cluster
test-cluster: $(SETUP) ## break clusters of Odradek and Apache Kafka for an hour: KILLS=100 in total, SEED=1
	$(BIN)/python -m pytest tests/interop -m cluster --timeout 3600 --cluster-kills=$(or $(KILLS),100) --cluster-seed=$(or $(SEED),1)

.PHONY: test-controllers
test-controllers: $(SETUP) ## kill, freeze and cut off controllers for an hour: KILLS=100 ELECTIONS=20 FAILOVERS=50 SEED=1
	$(BIN)/python -m pytest tests/interop/test_controller_faults.py -m "cluster or not cluster" --installed \
		--controller-kills=$(or $(KILLS),100) --controller-elections=$(or $(ELECTIONS),20) \
		--controller-failovers=$(or $(FAILOVERS),50) --cluster-seed=$(or $(SEED),1) $(if $(ONLY),-k "$(ONLY)")

.PHONY: test-commands
test-commands: $(SETUP) ## Odradek's commands compared with Apache Kafka's tools; two minutes
	$(BIN)/python -m pytest tests/interop -m commands --timeout 900

GSSAPI_SETUP := $(VENV)/.setup-gssapi

$(GSSAPI_SETUP): requirements/gssapi.lock $(SETUP)
	@command -v krb5-config >/dev/null || { echo "python-gssapi is built here: apt-get install libkrb5-dev gcc python3-dev"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/gssapi.lock
	@touch $@

.PHONY: setup-gssapi
setup-gssapi: $(GSSAPI_SETUP) ## add python-gssapi to .venv, for Kerberos (needs libkrb5-dev)

.PHONY: test-security
test-security: $(GSSAPI_SETUP) ## authorizer, quotas and tokens compared with Apache Kafka, clients with each mechanism, a real KDC (needs krb5-kdc)
	$(BIN)/python -m pytest tests/interop -m security --timeout 1200

.PHONY: test-zookeeper
test-zookeeper: $(SETUP) ## test with Apache ZooKeeper and the clients and tools of Kafka 0.8 to 1.1; about ten minutes
	$(BIN)/python -m pytest tests/interop -m zookeeper --timeout 600

$(EXAMPLES_SETUP): requirements/examples.lock $(SETUP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/examples.lock
	@touch $@

.PHONY: test-examples
test-examples: $(EXAMPLES_SETUP) ## test odradek.testing, the examples in four languages, and the image with Testcontainers; a few minutes
	$(BIN)/python -m pytest tests/interop/testing -m examples --timeout 600

.PHONY: test-applications
test-applications: $(SETUP) ## applications of many frameworks, killed beside their broker; installs them into .cache, and writes their figures; ten minutes
	$(BIN)/python -m pytest tests/interop/applications -m applications --installed --timeout 1200 $(if $(ONLY),-k "$(ONLY)"); \
		status=$$?; $(BIN)/python -m docs.conformance; exit $$status

.PHONY: dist
dist: $(SETUP) ## build dist/: sdist, a compiled wheel for each CPython here, a pure wheel; PYTHONS="python3.12 …"
	$(BIN)/python -m release.dist

.PHONY: test-dist
test-dist: $(SETUP) ## install each wheel of dist/ without a compiler and use it; uvx and pipx start it; some minutes
	$(BIN)/python -m pytest tests/interop/test_dist.py -m release --timeout 900

.PHONY: image
image: $(SETUP) ## build the image `odradek` from dist/'s wheel with docker or podman; BASE=debian makes a base with mmdebstrap
	$(BIN)/python -m release.image

.PHONY: test-image
test-image: $(SETUP) ## run the image: read-only, as a user, with a volume, and the compose files on ports 9092 to 9096; a minute
	$(BIN)/python -m pytest tests/interop/test_image.py -m release --timeout 900

.PHONY: deb
deb: $(SETUP) ## build dist/'s Debian package from dist/'s wheel; DEB_PYTHON=3.12 for another release
	$(BIN)/python -m release.deb

.PHONY: test-deb
test-deb: $(SETUP) ## install, use and purge the Debian package in a clean chroot (needs mmdebstrap and root); DEBIAN=trixie for 13; some minutes
	$(BIN)/python -m pytest tests/interop/test_deb.py -m release --timeout 1800

$(BROWSER_SETUP): requirements/browser.lock $(SETUP)
	@command -v chromium >/dev/null || { echo "the pages are shown by a real browser: apt-get install chromium"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/browser.lock
	@touch $@

.PHONY: test-console
test-console: $(BROWSER_SETUP) ## the console's pages in chromium, and its screenshots: SCREENSHOTS=docs/console
	$(BIN)/python -m pytest tests/console tests/console/test_in_chromium.py -m "console or not console" --timeout 600 \
		$(if $(SCREENSHOTS),--console-screenshots=$(SCREENSHOTS))

.PHONY: test-metrics
test-metrics: $(SETUP) ## test metrics with a real Prometheus, and each alert with its fault; some minutes
	$(BIN)/python -m pytest tests/interop -m metrics --timeout 900 $(if $(DASHBOARDS),--dashboards=$(DASHBOARDS))

.PHONY: soak
soak: $(SETUP) ## kill a broker under load, CYCLES times (5000); kill StreamsSmokeTest's instances and brokers, SMOKE_S seconds (600); ONLY=streams
	$(BIN)/python -m pytest tests/interop/test_kill.py tests/interop/test_streams_smoke_jvm.py -m "cluster or not cluster" \
		--kill-cycles=$(or $(CYCLES),5000) --smoke-s=$(or $(SMOKE_S),600) $(if $(ONLY),-k "$(ONLY)")

.PHONY: conformance
conformance: $(SETUP) ## suites that others wrote: SUITES="kafka-python sarama apache-tools" NODES=1, 3 or mixed BROKER=apache MATCHING=… KILL_EVERY_S=20 DECODE=1 JOBS=N classes of Apache's at a time
	$(BIN)/python -m tests.interop.suites $(SUITES) $(if $(BROKER),--broker $(BROKER)) $(if $(NODES),--nodes $(NODES)) \
		$(if $(KILL_EVERY_S),--kill-every-s $(KILL_EVERY_S)) $(if $(DECODE),--decode) $(if $(MATCHING),--tests "$(MATCHING)") $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(RESULTS),--results "$(RESULTS)"); status=$$?; $(BIN)/python -m docs.conformance; exit $$status

.PHONY: simulate
simulate: $(SETUP) ## run simulations: SEEDS=1000-1999, of WORLDS="log" or all, in JOBS=N processes (one per core); each failing seed is printed
	$(BIN)/python -m tests.simulation $(or $(SEEDS),0-999) $(WORLDS) $(if $(JOBS),--jobs $(JOBS))

.PHONY: trace-quorum
trace-quorum: $(SETUP) ## check what the nodes of the world quorum do against its TLA+ specification, by TLC: SEEDS=0-99
	$(BIN)/python -m tests.simulation.quorum_trace $(or $(SEEDS),0-99)

.PHONY: fuzz
fuzz: $(SETUP) ## send broken frames to a whole broker: SEEDS=0-99 FRAMES=100000 per seed, VISITS=12,17 of a seed, COVERAGE=1 SHRINK=1 LARGE=1 DENIED=1
	$(BIN)/python -m $(if $(COVERAGE),,tests.installed) tests.fuzz $(or $(SEEDS),0-99) --frames $(or $(FRAMES),100000) \
		$(if $(VISITS),--visits $(VISITS)) $(if $(COVERAGE),--coverage) $(if $(SHRINK),--shrink) \
		$(if $(LARGE),--large --held) $(if $(DENIED),--without-rights)

.PHONY: fuzz-strangers
fuzz-strangers: $(SETUP) ## send broken TLS and SASL handshakes: SEEDS=0-9 VISITS=100000 per seed, LARGE=1
	$(BIN)/python -m tests.installed tests.fuzz.strangers $(or $(SEEDS),0-9) --visits $(or $(VISITS),100000) $(if $(LARGE),--large)

.PHONY: crowding
crowding: $(SETUP) ## measure how long others wait for one client's large requests: ENTRIES=20000,200000 APIS=FETCH,METADATA VERSIONS=all PLACE=brokers, apache, apache-controller
	$(BIN)/python -m tests.installed tests.fuzz.crowding --entries $(or $(ENTRIES),20000) --versions $(or $(VERSIONS),newest) \
		--place $(or $(PLACE),node) $(if $(APIS),--api $(APIS))

.PHONY: crowding-compared
crowding-compared: $(SETUP) ## the waits and the processor time of large requests beside Apache Kafka, in turns, as a table: ROUNDS=3
	$(BIN)/python -m tests.installed tests.fuzz.compared --rounds $(or $(ROUNDS),3)

.PHONY: callbacks
callbacks: $(SETUP) ## measure how long large requests stop the event loop, in processor time: ENTRIES=20000 APIS=FETCH VERSIONS=ends PLACE=controller
	$(BIN)/python -m tests.installed tests.fuzz.callbacks --versions $(or $(VERSIONS),all) --entries $(or $(ENTRIES),20000) --place $(or $(PLACE),node) \
		$(if $(APIS),--api $(APIS))

.PHONY: fuzz-differential
fuzz-differential: $(SETUP) ## send the same random requests to Odradek and Apache Kafka: REQUESTS=100000 SEED=0 APIS="Streams|Txn", a single EPISODE=17
	$(BIN)/python -m tests.fuzz.differential --requests $(or $(REQUESTS),100000) --seed $(or $(SEED),0) \
		$(if $(APIS),--apis "$(APIS)") $(if $(EPISODE),--episode $(EPISODE))

.PHONY: docs
docs: $(SETUP) ## regenerate the generated pages
	$(BIN)/python -m docs.configuration
	$(BIN)/python -m docs.conformance
	$(BIN)/python -m docs.limits
	$(BIN)/python -m docs.protocol
	$(BIN)/python -m docs.security_acls
	$(BIN)/python -m docs.security_clients

.PHONY: site
site: $(SETUP) ## build dist/site: the pages of docs/ with a search
	$(BIN)/python -m release.site

BENCH_SETUP := $(VENV)/.setup-bench
BENCH := $(BIN)/python -m bench --loads "$(LOADS)" $(if $(PEERS),--peers "$(PEERS)") $(if $(RESULTS),--results "$(RESULTS)")

$(BENCH_SETUP): requirements/bench.lock $(SETUP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.lock
	@touch $@

.PHONY: bench
bench: $(BENCH_SETUP) ## compare with other brokers: LOADS="produce consume" PEERS="odradek kafka" ROUNDS=3 RESULTS=bench/results
	$(BENCH) $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: bench-clusters
bench-clusters: $(BENCH_SETUP) ## compare clusters of three brokers: ROWS="cluster-many" CLUSTERS="odradek kafka" ROUNDS=5 RESULTS=bench/results
	$(BIN)/python -m bench.clusters $(if $(ROWS),--rows $(ROWS)) $(if $(CLUSTERS),--clusters $(CLUSTERS)) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(RESULTS),--results $(RESULTS))

.PHONY: bench-controllers
bench-controllers: $(SETUP) ## compare three controllers, idle, busy and with 100,000 partitions: PEERS="odradek kafka"
	$(BIN)/python -m bench.controllers $(if $(PEERS),--peers $(PEERS))

.PHONY: bench-smoke
bench-smoke: $(BENCH_SETUP) ## test the benchmark: tiny loads, no timing asserted
	$(BENCH) --smoke

.PHONY: bench-plots
bench-plots: $(BENCH_SETUP) ## redraw the plots of the results in RESULTS
	$(BIN)/python -m bench.plots $(RESULTS)

.PHONY: bench-page
bench-page: $(BENCH_SETUP) ## draw the plots of RESULTS, and write its tables into docs/benchmarks.md
	$(BIN)/python -m bench.plots $(RESULTS)
	$(BIN)/python -m bench.page $(RESULTS)

.PHONY: bench-metrics
bench-metrics: $(BENCH_SETUP) ## cost of metrics, with and without them in one run: ROUNDS=15 LOADS="produce consume" RESULTS=bench/results
	$(BIN)/python -m bench.metrics $(if $(LOADS),--loads $(LOADS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(if $(RESULTS),--results $(RESULTS))

.PHONY: bench-control
bench-control: $(BENCH_SETUP) ## cost of the control server; BEFORE=REVISION compares with a revision without it: ROUNDS=15 LOADS="produce"
	$(BIN)/python -m bench.control $(if $(BEFORE),--before $(BEFORE)) $(if $(LOADS),--loads $(LOADS)) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(RESULTS),--results $(RESULTS))

.PHONY: bench-tests
bench-tests: $(BENCH_SETUP) ## time and memory of a suite of 200 tests on four workers; BROKERS="odradek kafka kafka-each" COUNT=200
	$(BIN)/python -m bench.suites $(if $(BROKERS),--brokers $(BROKERS)) $(if $(COUNT),--tests $(COUNT))

.PHONY: bench-scrapes
bench-scrapes: $(BENCH_SETUP) ## time of a scrape of 10,000 partitions, and its effect on producers: ROUNDS=5 RESULTS=bench/results
	$(BIN)/python -m bench.scrapes $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(RESULTS),--results $(RESULTS))

.PHONY: bench-console
bench-console: $(BROWSER_SETUP) $(BENCH_SETUP) ## the console's pages with 10,000 partitions, 100 live tails, a search of ten million records: PARTS="pages tails search" PURE=1 RESULTS=bench/results
	$(BIN)/python -m bench.console $(if $(PARTS),--parts $(PARTS)) $(if $(PURE),--pure) $(if $(RESULTS),--results $(RESULTS))

.PHONY: bench-storms
bench-storms: $(BENCH_SETUP) ## effect of a storm of connections from one address on producers, compared with Apache Kafka: ROUNDS=5 RESULTS=bench/results
	$(BIN)/python -m bench.storms $(if $(PEERS),--peers $(PEERS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(if $(RESULTS),--results $(RESULTS))

.PHONY: bench-age
bench-age: $(BENCH_SETUP) ## memory of a broker that every kind of client uses in turn, a day of small clients: MINUTES=15 RESULTS=bench/results
	$(BIN)/python -m bench.age $(if $(MINUTES),--minutes $(MINUTES)) $(if $(RESULTS),--results $(RESULTS))

.PHONY: saturation
saturation: $(BENCH_SETUP) ## throughput of one broker on a core, and of several on a machine: RESULTS/saturation.json
	$(BIN)/python -m bench.saturation $(RESULTS)

.PHONY: profile
profile: $(BENCH_SETUP) ## flame graphs of the broker under LOAD: RESULTS/profile-LOAD.svg, and of native frames
	$(BIN)/python -m bench.profile $(or $(LOAD),produce) $(RESULTS)

$(PIPELINE_SETUP): requirements/pipeline.lock $(SETUP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/pipeline.lock
	@touch $@

.PHONY: setup-pipeline
setup-pipeline: $(PIPELINE_SETUP) ## add the packages of `odradek pipeline` to .venv: Spark and clients (needs Java 17)

.PHONY: test-pipeline
test-pipeline: $(PIPELINE_SETUP) ## check the types of pipeline/, and test its jobs on Spark with Odradek and Apache Kafka
	$(BIN)/mypy pipeline bench/connect_sink.py bench/plain_table.py
	$(BIN)/python -m pytest tests/pipeline

.PHONY: test-pipeline-kills
test-pipeline-kills: $(PIPELINE_SETUP) ## load Iceberg tables in ten runs with a kill in each, and by two loaders at once: RECORDS=10000000
	$(BIN)/python -m pytest tests/pipeline/spark/test_iceberg_proof.py -s --pipeline-records=$(or $(RECORDS),10000000)

.PHONY: locks
locks: ## regenerate requirements/*.lock from pyproject.toml (needs uv)
	$(call lock,run.lock,)
	$(call lock,console.lock,--extra console)
	$(call lock,dev.lock,--extra dev)
	$(call lock,browser.lock,--extra dev --extra browser)
	$(call lock,examples.lock,--extra dev --extra examples)
	$(call lock,gssapi.lock,--extra dev --extra gssapi)
	$(call lock,bench.lock,--extra dev --extra bench)
	$(call lock,pipeline.lock,--extra dev --extra pipeline --extra pipeline-tests)
	$(call lock,release.lock,--extra release)
	$(call lock,site.lock,,requirements/site.in)
	$(call lock,../tests/interop/applications/requirements.lock,,tests/interop/applications/requirements.in)
	$(call lock,../tests/interop/applications/newer.lock,,tests/interop/applications/newer.in)

define lock
uv pip compile --quiet --upgrade --python-version 3.11 --universal --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make locks" $(2) $(or $(3),pyproject.toml) -o requirements/$(1)
endef

.PHONY: clean
clean: ## remove caches and .venv; keeps ./data
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
