# Everything from a bare clone: only Python 3.11 or later and make are needed.
PYTHON ?= python3
VENV := .venv
TORCH ?= torch
BIN := $(VENV)/bin
BASE := $(VENV)/.base
READY := $(VENV)/.ready
# Python compiles what it imports: to compile all that is installed took half of the installation.
# It keeps what it compiled, whatever the environment says: tests start some hundred processes.
export PYTHONDONTWRITEBYTECODE :=
QUIETLY = install --quiet --disable-pip-version-check --no-compile
PIP = $(BIN)/python -m pip $(QUIETLY)
# Where the pip of $(PYTHON) can get uv, it installs in a quarter of the time, pip included.
UV = $(PYTHON) -m pip --python $(BIN)/python $(QUIETLY) --only-binary uv uv
INSTALL = $(UV) && $(BIN)/uv pip install --quiet --python $(BIN)/python 'pip>=24'

PAGE := tests/experiments/demonstration/test_page.py tests/experiments/test_layout.py
SERVICE := $(addprefix tests/serve/test_,client.py costs.py schema.py server.py) tests/experiments/demonstration/test_show.py
CLUSTER := $(addprefix tests/dask/test_,index.py losses.py machash.py) \
	tests/files/shards/test_fleet.py tests/experiments/datasets/test_dask_mnist.py
GPU := tests/gpu
BENCHMARKS := tests/test_benchmarks.py tests/experiments/test_reproduce.py
EXAMPLES := tests/test_pages.py tests/test_examples.py tests/cli/test_examples.py
RELEASE := tests/release
APART := -p no:schemathesis $(addprefix --ignore=,$(PAGE) $(SERVICE) $(CLUSTER) $(GPU) $(BENCHMARKS) $(EXAMPLES) $(RELEASE))
PART ?= $(APART)
SEED ?= $(shell date +%s)
# --may-skip: what a target does not have. With CI=true, any other skipped test fails the run.
# One thread of linear algebra for each of two processes.
TWICE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

MAY_SKIP := --may-skip=data,docs,gpu,soak,stores,torch

.PHONY: demo test test-alone test-benchmarks test-cluster test-examples test-gpu test-page test-service test-shuffled test-stores \
	test-torch matrix coverage dist soak bench figures report docs clean

demo: $(BASE)  ## learn codes for handwritten digits and compare
	$(BIN)/auxhash demo

test: $(READY)  ## style, types, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(TWICE) $(MAY_SKIP) $(APART); tests=$$?; wait $$types && exit $$tests

test-alone: $(READY)  ## the tests of make test without style and types, or some: PART=tests/mac
	$(TWICE) $(MAY_SKIP) $(PART)

test-benchmarks: $(READY)  ## that every benchmark and every figure runs, at a small size
	$(TWICE) --may-skip=torch $(BENCHMARKS)

test-cluster: $(READY)  ## training on Dask clusters, which it starts on this machine
	$(BIN)/pytest $(CLUSTER)

test-examples: $(READY)  ## that the documentation, examples/ and --help run, and print what they show
	$(TWICE) --may-skip=data,torch $(EXAMPLES)

test-gpu: $(READY)  ## the kernels of GPUs: emulated, where there is a C++ compiler; on a GPU, with CuPy
	$(BIN)/pytest --may-skip=gpu,torch $(GPU)

test-shuffled: $(READY)  ## the tests of make test in random order, in one process; again: SEED=...
	$(BIN)/pytest $(MAY_SKIP) --shuffle $(SEED) $(APART)

test-stores: $(VENV)/.stores  ## stores, each on a real engine, and the SQL of the documentation
	$(BIN)/pytest --may-skip=soak tests/stores

test-page: $(VENV)/.browser  ## the page of the service, in the Chromium of the machine
	$(BIN)/pytest $(PAGE)

test-service: $(READY)  ## the service as a process: kills, load, slow clients, any request; its examples
	$(BIN)/pytest $(SERVICE)

test-torch: $(VENV)/.torch  ## PyTorch modules as hash functions, and their page; models of data sets
	$(BIN)/pytest --may-skip=gpu tests/learn/torch tests/learn/test_options.py tests/test_pages.py \
		tests/experiments/datasets/test_torch_models.py $(BENCHMARKS) -k 'torch or deep'

matrix: $(VENV)/.release  ## make test on each Python, newest and lowest dependencies; MATRIX=--help
	$(BIN)/python -m tests.release.matrix $(MATRIX)

coverage: $(VENV)/.release  ## which lines of the package no test of make test runs
	rm -f .coverage .coverage.*
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/coverage run -m pytest -n 2 --dist worksteal $(MAY_SKIP) $(PART)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --sort=miss

dist: $(VENV)/.release  ## wheel and source archive in dist/, checked, and tried without the checkout
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/pytest --may-skip=data $(RELEASE)

soak: $(VENV)/.torch  ## the long versions of the tests; one fetches a data set, and embeds it
	AUXHASH_SOAK=1 $(TWICE) --may-skip=browser,data,dist,docs,gpu,stores --shuffle $(SEED)

docs: $(VENV)/.docs  ## the documentation, docs/_build/index.html; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -n -q docs docs/_build
	$(BIN)/pytest tests/test_docs.py -k formula

bench: $(READY)  ## speeds beside their peers, with verdicts; in three minutes: make bench BENCH=--quick
	$(BIN)/python -m benchmarks speed $(BENCH)

figures: $(READY)  ## the paper's figures at its size: every run without a record; FIGURES=--list: what is left
	nice -n 19 $(BIN)/python -m benchmarks figures $(FIGURES)

report: $(READY)  ## what was found of the paper, as one document: docs/_build/report.html
	$(BIN)/python docs/report.py

$(BASE): pyproject.toml  # what users get, and nothing more
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or later is needed"'
	$(PYTHON) -m venv --without-pip $(VENV)
	($(INSTALL) --editable .) || ($(BIN)/python -m ensurepip && $(PIP) --editable .)
	touch $(BASE)

$(READY): $(BASE)  # by uv where it is there, in a fifth of pip's time
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev]' || $(PIP) --editable '.[dev]'
	touch $(READY)

$(VENV)/.docs: $(READY)
	$(PIP) --editable '.[docs]'
	touch $(VENV)/.docs

$(VENV)/.stores: $(READY)
	$(PIP) --editable '.[dev,stores]'
	touch $(VENV)/.stores

$(VENV)/.browser: $(READY)
	$(PIP) --editable '.[dev,browser]'
	touch $(VENV)/.browser

$(VENV)/.release: $(READY)
	$(PIP) --editable '.[dev,release]'
	touch $(VENV)/.release

$(VENV)/.torch: $(READY)  # TORCH=torch==2.13.0 takes a build that is at hand
	$(PIP) $(TORCH) 'setuptools<81'  # or the stores' Milvus would break
	$(PIP) --editable '.[dev,embeddings,torch]'
	touch $(VENV)/.torch

clean:
	rm -rf $(VENV) dist .coverage* docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
