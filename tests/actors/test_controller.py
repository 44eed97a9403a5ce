"""This file holds the only caller of the roles: what it must not load, and what it notes about its own cost."""

import subprocess
import sys
from pathlib import Path

from actors.controller import ControllerActor, Costs
from actors.post import Post
from actors.vitals import STOP, Vitals
from actors.watch import Watch


def test_the_controller_loads_no_torch():
    script = "import actors.controller, sys; assert 'torch' not in sys.modules, 'torch came in'"
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=True)


def test_a_stop_is_told_to_every_role_with_its_next_pulse(plan):
    controller = ControllerActor(plan)
    controller.stop()
    assert controller.beat(Vitals("rollout").pulse()) == STOP


def test_the_status_knows_the_newest_pulse_of_each_role(plan):
    controller, vitals = ControllerActor(plan), Vitals("trainer")
    controller.beat(vitals.pulse())
    with vitals.serving("update"):
        controller.beat(vitals.pulse())
    assert controller.status().pulses["trainer"].phase == "update" and controller.status().step == 0


def test_costs_of_a_step_are_what_came_since_the_step_before():
    watch = Watch()
    post = Post(watch)
    costs = Costs(post, watch)
    post.messages += 5
    assert costs.of_step()["controller"]["messages"] == 5
    assert costs.of_step()["controller"]["messages"] == 0


def test_costs_so_far_name_every_actor_heard_of():
    watch = Watch()
    watch.beat(Vitals("trainer").pulse())
    found = Costs(Post(watch), watch).so_far()["actors"]
    assert set(found) == {"controller", "trainer"}
    assert set(found["trainer"]) == {"busy_seconds", "calls", "peak_rss"} and found["controller"]["peak_rss"] > 0
