# SPDX-License-Identifier: BSD-3-Clause
# Makefile: the two commands of a newcomer, and a few for those who work on Quadriga.
.PHONY: demo test build check clean

demo:  ## Set up what is missing, build without tests, and run the main job.
	tools/setup --without-tests --joined $(SETUP)
	.venv/bin/quadriga demo

test: build  ## Set up what is missing, build, and run all tests.
	tools/run_tests

build:
	tools/setup $(SETUP)

check:  ## All that continuous integration checks.
	.ci/run

clean:
	rm -rf build .venv
