"""This file holds the page: the training loop, which is the algorithm and nothing else."""

from __future__ import annotations

from miniverl.training.run import Run


def train(run: Run) -> None:
    """Runs every step that is left. The same page serves one process and actors.

    A step is the unit that happens or does not: it has happened when the journal has closed it. Recovery needs no
    page of its own: recorded groups come back from ``gather``, and a closed step must close again with equal digests.
    """
    run.evaluate_before_training()
    for step in run.steps():
        policy = run.trainer.policy()
        run.rollout.synchronize(policy)  # other identities are refused from here on
        run.trainer.begin(step.number)
        for parcel in run.gather(step, policy.snapshot):  # complete, scored, durable, in cursor order
            run.trainer.add(parcel, run.teacher.score(parcel))
        report = run.trainer.update(step.number, run.journal.kept(step.number))  # v -> v + 1, all or nothing
        run.journal.close(report)  # the step happened
        run.evaluate_if_due(step)
        run.checkpoints.save_if_due(step)
        run.metrics.log(report)
    run.trainer.export(run.final_folder)
