"""This file holds the page: the training loop, which is the algorithm and nothing else."""

from __future__ import annotations

from miniverl.training.run import Run


def train(run: Run) -> None:
    """Runs every step that is left. The same page serves one process and actors, and cannot tell which.

    A step is the unit that happens or does not: it has happened when the journal has closed it. Recovery needs no
    page of its own: recorded groups come back from ``gather``, and a step closed before must close again alike.
    """
    trainer, rollout, teacher, journal = run.roles.trainer, run.roles.rollout, run.roles.teacher, run.roles.journal
    run.evaluate_if_due(run.start)  # 0: before training; first of all, is the engine's policy the trainer's?
    for step in run.steps():
        policy = trainer.policy()  # snapshot (version v, digests) and tensors
        rollout.synchronize(policy)  # other identities are refused from here on
        trainer.begin(step.number)  # forgets an earlier, unfinished attempt
        for parcel in run.gather(step, policy.snapshot):  # complete, scored, durable, in cursor order
            trainer.add(parcel, teacher.score(parcel))  # backward at once
        report = trainer.update(step.number, journal.kept(step.number))  # v -> v + 1, all or nothing
        journal.close(report)  # the step happened
        run.evaluate_if_due(step.number)
        run.save_if_due(step.number)
        run.log(report)
    trainer.export(run.final_folder)
