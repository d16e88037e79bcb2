# `make demo` and `make test` set everything up on a fresh machine; the rest is for those who work on securetm.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= runs/federation-$(shell date +%Y%m%d-%H%M%S)
READY := $(VENV)/.ready

.PHONY: demo demo-federation test docs suite release-check lock test-faults test-slow lint fmt stubs bench-peers flower clean

demo: $(READY)
	$(BIN)/securetm run

# Six processes over mutual TLS, beside a simulation of the same: their models are the same, bit for bit.
demo-federation: $(READY)
	$(BIN)/securetm init --run $(DEMO)

# Both at once: checking types takes one processor half a minute.
test: $(READY)
	@$(MAKE) --no-print-directory --jobs=2 lint suite

suite: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile $(PYTEST_ARGS)

# Roles that are killed, cut off and frozen: long schedules in one process, and real processes.
test-faults: $(READY)
	$(BIN)/python -m pytest -m faults $(PYTEST_ARGS)

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p securetm -p lab -p tests.laws
	$(BIN)/lint-imports --no-logo

fmt: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, into site/: the command reference is written anew, generated pages are made, and every link is checked.
docs: $(READY)
	$(BIN)/python -m docs.generate.command_page
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The same bytes from two folders on two dates, and what the wheel says of itself.
release-check: $(READY)
	$(BIN)/python release/check.py

# The pinned sets with hashes, in an environment of their own.
lock: $(READY)
	$(BIN)/python release/lock.py

# Peers for `python -m lab bench`, in an environment of their own.
bench-peers: .venv-peers/.ready

.venv-peers/.ready: Makefile
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check flwr==1.41.0 gensim==4.4.0 scikit-learn==1.9.1 tomotopy==0.14.0 torch==2.13.0 matplotlib==3.11.2 wordcloud==1.9.6 tqdm==4.70.1 sentence-transformers==6.2.0 numba==0.68.1 pandas==3.1.1 igraph==0.11.9
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps contextualized-topic-models==2.6.1 bertopic==0.17.4 umap-learn==0.5.12 hdbscan==0.8.44 pynndescent==0.7.0 plotly==7.1.0 narwhals==2.29.0 turftopic==0.28.0 fastopic==1.0.1
	touch $@

# Flower with securetm in one environment: it wants older versions of protobuf, rich, typer and packaging than the other one has.
flower: .venv-flower/.ready

.venv-flower/.ready: Makefile pyproject.toml
	$(PYTHON) -m venv .venv-flower
	.venv-flower/bin/python -m pip install --quiet --disable-pip-version-check "flwr[simulation]==1.41.0" torch==2.13.0
	.venv-flower/bin/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

# Stubs of the wire format, by a generator of protobuf 6 so that runtimes 6 and 7 both load them.
stubs:
	$(PYTHON) -m venv .venv-stubs
	.venv-stubs/bin/python -m pip install --quiet grpcio-tools==1.74.0 setuptools
	cd protocols && ../.venv-stubs/bin/python -m grpc_tools.protoc -I . --python_out=.. --pyi_out=.. securetm/federation/wire/wire.proto securetm/federation/network/network.proto

$(READY): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

clean:
	rm -rf $(VENV) .venv-stubs .venv-peers .venv-flower dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis .numba_cache
