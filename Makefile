# Three commands: `make demo`, `make check` (a quick look) and `make test` (everything). All build .venv on first use.
PYTHON ?= python3
# Asked for by exact version, and first: an open range may pull gigabytes of CUDA packages
# that a CPU machine has no use for. On a GPU machine: make demo TORCH="torch>=2.9".
TORCH ?= torch==2.13.0

BIN := .venv/bin
READY := .venv/.ready

# What runs on the GPU. Where nothing can be installed: make gpu-test GPU_PYTHON="env PYTHONPATH=src python3".
GPU_PYTHON ?= $(BIN)/python

# Of pytest-xdist: processes that share the tests. Tests that read a clock run alone in any case.
WORKERS ?= 2

# What `make check` runs: every layer once, real ranks included, and no test that reads a clock.
QUICK := tests/base tests/protocol tests/screen tests/test_house.py tests/test_imports.py tests/cli/test_check.py \
	tests/judge/test_judge.py tests/judge/correctness/test_compare.py tests/judge/worlds/test_gate.py \
	tests/rank/test_call.py tests/rank/test_rank_holds_nothing_of_the_judge.py \
	tests/tools/test_strength.py::test_faults_do_what_they_say \
	"tests/tools/test_redteam.py::test_caught[11a_counts_calls]" \
	"tests/problems/test_problems.py::test_reference_is_its_own_correct_candidate[13_gemm_allreduce-4-float32]"

.PHONY: demo check test gpu-test lint types format bench docs dist clean

demo: $(READY)
	$(BIN)/pkb eval 1-8,12,13,16,18,45,73 --solutions-dir solutions/triton --backend triton --out runs/demo

check: lint types
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not clock and not gpu" $(QUICK)

test: lint types
	@echo "make test runs everything: 19 minutes on 2 cores (18 November 2026). make check is a quick look."
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=10

gpu-test: $(if $(filter $(BIN)/python,$(GPU_PYTHON)),$(READY))
	$(GPU_PYTHON) benchmarks/gpu_test.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python benchmarks/judging_speed.py
	$(BIN)/python benchmarks/flat_memory.py
	$(BIN)/python benchmarks/hostile.py
	$(BIN)/python benchmarks/suite_speed.py
	$(BIN)/python benchmarks/start_up.py

# The documentation as a site, in site/. A link or an anchor that leads nowhere fails.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The source distribution, and the wheel, in dist/.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pkb needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(READY)

clean:
	rm -rf site .venv .mypy_cache .ruff_cache .pytest_cache
