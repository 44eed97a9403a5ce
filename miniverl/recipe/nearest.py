"""This file holds the finding of the nearest right key: by the names other trainers use, by place and by spelling."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches

SYNONYMS: dict[str, str] = {
    "num_generations": "rollout.samples_per_prompt",
    "group_size": "rollout.samples_per_prompt",
    "num_return_sequences": "rollout.samples_per_prompt",
    "n": "rollout.samples_per_prompt",
    "max_completion_length": "rollout.max_new_tokens",
    "max_response_length": "rollout.max_new_tokens",
    "response_length": "rollout.max_new_tokens",
    "max_tokens": "rollout.max_new_tokens",
    "do_sample": "rollout.temperature",
    "max_num_seqs": "rollout.prompt_batch_size",
    "learning_rate": "optim.lr",
    "max_grad_norm": "optim.clip_grad",
    "grad_clip": "optim.clip_grad",
    "warmup_steps": "optim.lr_warmup_steps",
    "lr_scheduler": "optim.lr_scheduler_type",
    "lora_rank": "models.student.lora.r",
    "rank": "models.student.lora.r",
    "alpha": "models.student.lora.lora_alpha",
    "peft_config": "models.student.lora",
    "use_peft": "models.student.lora",
    "model_name": "models.student.id",
    "model_name_or_path": "models.student.id",
    "model": "models.student.id",
    "torch_dtype": "models.student.dtype",
    "enable_gradient_checkpointing": "models.student.gradient_checkpointing",
    "use_gradient_checkpointing": "models.student.gradient_checkpointing",
    "teacher_model": "models.teacher.id",
    "teacher_model_name_or_path": "models.teacher.id",
    "batch_size": "data.train_batch_size",
    "groups_per_batch": "data.train_batch_size",
    "per_device_train_batch_size": "data.train_batch_size",
    "dataset": "data.train_files",
    "train_file": "data.train_files",
    "eval_files": "data.val_files",
    "val_file": "data.val_files",
    "num_train_epochs": "trainer.total_epochs",
    "epochs": "trainer.total_epochs",
    "max_steps": "trainer.total_training_steps",
    "steps": "trainer.total_training_steps",
    "save_steps": "trainer.save_freq",
    "eval_steps": "trainer.test_freq",
    "eval_on_start": "trainer.val_before_train",
    "micro_batch_size": "trainer.ppo_max_token_len_per_gpu",
    "gradient_accumulation_steps": "trainer.ppo_max_token_len_per_gpu",
    "report_to": "tracking.sinks",
    "logger": "tracking.sinks",
    "project_name": "tracking.project",
    "wandb_project": "tracking.project",
    "run_name": "tracking.experiment_name",
    "output_dir": "run.dir",
    "default_local_dir": "run.dir",
    "resume_mode": "run.resume",
    "resume_from_checkpoint": "run.resume",
    "load_checkpoint_path": "run.resume",
    "algorithm": "objective",
    "loss_mode": "objective",
    "kl_type": "distillation.divergence",
    "top_logprobs": "distillation.topk",
}
"""Last part of a key elsewhere -> the key here."""

ANSWERS: dict[str, str] = {
    "beta": "write distillation.jsd_beta for the weight of the teacher in the JSD mixture; beta alone is refused "
    "because elsewhere it also means the weight of a KL penalty",
    "load_in_4bit": "write models.student.quantization: nf4",
    "load_in_8bit": "write models.student.quantization: nf4 (8 bits are not offered)",
    "bf16": "write models.student.dtype: bfloat16",
    "fp16": "write models.student.dtype: auto (float16 is not offered)",
    "gpu_memory_utilization": "write placement.rollout.gpu, the fraction of the card the rollout may use",
    "n_gpus_per_node": "write placement.<role>.gpu, a fraction of a card for each role",
    "nnodes": "write ray.address to run on a cluster; one node is the default",
    "adv_estimator": "write objective: gkd or objective: sampled_k1",
    "optimizer": "leave it out: the optimizer is AdamW",
    "optim": "write the block optim: with lr, betas and so on; the optimizer is AdamW",
    "chat_template_kwargs": "leave it out: the chat template of the student's folder is used as it is",
    "push_to_hub": "leave it out: the run directory ends with a plain PEFT folder that you can upload",
}
"""Last part of a key elsewhere -> what to write, where the key here takes another value or does not exist."""


def has_a_relative(key: str, known: Sequence[str]) -> bool:
    """Whether the key itself resembles something here, by name or by spelling."""
    leaf = key.rsplit(".", 1)[-1]
    return leaf in ANSWERS or leaf in SYNONYMS or _spelled_alike(key, known) is not None


def fix_for(key: str, known: Sequence[str]) -> str:
    """What to write instead of the unknown dotted ``key``; ``known`` are all dotted keys."""
    leaf = key.rsplit(".", 1)[-1]
    if key in known:
        return f"write it as blocks, {_as_blocks(key)}"
    if leaf in ANSWERS:
        return ANSWERS[leaf]
    if leaf in SYNONYMS:
        return f"write {SYNONYMS[leaf]}"
    nearest = _same_leaf_elsewhere(key, known) or _spelled_alike(key, known)
    return f"did you mean {nearest}?" if nearest else f"leave it out; {_siblings(key, known)}"


def _as_blocks(key: str) -> str:
    *blocks, leaf = key.split(".")
    return "".join(f"{block}: {{" for block in blocks) + f"{leaf}: ..." + "}" * len(blocks)


def _same_leaf_elsewhere(key: str, known: Sequence[str]) -> str | None:
    """``trainer.lr`` is ``optim.lr`` in the wrong block."""
    leaf = key.rsplit(".", 1)[-1]
    homes = [candidate for candidate in known if candidate.rsplit(".", 1)[-1] == leaf]
    return max(homes, key=lambda home: SequenceMatcher(None, key, home).ratio(), default=None)


def _spelled_alike(key: str, known: Sequence[str]) -> str | None:
    """In the key's own block first, then anywhere."""
    block, _, leaf = key.rpartition(".")
    siblings = {candidate.rpartition(".")[2]: candidate for candidate in known if candidate.rpartition(".")[0] == block}
    leaves = {candidate.rpartition(".")[2]: candidate for candidate in known}
    for candidates, word, cutoff in ((siblings, leaf, 0.6), (leaves, leaf, 0.75), ({k: k for k in known}, key, 0.75)):
        if close := get_close_matches(word, list(candidates), n=1, cutoff=cutoff):
            return candidates[close[0]]
    return None


def _siblings(key: str, known: Sequence[str]) -> str:
    block = key.rpartition(".")[0]
    names = [k.rpartition(".")[2] for k in known if k.rpartition(".")[0] == block]
    return f"{block or 'a recipe'} has the keys {', '.join(names)}" if names else "no key has a name like it"
