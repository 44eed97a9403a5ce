# The folder of this file, whatever the current directory is and whatever characters its path has.
HERE := $(shell cd "$$(dirname "$(strip $(MAKEFILE_LIST))")" && pwd)

.PHONY: help demo test check set_up

help:
	@echo 'make demo    set up, then watch a small student learn from a teacher through Ray actors'
	@echo 'make test    set up, then the gate (scripts/check) and the slower tests'
	@echo 'make check   set up, then the gate alone'
	@echo 'make set_up  the virtual environment .venv alone'

demo:
	@cd "$(HERE)" && scripts/set_up train && .venv/bin/miniverl demo

test:
	@cd "$(HERE)" && scripts/set_up train,dev && scripts/check && scripts/slow_tests

check:
	@cd "$(HERE)" && scripts/set_up train,dev && scripts/check

set_up:
	@cd "$(HERE)" && scripts/set_up train,dev
