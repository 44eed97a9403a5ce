"""This file holds the worker: a peer in an environment of its own, which computes one repetition per line it reads.

The job is a JSON file: model (folder), prompts (lists of ids, all of one length), samples, response_tokens, threads,
eager. Each line of standard input names a mode, greedy or stochastic; each line of output is JSON: seconds and tokens.
Every response has its full length: no peer may end one earlier.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STOCHASTIC = {"temperature": 0.8, "top_p": 0.95, "top_k": 50}

Generate = Callable[[str], int]
"""Generates in a mode; the number of tokens."""


def serve(prepare: Callable[[dict[str, Any]], Generate]) -> None:
    """Runs until standard input closes. Whatever libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for libraries, and for the processes they start
    generate = prepare(json.loads(Path(sys.argv[1]).read_text()))
    for line in sys.stdin:
        began = time.perf_counter()
        tokens = generate(line.strip())
        print(json.dumps({"seconds": time.perf_counter() - began, "tokens": tokens}), file=answers, flush=True)
