# Two commands: `make demo` runs the main job, `make test` passes the tests. Both set everything up.

BIN := .venv/bin

.PHONY: help setup demo serve test test-fast lint format proto lock clean

help:  ## Show this list.
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

setup:  ## Make .venv ready (every other target does).
	@requirements/setup.sh

demo: setup  ## Click logs, the whole pipeline, a release and two queries, in demo/.
	@rm -rf demo && mkdir demo
	@cd demo && ../$(BIN)/pebr generate --out data
	@cd demo && ../$(BIN)/pebr run --config data/pebr.yaml
	@cd demo && ../$(BIN)/pebr query --release releases --limit 5 "black shoes" "apple 5g phone"
	@echo && echo "make serve   the same as a service, with a page at http://127.0.0.1:8601/"

serve: setup  ## Serve the demo's releases: page, HTTP and gRPC.
	@$(BIN)/pebr serve --releases demo/releases

test: lint  ## Lint, types, unit tests, then the slower ones.
	@$(BIN)/pytest -n auto -m 'not slow'
	@$(BIN)/pytest -n auto -m slow

test-fast: setup  ## The inner loop: unit tests only.
	@$(BIN)/pytest -n auto -m 'not slow' -x

lint: setup  ## Lint, format and type checks.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy

format: setup  ## Rewrite the code in the project's format.
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

proto: setup  ## Write the gRPC stubs anew.
	@$(BIN)/python -W ignore -m grpc_tools.protoc -I. --python_out=. --grpc_python_out=. serving/proto/retrieval.proto

lock: setup  ## Resolve the version set anew and write the hash-locked files.
	@requirements/lock.sh

clean:  ## Remove everything that make has made.
	@rm -rf .venv .setup demo build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
