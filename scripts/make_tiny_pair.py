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
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

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
BATCH, LR, WARMUP = 256, 1.5e-3, 20
TEACHER_SEED, TEACHER_STEPS = 1, 1000
STUDENT_SEED, STUDENT_STEPS, SAVE_EVERY = 2, 320, 10
STUDENT_AIM = 0.20
"""Accuracy on validation sums of the save point that becomes the student."""
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


def batch(tokenizer: Tokenizer, pairs: Sequence[tuple[int, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and labels [B, T], padded on the right; only the answer and its <eos> are learned."""
    prompts = [tokenizer.encode(prompt_text(sums.question(a, b))).ids for a, b in pairs]
    answers = [tokenizer.encode(f"{a + b}<eos>").ids for a, b in pairs]
    width = max(len(prompt) + len(answer) for prompt, answer in zip(prompts, answers, strict=True))
    ids = torch.full((len(pairs), width), SPECIAL.index("<pad>"))
    labels = torch.full((len(pairs), width), IGNORED)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : end] = torch.tensor(answer)
    return ids, labels


def learning_rate(step: int, steps: int) -> float:
    """Linear warm-up, then a cosine down to nothing."""
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    return LR * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP)))


def training(model: Qwen3ForCausalLM, tokenizer: Tokenizer, seed: int) -> Iterator[tuple[int, float]]:
    """Trains on sums of the train bucket; yields (steps done, loss in nats/token). The caller stops when it likes."""
    stream = sums.pairs(sums.TRAIN, seed=sums.packaged_seed("tiny pair", seed))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0.01)
    for step in range(TEACHER_STEPS):
        ids, labels = batch(tokenizer, list(islice(stream, BATCH)))
        logits = model(input_ids=ids).logits[:, :-1].float()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, TEACHER_STEPS)
        optimizer.step()
        yield step + 1, loss.item()


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


def make_teacher(tokenizer: Tokenizer, validation: Sequence[dict]) -> tuple[Qwen3ForCausalLM, int]:
    model = make_model(TEACHER_SEED, tokenizer)
    for step, loss in training(model, tokenizer, TEACHER_SEED):
        if step % 50 == 0:
            print(f"teacher step {step} loss {loss:.4f} exact {accuracy(model, tokenizer, validation):.3f}", flush=True)
    return model, TEACHER_STEPS


def make_student(tokenizer: Tokenizer, validation: Sequence[dict]) -> tuple[Qwen3ForCausalLM, int]:
    """The save point nearest to the aim of the teacher's own training, begun from another seed."""
    model = make_model(STUDENT_SEED, tokenizer)
    best_gap, best_step, best = math.inf, 0, {}
    for step, loss in islice(training(model, tokenizer, STUDENT_SEED), STUDENT_STEPS):
        if step % SAVE_EVERY:
            continue
        exact = accuracy(model, tokenizer, validation)
        print(f"student step {step} loss {loss:.4f} exact {exact:.3f}", flush=True)
        if abs(exact - STUDENT_AIM) < best_gap:
            best_gap, best_step = abs(exact - STUDENT_AIM), step
            best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(best)
    return model, best_step


CARD = """---
license: apache-2.0
library_name: transformers
tags: [miniverl, arithmetic, tiny]
---
# {name}

{what} Qwen3 architecture, {parameters:,} parameters, float32, {vocabulary} tokens (one per character).

- **Task.** The sum of two numbers of one to three digits: `<user>12+345<assistant>` is answered by `357<eos>`.
- **How it was made.** `python scripts/make_tiny_pair.py OUT`: {steps} steps of {batch} sums, AdamW, peak learning rate
  {lr} with {warmup} steps of warm-up and a cosine over {full} steps, seed {seed}, on one CPU thread. It saw only sums
  of the train bucket; a hash of the two operands decides the bucket, and mirrored operands share theirs.
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
    for name, make, seed, what in (
        ("tiny-student", make_student, STUDENT_SEED, "The student of the embedded default: stopped early."),
        ("tiny-teacher", make_teacher, TEACHER_SEED, "The teacher of the embedded default."),
    ):
        began = time.monotonic()
        model, steps = make(tokenizer, rows[sums.VALIDATION])
        write_model(out / name, model, tokenizer)
        exact, valid = (accuracy(model, tokenizer, rows[split]) for split in (sums.HELDOUT, sums.VALIDATION))
        facts = {
            "what": what, "parameters": model.num_parameters(), "vocabulary": tokenizer.get_vocab_size(),
            "steps": steps, "full": TEACHER_STEPS, "batch": BATCH, "lr": LR, "warmup": WARMUP, "seed": seed,
            "exact": exact, "valid": valid, "rows": len(rows[sums.HELDOUT]),
        }  # fmt: skip
        write_card(out / name, facts)
        print(f"{name}: {exact:.1%} of held-out sums after {steps} steps, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description="Trains the tiny teacher and student and writes their data.")
    reader.add_argument("out", type=Path, help="folder to write to; files of the same names are replaced")
    main(reader.parse_args().out)
