"""This file holds what the lines of a controller share."""

import time

import numpy as np
import pytest
import ray

from actors.post import Post, Promise
from actors.watch import Watch
from miniverl.contract.group import Group
from miniverl.contract.parcel import KEPT, Parcel
from miniverl.errors import RoleError


def parcel(cursor: int) -> Parcel:
    group = Group(
        id=f"{cursor:012d}-p", cursor=cursor, policy_version=0, snapshot_digest="s", tensor_digest="t", prompt_row=0,
        prompt_digest="p", prompt_ids=np.array([1]), data_source="sums", ground_truth=None, seeds=np.array([7]),
        lengths=np.array([2]), token_ids=np.array([[3, 4]]), logps=None, behaviour_logps=None, temperature=1.0,
        stop_reasons=("length",), stop_matches=("",), texts=("ab",),
    )  # fmt: skip
    return Parcel(step=1, groups=(group,), fates=(KEPT,))


def test_a_role_that_fell_silent_is_named():
    watch = Watch()
    post = Post(watch)
    from actors.vitals import Vitals

    watch.beat(Vitals("teacher").pulse())
    with pytest.raises(RoleError, match="teacher"):
        for _ in range(20):
            post.look_around()


def test_waiting_begins_with_a_clean_slate():
    watch = Watch()
    post = Post(watch)
    from actors.vitals import Vitals

    watch.beat(Vitals("teacher").pulse())
    for _ in range(10):
        post.look_around()
        post.listen()
        post.look_around()


@pytest.mark.slow
def test_a_parcel_is_put_in_the_object_store_once_for_all_its_readers(attached):
    post, first, second = Post(Watch()), parcel(0), parcel(1)
    assert post.parcel(first) == post.parcel(first) != post.parcel(second)
    assert ray.get(post.parcel(second)).groups[0].digest == second.groups[0].digest


@pytest.mark.slow
def test_promises_are_remembered_until_they_are_over_or_the_step_begins_anew(attached):
    post, sleep = Post(Watch()), ray.remote(num_cpus=0.1)(lambda: time.sleep(600))
    kept = Promise(reference=ray.put(0), role="trainer", call="add")
    open_ = Promise(reference=sleep.remote(), role="trainer", call="add")
    post.remember(kept), post.remember(open_)
    post.settle_finished()
    assert post.promises() == (open_,)
    post.forget()
    assert post.promises() == ()
    ray.cancel(open_.reference, force=True)
