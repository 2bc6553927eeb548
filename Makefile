# Every target sets up what it needs in .venv. PYTHON=/path/to/python3 chooses the Python.
.POSIX:
.PHONY: help demo test lint bench soak wheel clean
.NOTPARALLEL:

help:
	@echo 'make demo    install, load the example tree and print the 40-session Qoder report'
	@echo 'make test    install and run every check: lint, types, import contracts, tests'
	@echo 'make lint    the same without the tests'
	@echo 'make bench   measure loads of a generated tree of MB megabytes (MB=100); more options in ARGS'
	@echo 'make soak    kill N loads (N=200) at random moments, and load night after night for a simulated year'
	@echo 'make wheel   build the sdist and the wheel into dist/'
	@echo 'make clean   remove .venv, dist and caches'

demo:
	@sh .ci/bootstrap
	@.venv/bin/sessionmart demo

lint:
	@sh .ci/bootstrap dev
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-logo

test: lint
	@.venv/bin/python -m pytest

MB = 100
bench:
	@sh .ci/bootstrap
	@.venv/bin/python -m tests.bench.run --mb $(MB) $(ARGS)

N = 200
soak:
	@sh .ci/bootstrap
	@.venv/bin/python -m tests.soak --kills $(N) $(ARGS)

wheel:
	@sh .ci/bootstrap dev
	@.venv/bin/python -m hatchling build -d dist

clean:
	rm -rf .venv .bench dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find etl tests -name __pycache__ -type d -prune -exec rm -rf {} +
