# Two commands matter: `make demo` and `make test`. Both set everything up first.

PYTHON := .venv/bin/python
STAMP := .venv/.heimdall-setup

.PHONY: demo test test-all test-opencl fuzz faults soak properties audit versions setup lint site \
	pictures clean

demo: setup
	@sh scripts/demo.sh

# ARGS passes options to pytest: make test ARGS="-x -k coordinator"; without whole runs and builds:
# make test ARGS="-m 'not slow'"
# `make test-all` has the tests marked "long", too: every recorded decision, the papers' figures with
# more seeds, other OpenCL drivers; and a hundred examples of each property instead of thirty.
# Without options: first what can share the cores (the engine's tests compile kernels most of the
# time; recipes wait for processes of their own); then what runs apps in real time, one by one, with
# the kernels that are there by then: what an app builds beside its frames has the lowest priority,
# and would wait for minutes on busy cores.
APPS := $(addprefix apps/test_,every_app.py marker.py shopping_hears.py shopping_run.py surroundings.py)
LIVE := $(addprefix tests/,$(APPS) lab/bench lab/faults runtime render/preview \
	render/test_window_run.py render/test_virtual_camera.py system cli/test_scaffold.py \
	docs/test_learn.py engine/test_contract.py examples serve/test_hosting.py test_bad_input.py \
	test_plugins.py test_survival.py)

# Each process of the first part has a core: numpy's threads for the others took three times as long.
ONE_CORE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

test: SELECTED := -m 'not long'
test-all: SELECTED := --hypothesis-profile thorough
test test-all: setup
ifeq ($(strip $(ARGS)),)
	@cache=$$(mktemp -d) && trap 'rm -rf "$$cache"' EXIT && \
	export HEIMDALL_TEST_CACHE="$${HEIMDALL_TEST_CACHE:-$$cache}" && \
	$(ONE_CORE) $(PYTHON) -m pytest $(SELECTED) -n logical --dist worksteal -rs $(addprefix --ignore=,$(LIVE)) && \
	$(PYTHON) -m pytest $(SELECTED) $(LIVE)
else
	@$(PYTHON) -m pytest $(ARGS)
endif

# The OpenCL engine on Intel's runtime, rusticl and Oclgrind, as far as they can be had (an hour):
# unpacked into the user's cache, not installed. `make test-all` runs a part of it.
test-opencl: setup
	@$(PYTHON) scripts/opencl.py
	@HEIMDALL_OPENCL=all $(PYTHON) -m pytest -n logical -rs -v \
		tests/engine/opencl/test_implementations.py

# Damaged inputs of every kind, tried in processes of their own: ARGS="--target gltf --count 500",
# "--target gltf --seed 12"
fuzz: setup
	@$(PYTHON) -m tests.fuzz $(ARGS)

# Every fault there is, put into a live run and judged (an hour, half of it signals):
# ARGS="emoji --only gpu-lost,draw-raises"
faults: setup
	@$(PYTHON) -m heimdall faults $(ARGS)

# Every app in turn while everything fails now and then: ARGS="--minutes 60"
soak: setup
	@$(PYTHON) -m heimdall soak --output out/soak.html $(ARGS)

# Holes that are known of the packages that are installed here; needs the network. One that the
# database does not know fails, too: it would not be seen.
audit: setup
	@$(PYTHON) -m venv out/audit
	@out/audit/bin/pip install -q pip-audit
	@$(PYTHON) -m pip freeze --exclude-editable > out/audit/installed.txt
	@out/audit/bin/pip-audit --strict --no-deps --disable-pip -r out/audit/installed.txt

# A short run with the lowest and the newest versions that pyproject.toml allows (a minute or two;
# needs the network): ARGS=python3.13 for another Python
versions: setup
	@$(PYTHON) scripts/versions.py $(ARGS)

# Events in any order to the coordinator, legal and not, under every policy and at random (two
# minutes): ARGS="--events 1000000", "--policies max-min"
properties: setup
	@$(PYTHON) -m tests.coordinator.properties $(ARGS)

setup: $(STAMP)

# The script writes the stamp itself, and only when nothing is missing.
$(STAMP): pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh $(STAMP)

# What is checked for spelling: pages, examples, comments.
PROSE := *.md docs examples heimdall apps

lint: setup
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m codespell_lib $(PROSE)

# The documentation, with the reference from docstrings
site: setup
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build -q --strict
	@echo "Open site/index.html; with its search: $(PYTHON) -m http.server -d site"

# docs/images: a picture and a clip of each app. Best when nothing else runs. APPS="emoji" for some.
pictures: setup
	@$(PYTHON) scripts/pictures.py $(APPS)

clean:
	rm -rf .venv out site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find heimdall apps examples tests -name __pycache__ -type d -prune -exec rm -rf {} +
