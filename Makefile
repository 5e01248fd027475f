# Reef: `make demo` runs the whole loop, `make test` the tests. Every target sets up what it needs in .venv.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup

# The newest supported Python that can really make a virtual environment (Debian ships python3 without venv).
find_python = for v in 3.13 3.12 3.11; do \
	  p=python$$v; command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv, ensurepip; assert sys.version_info[:2] == tuple(map(int, "'$$v'".split(".")))' >/dev/null 2>&1 && { echo $$p; exit 0; }; \
	done; exit 1

.PHONY: help setup demo test test-slow test-agents lint format recording pictures bench bench-guard clean
help:
	@echo "make setup   a virtual environment in .venv with everything Reef needs"
	@echo "make demo    the whole loop on an embedded model, about three minutes"
	@echo "make test    the tests      make test-slow   the ones that take minutes"
	@echo "make test-agents   coding agents and SDKs of the npm registry, as they are, through the daemon"
	@echo "make recording, make pictures   what reef tui --demo replays; the pictures in the documents"
	@echo "make lint    ruff, mypy, import-linter        make bench   benchmarks, as ratios (bench-guard: a minute of them)"

setup: $(STAMP)

$(VENV)/bin/python:
	@python=$$( $(find_python) ) || { \
	  echo "error: no Python 3.11, 3.12 or 3.13 with the venv module was found" >&2; \
	  if [ "$$(uname)" = Darwin ]; then echo "hint: brew install python@3.12" >&2; \
	  else echo "hint: sudo apt-get install python3.11 python3.11-venv" >&2; fi; exit 1; }; \
	echo "setting up $(VENV) with $$python" && $$python -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[local,dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/reef demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow and not agents'

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m 'slow and not agents'

test-agents: $(STAMP)
	$(BIN)/python -m pytest tests/agents -n 2 -m agents

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

recording: $(STAMP)
	$(BIN)/python -m reef_cli.tui.record reef_cli/tui

pictures: $(STAMP)
	$(BIN)/python -m reef_cli.tui.pictures docs/pictures

bench: $(STAMP)
	$(BIN)/python -m bench

bench-guard: $(STAMP)
	$(BIN)/python -m bench proxy --guard

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
