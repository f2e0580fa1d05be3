# Two commands matter: `make reproduce` and `make test`. Each makes .venv when it is missing.
PYTHON ?= python3
BIN := .venv/bin
TORCH := $(shell grep '^torch==' constraints.txt)

# What is installed, without the "+cpu" of a build; nothing where torch is missing.
HAVE = $$($(BIN)/python -c 'from importlib.metadata import version; print("torch==" + version("torch").split("+")[0])' 2>/dev/null)
OLD = import sys; sys.exit(sys.version_info >= (3, 11))

# Tests in which kernels run on arrays of all sizes; with bounds checked, a kernel that reads or writes beside them fails.
KERNELS := $(addprefix tests/transfer/,test_kernels.py test_arrivals.py test_k_way.py test_hand_made.py) \
	$(addprefix tests/queueing/,test_kernels.py test_paths.py test_active_path.py) tests/latency/test_kernels.py

# Files with tests that judge time: these run alone, at the end.
QUIET = $(shell grep -l 'mark\.quiet' tests/*/test_*.py)

# Tests of what should work, or say how to add torch, in a Python that has none.
TORCHLESS := tests/test_face.py tests/catalogue/test_recorded.py tests/executor tests/profiles/test_measure.py workbench

.PHONY: reproduce test lab gallery benchmark clean

reproduce: .venv/.lab
	$(BIN)/workbench reproduce all --quick

lab: .venv/.lab
	$(BIN)/workbench lab

gallery: .venv/.lab
	$(BIN)/workbench reproduce all --full --gallery --out figures

# Byte code is kept, even where that is turned off: some hundred processes import the package one after the other.
test: export PYTHONDONTWRITEBYTECODE :=
test: .venv/.dev
	@date +%s >.venv/test-begun
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports --no-cache >.venv/imports.log 2>&1 || { cat .venv/imports.log; exit 1; }
	$(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder -m "not quiet" # real runs and browsers wait
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile $(KERNELS)
	PYTHONPATH=tests/support/without_torch $(BIN)/python -m pytest -q -n 2 --dist loadfile \
		-m "not real and not notebook and not ui" $(TORCHLESS)
	$(BIN)/python -m pytest -q -m quiet $(QUIET)
	@echo $$(($$(date +%s) - $$(cat .venv/test-begun))) >.venv/test-seconds

benchmark: .venv/.dev
	$(BIN)/python -m pytest -q -s tests/benchmarks --budgets figures/BUDGETS.md

# torch comes from the CPU index on a user's machine, unless the pin already resolves without any index; without torch
# everything but the real runs works, and those say so. Another version than the pin does not count as torch: pip would
# replace it by the large build that PyPI has.
.venv/.lab: pyproject.toml constraints.txt
	@if $(BIN)/python -c '$(OLD)' 2>/dev/null; then \
		echo ".venv was made by $$($(BIN)/python --version), and 3.11 is needed: rm -r .venv, then make it again." >&2; exit 2; fi
	@test -x $(BIN)/python || ! $(PYTHON) -c '$(OLD)' \
	|| { echo "$(PYTHON) is $$($(PYTHON) --version), and 3.11 is needed: make PYTHON=python3.11, say." >&2; exit 2; }
	@echo "Installing the workbench with its notebooks, and $(TORCH) for real runs, into .venv (some minutes, about 2 GB) ..."
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test "$(HAVE)" = "$(TORCH)" || echo "$(TORCH), CPU build ..."
	test "$(HAVE)" = "$(TORCH)" \
	|| $(BIN)/python -m pip install -q -c constraints.txt --no-index --no-deps $(TORCH) 2>/dev/null \
	|| $(BIN)/python -m pip install -q -c constraints.txt --no-deps $(TORCH) --index-url https://download.pytorch.org/whl/cpu \
	|| echo "$(TORCH) was not found; real runs will say 'not run' and how to add it."
	@echo "workbench-llm and what it needs (numba, polars, simpy, plotly, JupyterLab), as pinned in constraints.txt ..."
	if test "$(HAVE)" = "$(TORCH)"; then extras=lab,torch; else extras=lab; fi; \
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[$$extras]"
	touch $@

.venv/.dev: .venv/.lab
	@echo "Installing what the tests need (pytest, hypothesis, ruff, playwright, import-linter) ..."
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv figures/out
