# The two commands of the README are `make demo` and `make test`; each sets up all it needs.
.PHONY: demo test check format lint types layers audit fuzz lock clean

demo:
	@scripts/setup run
	@.venv/bin/securebench demo

test:
	@scripts/setup dev
	@.venv/bin/python -m pytest -n auto --dist worksteal

check: format lint types layers test audit

format:
	@scripts/setup dev
	@.venv/bin/ruff format --check .

lint:
	@scripts/setup dev
	@.venv/bin/ruff check .

types:
	@scripts/setup dev
	@.venv/bin/mypy

layers:
	@scripts/setup dev
	@.venv/bin/lint-imports

audit:
	@scripts/setup dev
	@.venv/bin/securebench audit

# Seconds for each target; what it learns goes into tests/fuzz/corpus.
fuzz:
	@scripts/setup dev
	@scripts/fuzz $(or $(SECONDS_EACH),120)

# Locks carry versions and hashes only; see docs/adr/0001-lock-files.md.
lock:
	@scripts/setup dev
	@.venv/bin/python -m pip install --quiet uv
	@for set in build dev; do \
	  .venv/bin/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url --group $$set pyproject.toml -o requirements/$$set.lock; done
	@mv requirements/build.lock requirements/run.lock

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
