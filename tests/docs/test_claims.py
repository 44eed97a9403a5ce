"""This file holds the documents held to their word: their commands parse, blocks run, keys and paths exist."""

import pytest
import yaml

from miniverl.recipe.load import load_recipe
from tests.docs.claims import missing_paths, unknown_keys, wrong_command
from tests.docs.pages import ROOT, Page, pages

PAGES = pages()
COMMANDS = [(page.name, words) for page in PAGES for words in page.commands()]
YAML_BLOCKS = [(page.name, block.text) for page in PAGES for block in page.blocks("yaml") if block.runs]
PYTHON_BLOCKS = [(page.name, block.text) for page in PAGES for block in page.blocks("python") if block.runs]


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=[" ".join(words) for _, words in COMMANDS])
def test_a_shell_line_parses(page, words):
    assert wrong_command(words, ROOT) is None


@pytest.mark.parametrize(("page", "text"), YAML_BLOCKS, ids=[name for name, _ in YAML_BLOCKS])
def test_a_yaml_block_is_a_recipe_or_a_piece_of_one(page, text, tmp_path):
    if "objective:" in text:
        recipe = tmp_path / "recipe.yaml"
        recipe.write_text(text)
        assert load_recipe(str(recipe)).name == "recipe"
    else:
        assert load_recipe("quickstart", yaml.safe_load(text)).name == "quickstart"


@pytest.mark.parametrize(("page", "text"), PYTHON_BLOCKS, ids=[name for name, _ in PYTHON_BLOCKS])
def test_a_python_block_runs(page, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(text, page, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_path_and_key_a_document_names_exists(page):
    assert missing_paths(page, ROOT) == []
    assert unknown_keys(page) == []


def test_the_readme_opens_with_the_two_commands():
    assert Page(name="README", text=(ROOT / "README.md").read_text()).commands()[:2] == [
        ["make", "demo"],
        ["make", "test"],
    ]


def test_ci_runs_the_test_command_of_the_readme():
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == "exec make test"


@pytest.mark.parametrize(
    "line",
    [
        "miniverl trian quickstart",
        "miniverl run",
        "miniverl inspect runs/a --jsno",
        "make dmeo",
        "pip install -c constraints.txt '.[trian]'",
        "pip install -c constraint.txt '.[train]'",
        "rm -rf runs",
    ],
)
def test_a_line_that_would_fail_is_seen(line):
    (words,) = Page(name="bad", text=f"```bash\n{line}\n```").commands()
    assert wrong_command(words, ROOT) is not None


def test_a_path_or_key_that_does_not_exist_is_seen():
    page = Page(
        name="bad", text="See `miniverl/nowhere.py`, `docs/tour.md`, `rollout.bakend` and `rollout.backend: vllm`."
    )
    assert missing_paths(page, ROOT) == ["miniverl/nowhere.py"]
    assert unknown_keys(page) == ["rollout.bakend"]


def test_every_decision_says_what_it_makes_worse():
    records = [page for page in PAGES if page.name.startswith("docs/adr/")]
    assert len(records) >= 5
    assert [page.name for page in records if "\n## What this makes worse\n" not in page.text] == []
