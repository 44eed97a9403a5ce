"""This file holds the demo: a Ray of its own, also under uv run, and the same figures when it is asked for again."""

import pytest

from tests.ray_cluster import started
from tests.small_run import SMALL, command


@pytest.mark.slow
def test_the_demo_starts_its_own_ray_under_uv_run_and_shows_its_figures_again(tmp_path):
    """Ray looks for an ancestor called ``uv run``; here it is a shell that goes by that name."""
    (tmp_path / "run").write_text('"$@"\n')
    words = ("bash", "-c", 'exec -a uv bash run "$@"', "-", *command("demo", *SMALL, "-o", str(tmp_path / "demo")))
    said = []
    for _ in range(2):
        with started(*words, cwd=tmp_path) as demo:
            said.append(demo.communicate(timeout=300)[0])
        assert demo.returncode == 0, said[-1]
    first, again = said
    order = [first.index(f"{role} ready") for role in ("controller", "journal")] + [first.index("step 1/")]
    assert first.startswith("miniverl demo: ") and order == sorted(order)
    assert "this run is finished already" in again and "Ray" not in again.partition("finished already")[2]
    assert first.splitlines()[-4:] == again.splitlines()[-4:], "teacher, before, after, and where the adapter lies"
