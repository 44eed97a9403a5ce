"""This file holds the demo: a Ray of its own, also under uv run, and the same figures when it is asked for again."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.ray_cluster import started
from tests.small_run import SMALL, command

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def said(folder) -> list[str]:
    """What two demos in a row print. Ray looks for an ancestor called ``uv run``: a shell goes by that name here."""
    (folder / "run").write_text('"$@"\n')
    words = ("bash", "-c", 'exec -a uv bash run "$@"', "-", *command("demo", *SMALL, "-o", str(folder / "out")))
    printed = []
    for _ in range(2):
        with started(*words, cwd=folder) as demo:
            printed.append(demo.communicate(timeout=300)[0])
        assert demo.returncode == 0, printed[-1]
    return printed


def test_the_demo_starts_a_ray_of_its_own_and_says_what_is_ready(said):
    first = said[0]
    order = [first.index(text) for text in ("Ray started for this run", "controller ready", "trainer ready", "step 1/")]
    assert first.startswith("miniverl demo: ") and order == sorted(order)


def test_asked_for_again_it_shows_its_figures_and_starts_nothing(said):
    first, again = said
    assert "this run is finished already" in again and "ready after" not in again
    assert first.splitlines()[-4:] == again.splitlines()[-4:], "teacher, before, after, and where the adapter lies"


def test_its_figures_are_json_on_stdout_and_words_elsewhere(said, folder):
    words = command("run", "quickstart", *SMALL, "--json", "-o", str(folder / "out"))
    shown = subprocess.run(words, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    figures = json.loads(shown.stdout)
    assert set(figures["evaluation"]) == {"teacher", "student_before", "student_after"}
    assert set(figures["actors"]) == {"controller", "trainer", "rollout", "teacher", "journal"}
    assert all(actor["busy_seconds"] > 0 and actor["calls"] > 0 for actor in figures["actors"].values())
    assert "student after" in shown.stderr
