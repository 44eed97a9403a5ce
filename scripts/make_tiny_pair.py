"""This file holds the making of the embedded default: a tiny teacher, a tiny student, their tokenizer and their data.

    python scripts/make_tiny_pair.py OUT        (where miniverl is installed with its train extra)

trains both models from fixed seeds on one thread, measures them on held-out sums, and writes

    OUT/tiny-teacher  OUT/tiny-student  OUT/sums/{train,validation,heldout}.parquet

The package carries the result as ``miniverl/assets``. Same machine and versions, same bytes; another processor may
round otherwise, and the figures move a little.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

from miniverl.data import sample, sums

SPECIAL = ("<pad>", "<eos>", "<unk>", "<system>", "<user>", "<assistant>")
CHARACTERS = "0123456789+-= "
TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ['system', 'user', 'assistant'] -%}"
    "{{- raise_exception('the roles are system, user and assistant') -}}"
    "{%- endif -%}"
    "{{- '<' + message['role'] + '>' + message['content'] -}}"
    "{%- if message['role'] == 'assistant' -%}{{- eos_token -}}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<assistant>' -}}{%- endif -%}"
)
DATA_SEED, DATA_ROWS = 0, 8192
BATCH, WARMUP = 256, 20
HABIT = 0.75
"""Share of the student's later lessons that are written down wrong, always in the same way: a bad habit to unlearn."""
IGNORED = -100


def make_tokenizer() -> Tokenizer:
    """One token per character; a character it does not know becomes <unk> rather than nothing."""
    vocabulary = {token: index for index, token in enumerate((*SPECIAL, *CHARACTERS))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return tokenizer


def write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "<eos>",
        "unk_token": "<unk>",
        "model_max_length": 1024,
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def make_model(seed: int, tokenizer: Tokenizer) -> Qwen3ForCausalLM:
    torch.manual_seed(sums.packaged_seed("tiny pair", seed))
    config = Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id("<eos>"),
        pad_token_id=tokenizer.token_to_id("<pad>"),
    )
    return Qwen3ForCausalLM(config).float()


def prompt_text(question: str) -> str:
    return f"<user>{question}<assistant>"


def lined_up_on_the_left(a: int, b: int) -> int:
    """The sum of somebody who writes the numbers below each other, but lines them up on the left: 12 + 345 = 465."""
    width = max(len(str(a)), len(str(b)))
    return sum(int(str(number).ljust(width, "0")) for number in (a, b))


@dataclass(frozen=True)
class Lessons:
    """Sums of the train bucket with the answers that somebody wrote down."""

    seed: int
    steps: int
    lr: float
    habit: float
    """Share of the answers that come from lining up on the left."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """(question, answer), without end."""
        moods = np.random.Generator(np.random.Philox(key=sums.packaged_seed("tiny pair moods", self.seed)))
        for a, b in sums.pairs(sums.TRAIN, seed=sums.packaged_seed("tiny pair", self.seed)):
            yield sums.question(a, b), str(lined_up_on_the_left(a, b) if moods.random() < self.habit else a + b)


def batch(tokenizer: Tokenizer, lessons: Sequence[tuple[str, str]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and labels [B, T], padded on the right; only the answer and its <eos> are learned."""
    prompts = [tokenizer.encode(prompt_text(question)).ids for question, _ in lessons]
    answers = [tokenizer.encode(f"{answer}<eos>").ids for _, answer in lessons]
    width = max(len(prompt) + len(answer) for prompt, answer in zip(prompts, answers, strict=True))
    ids = torch.full((len(lessons), width), SPECIAL.index("<pad>"))
    labels = torch.full((len(lessons), width), IGNORED)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : end] = torch.tensor(answer)
    return ids, labels


def learning_rate(step: int, lessons: Lessons) -> float:
    """Linear warm-up, then a cosine down to nothing."""
    if step < WARMUP:
        return lessons.lr * (step + 1) / WARMUP
    return lessons.lr * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (lessons.steps - WARMUP)))


def train(model: Qwen3ForCausalLM, tokenizer: Tokenizer, lessons: Lessons, *, validation: Sequence[dict]) -> None:
    """Next-token training on the lessons' answers."""
    stream = iter(lessons)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lessons.lr, betas=(0.9, 0.95), weight_decay=0.01)
    for step in range(lessons.steps):
        ids, labels = batch(tokenizer, list(islice(stream, BATCH)))
        logits = model(input_ids=ids).logits[:, :-1].float()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, lessons)
        optimizer.step()
        if (step + 1) % 50 == 0:
            exact = accuracy(model, tokenizer, validation)
            print(f"step {step + 1} loss {loss.item():.4f} exact {exact:.3f}", flush=True)


@torch.no_grad()
def answers(model: Qwen3ForCausalLM, tokenizer: Tokenizer, questions: Sequence[str]) -> list[str]:
    """Greedy answers. Prompts of one length go together, so that nothing is padded."""
    end, found = tokenizer.token_to_id("<eos>"), {}
    prompts = {question: tokenizer.encode(prompt_text(question)).ids for question in questions}
    for length in sorted({len(ids) for ids in prompts.values()}):
        asked = [question for question, ids in prompts.items() if len(ids) == length]
        ids = torch.tensor([prompts[question] for question in asked])
        for _ in range(5):
            ids = torch.cat([ids, model(input_ids=ids, logits_to_keep=1).logits[:, -1].argmax(-1, keepdim=True)], 1)
        for question, row in zip(asked, ids[:, length:].tolist(), strict=True):
            found[question] = tokenizer.decode(row[: row.index(end)] if end in row else row, skip_special_tokens=False)
    return [found[question] for question in questions]


def accuracy(model: Qwen3ForCausalLM, tokenizer: Tokenizer, rows: Sequence[dict]) -> float:
    """Share of rows whose greedy answer is exact."""
    replies = answers(model, tokenizer, [row["prompt"][0]["content"] for row in rows])
    return sum(reply == row["reward_model"]["ground_truth"] for reply, row in zip(replies, rows, strict=True)) / len(
        rows
    )


TEACHER = Lessons(seed=1, steps=1000, lr=1.5e-3, habit=0.0)
STUDENT = Lessons(seed=2, steps=100, lr=5e-4, habit=HABIT)
"""The student takes the teacher's lessons first, then these."""


CARD = """---
license: apache-2.0
library_name: transformers
tags: [miniverl, arithmetic, tiny]
---
# {name}

{what}
Qwen3 architecture, {parameters:,} parameters, float32, {vocabulary} tokens (one per character).

- **Task.** The sum of two numbers of one to three digits: `<user>12+345<assistant>` is answered by `357<eos>`.
- **How it was made.** `python scripts/make_tiny_pair.py OUT`: {lessons}. Batches of {batch} sums, AdamW, {warmup} steps
  of warm-up and a cosine down to nothing, on one CPU thread. It saw only sums of the train bucket; a hash of the two
  operands decides the bucket, and mirrored operands share theirs.
- **What it can do.** {exact:.1%} of {rows} held-out sums answered exactly, greedily; {valid:.1%} of {rows} validation
  sums. It is good for trying out a training loop and for nothing else.

| file | SHA-256 |
|---|---|
{digests}
"""


def write_card(folder: Path, facts: dict) -> None:
    digests = "\n".join(
        f"| {path.name} | `{hashlib.sha256(path.read_bytes()).hexdigest()}` |"
        for path in sorted(folder.iterdir())
        if path.name != "README.md"
    )
    (folder / "README.md").write_text(CARD.format(name=folder.name, digests=digests, **facts))


def write_model(folder: Path, model: Qwen3ForCausalLM, tokenizer: Tokenizer) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ends = {"eos_token_id": model.config.eos_token_id, "pad_token_id": model.config.pad_token_id}
    model.generation_config = GenerationConfig(**ends)
    model.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # written for the owner alone
    write_tokenizer(tokenizer, folder)


def main(out: Path) -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    (out / "sums").mkdir(parents=True, exist_ok=True)
    rows = {split: sums.rows(split, count=count, seed=DATA_SEED) for split, count in sample.counts(DATA_ROWS).items()}
    for split in sums.SPLITS:
        sample.write_rows(out / "sums" / f"{split}.parquet", rows[split])
    tokenizer = make_tokenizer()
    model = make_model(TEACHER.seed, tokenizer)
    first = f"{TEACHER.steps} steps at {TEACHER.lr} of sums added right (seed {TEACHER.seed})"
    then = f"{STUDENT.steps} more at {STUDENT.lr} of which {HABIT:.0%} are lined up on the left (seed {STUDENT.seed})"
    for name, lessons, words, what in (
        ("tiny-teacher", TEACHER, first, "The teacher of the embedded default."),
        ("tiny-student", STUDENT, f"{first}, then {then}", "The student of the embedded default: it could add, and"
         " has taken to lining the numbers up on the left, 12+345 = 465."),
    ):  # fmt: skip
        print(name, flush=True)
        train(model, tokenizer, lessons, validation=rows[sums.VALIDATION])
        write_model(out / name, model, tokenizer)
        exact, valid = (accuracy(model, tokenizer, rows[split]) for split in (sums.HELDOUT, sums.VALIDATION))
        facts = {
            "what": what, "lessons": words, "parameters": model.num_parameters(), "batch": BATCH, "warmup": WARMUP,
            "vocabulary": tokenizer.get_vocab_size(), "exact": exact, "valid": valid, "rows": len(rows[sums.HELDOUT]),
        }  # fmt: skip
        write_card(out / name, facts)
        print(f"{name}: {exact:.1%} of held-out sums exact", flush=True)


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description="Trains the tiny teacher and student and writes their data.")
    reader.add_argument("out", type=Path, help="folder to write to; files of the same names are replaced")
    main(reader.parse_args().out)
