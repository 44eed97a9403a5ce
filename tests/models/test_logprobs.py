import torch

from miniverl.models.load import load_base
from miniverl.models.logprobs import Head, ResponseRows, chunks, response_hidden

CPU = torch.device("cpu")
ROWS = ([1, 5, 3, 7], [2, 6, 4, 3, 8, 9, 10, 4], [3, 9])
PROMPTS = (2, 3, 1)


def rows() -> ResponseRows:
    ids = torch.zeros(3, 8, dtype=torch.int64)
    for index, row in enumerate(ROWS):
        ids[index, : len(row)] = torch.tensor(row)
    lengths = tuple(len(row) - prompt for row, prompt in zip(ROWS, PROMPTS, strict=True))
    return ResponseRows(ids_BL=ids, prompt_lengths=PROMPTS, lengths=lengths)


def test_every_response_token_gets_the_log_prob_of_its_own_prefix(model_plan):
    module = load_base(model_plan(), device=CPU)
    hidden, ids = response_hidden(module, rows())
    found = Head(module, vocabulary=20).logps(hidden, temperature=0.7).gather(1, ids[:, None])[:, 0]
    expected = []
    for row, prompt in zip(ROWS, PROMPTS, strict=True):  # one unpadded row and one prefix at a time
        for at in range(prompt, len(row)):
            logits = module(torch.tensor([row[:at]])).logits[0, -1, :20]
            expected.append((logits / 0.7).log_softmax(-1)[row[at]])
    assert ids.tolist() == [row[at] for row, p in zip(ROWS, PROMPTS, strict=True) for at in range(p, len(row))]
    assert torch.allclose(found, torch.stack(expected), atol=1e-5)


def test_padded_rows_of_the_head_never_enter_a_distribution(model_plan):
    module = load_base(model_plan(), device=CPU)
    with torch.no_grad():
        module.get_output_embeddings().weight[16:] = 100.0
    hidden, _ = response_hidden(module, rows())
    logps = Head(module, vocabulary=16).logps(hidden, temperature=1.0)
    assert logps.shape[-1] == 16
    assert torch.allclose(logps.exp().sum(-1), torch.ones(len(logps)), atol=1e-5)


def test_chunks_cover_every_position_once():
    assert [list(range(n))[c] for n in (7,) for c in chunks(n, 3)] == [[0, 1, 2], [3, 4, 5], [6]]
