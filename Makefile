# Two commands: `make demo` runs the whole product, `make test` the tests. Both set everything up.

BIN := .venv/bin

.PHONY: help setup demo serve test test-fast test-engines lint format proto lock experiments benchmarks clean

help:  ## List the targets.
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

setup:  ## Set up .venv; every other target does this first.
	@requirements/setup.sh

demo: setup  ## Generate click logs, run the pipeline, and query the release, in demo/.
	@rm -rf demo && mkdir demo
	@cd demo && ../$(BIN)/pebr generate --out data
	@cd demo && ../$(BIN)/pebr run --config data/pebr.yaml
	@cd demo && ../$(BIN)/pebr query --release releases --limit 5 "black shoes" "apple 5g phone"
	@echo && echo "make serve   the same as a service, with a page at http://127.0.0.1:8601/"

serve: setup  ## Serve the releases of the demo: page, HTTP and gRPC.
	@$(BIN)/pebr serve --releases demo/releases

test: lint  ## Lint, format and type checks, then all tests.
	@$(BIN)/pytest -n auto

test-fast: setup  ## The tests that are not slow, up to the first failure.
	@$(BIN)/pytest -n auto -m 'not slow and not engine' -x

demo/releases:
	@$(MAKE) --no-print-directory demo

test-engines: setup demo/releases  ## The tests with real engines (a JVM, Go); each is skipped without its toolchain.
	@$(BIN)/pytest -m engine -rs

lint: setup  ## Lint, format and type checks.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy

format: setup  ## Fix and format the code.
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

experiments: setup  ## List the experiments: .venv/bin/python -m experiments NAME --out DIR.
	@$(BIN)/python -m experiments --help

benchmarks: setup  ## List the benchmarks: .venv/bin/python -m benchmarks NAME.
	@$(BIN)/python -m benchmarks --help

proto: setup  ## Generate the gRPC stubs.
	@$(BIN)/python -W ignore -m grpc_tools.protoc -I. --python_out=. --grpc_python_out=. serving/proto/retrieval.proto

lock: setup  ## Resolve requirements/*.in into the hash-locked requirements/*.txt.
	@requirements/lock.sh

clean:  ## Remove everything that make has created.
	@rm -rf .venv .setup demo build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
