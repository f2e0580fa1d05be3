# Two commands matter: `make reproduce` and `make test`. Each makes .venv when it is missing.
PYTHON ?= python3
BIN := .venv/bin
TORCH := torch==2.13.0

.PHONY: reproduce test lab gallery benchmark clean

reproduce: .venv/.lab
	$(BIN)/workbench reproduce all --quick

lab: .venv/.lab
	$(BIN)/workbench lab

gallery: .venv/.lab
	$(BIN)/workbench reproduce all --full --gallery --out figures

test: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports --no-cache >.venv/imports.log 2>&1 || { cat .venv/imports.log; exit 1; }
	$(BIN)/python -m pytest -q -m "not real and not notebook and not ui"
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q tests/transfer/test_kernels.py
	$(BIN)/python -m pytest -q -m "real or notebook or ui"

benchmark: .venv/.dev
	$(BIN)/python -m pytest -q -s tests/benchmarks

# torch comes from the CPU index on a user's machine, unless the pin already resolves without any index; without torch
# everything but the real runs works, and those say so.
.venv/.lab: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip show -q torch 2>/dev/null \
	|| $(BIN)/python -m pip install -q -c constraints.txt --no-index --no-deps $(TORCH) 2>/dev/null \
	|| $(BIN)/python -m pip install -q -c constraints.txt --no-deps $(TORCH) --index-url https://download.pytorch.org/whl/cpu \
	|| echo "torch was not found; real runs will say 'not run' and how to add it."
	if $(BIN)/python -m pip show -q torch 2>/dev/null; then extras=lab,torch; else extras=lab; fi; \
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[$$extras]"
	touch $@

.venv/.dev: .venv/.lab
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv figures/out
