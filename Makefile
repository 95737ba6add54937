# Two commands matter: `make demo` and `make test`. Both set everything up first.

PYTHON := .venv/bin/python
STAMP := .venv/.heimdall-setup

.PHONY: demo test setup lint clean

demo: setup
	@sh scripts/demo.sh

# ARGS passes options to pytest: make test ARGS="-x -k coordinator"
test: setup
	@$(PYTHON) -m pytest $(ARGS)

setup: $(STAMP)

# The script writes the stamp itself, and only when nothing is missing.
$(STAMP): pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh $(STAMP)

lint: setup
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

clean:
	rm -rf .venv out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find heimdall apps tests -name __pycache__ -type d -prune -exec rm -rf {} +
