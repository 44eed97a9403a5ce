"""This file holds ChatTemplate: the one place where messages become token ids and ids become text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from miniverl.contract.canonical import json_digest
from miniverl.errors import DataError, ModelError

Message = Mapping[str, Any]
"""role and content, both text."""

NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""What a template may refer to by name."""

TEMPLATE_ERRORS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What the code of a template can raise while it runs: it divides, indexes and recurses as its author wrote it."""


class ChatTemplate:
    """The tokenizer and chat template of a model folder, as transformers' ``apply_chat_template`` would use them.

    Reads tokenizer.json, tokenizer_config.json, chat_template.jinja and special_tokens_map.json where present, and the
    ``eos_token_id`` of generation_config.json and config.json. Templates do not learn today's date: the same prompt
    has the same ids tomorrow. Raises ModelError when a file or the template is missing or damaged.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self._settings = _json_file(self._folder, "tokenizer_config.json", needed=False)
        self._tokenizer, self._model = _tokenizer(self._folder)
        self._names = _named_tokens(self._folder, self._settings)
        self._text = _template_text(self._folder, self._settings)
        self._template = _compiled(self._folder, self._text)

    def render(self, messages: Sequence[Message]) -> str:
        """The conversation as text, up to where the model begins to answer.

        Raises DataError when the template itself refuses the messages, as some do with a system role.
        """
        facts = {"messages": list(messages), "tools": None, "documents": None, "add_generation_prompt": True}
        try:
            return self._template.render(**self._names, **facts)
        except TEMPLATE_ERRORS as error:
            raise DataError(
                "chat template",
                value=str(self._folder),
                problem=f"cannot render these messages ({error or type(error).__name__})",
                fix="use only the roles and fields that this model's template knows",
            ) from error

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Ids of ``render``; no special token is added that the template did not write."""
        return self._tokenizer.encode(self.render(messages), add_special_tokens=False).ids

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Text of ids, without clean-up of spaces."""
        return self._tokenizer.decode([int(token) for token in ids], skip_special_tokens=skip_special_tokens)

    @property
    def digest(self) -> str:
        """SHA-256 of the template's text."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    @cached_property
    def vocabulary(self) -> int:
        """Ids the tokenizer can produce: the largest one plus 1. A model's head may have more rows (padding)."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    @cached_property
    def tokenizer_digest(self) -> str:
        """SHA-256 over vocabulary, merges and added tokens. End, padding and template may differ under one digest."""
        added = sorted((number, token.content) for number, token in self._tokenizer.get_added_tokens_decoder().items())
        merges = [pair.split(" ", 1) if isinstance(pair, str) else pair for pair in self._model.get("merges") or ()]
        return json_digest({"vocab": self._model.get("vocab"), "merges": merges, "added": added})

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Sorted ids that end a response: of generation_config.json, config.json and the tokenizer's eos_token."""
        ends: set[int] = set()
        for name in ("generation_config.json", "config.json"):
            settings = _json_file(self._folder, name, needed=False)
            ends.update(_end_ids(self._folder / name, settings))
        if "eos_token" in self._names:
            ends.add(self._id("eos_token"))
        return tuple(sorted(ends))

    @cached_property
    def unknown_id(self) -> int | None:
        """The id that stands for text the tokenizer cannot write; None where it can write everything."""
        number, text = self._model.get("unk_id"), self._model.get("unk_token")
        return number if number is not None or text is None else self._tokenizer.token_to_id(text)

    def _id(self, name: str) -> int:
        number = self._tokenizer.token_to_id(self._names[name])
        if number is None:
            raise ModelError(
                f"{self._folder / 'tokenizer_config.json'}: {name}",
                value=self._names[name],
                problem="is no token of tokenizer.json",
                fix=f"correct {name}, or take both files from the same model",
            )
        return number


class _GenerationTag(Extension):
    """Some templates mark what the model wrote by {% generation %}; here the mark means nothing."""

    tags = {"generation"}  # noqa: RUF012 (jinja declares it so)

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = _to_json  # jinja's own escapes HTML
    environment.globals["raise_exception"] = _refuse
    return environment


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None,
             sort_keys: bool = False) -> str:  # fmt: skip
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _compiled(folder: Path, text: str) -> jinja2.Template:
    try:
        text.encode()  # its digest is taken over UTF-8
        return _environment().from_string(text)
    except (jinja2.TemplateError, SyntaxError, ValueError, RecursionError) as error:
        raise ModelError(
            str(folder), problem=f"its chat template has a syntax error ({error})", fix="mend chat_template.jinja"
        ) from error


def _json_file(folder: Path, name: str, *, needed: bool) -> dict[str, Any]:
    """The object in a file; empty when the file is missing and not needed."""
    path = folder / name
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if not needed:
            return {}
        fix = "name a folder with a fast tokenizer; transformers' save_pretrained writes one"
        raise ModelError(str(path), problem="is missing", fix=fix) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(str(path), problem=f"cannot be read ({error})", fix="fetch the model again") from error
    if not isinstance(found, dict):
        raise ModelError(str(path), problem="holds no JSON object", fix="fetch the model again")
    return found


def _tokenizer(folder: Path) -> tuple[Tokenizer, dict[str, Any]]:
    """The tokenizer, and the ``model`` part of its file: vocabulary and merges."""
    described = _json_file(folder, "tokenizer.json", needed=True)
    model = described.get("model")
    if not isinstance(model, dict) or not model.get("vocab"):
        raise ModelError(
            str(folder / "tokenizer.json"),
            problem="describes no tokenizer with a vocabulary",
            fix="fetch the model again",
        )
    try:
        tokenizer = Tokenizer.from_buffer((folder / "tokenizer.json").read_bytes())  # from_file raises a bare Exception
    except (OSError, ValueError) as error:
        problem = f"is refused by the tokenizers library ({error})"
        raise ModelError(str(folder / "tokenizer.json"), problem=problem, fix="fetch the model again") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, model


def _named_tokens(folder: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    """bos_token, eos_token, ... as text; tokenizer_config.json overrides special_tokens_map.json."""
    merged = {**_json_file(folder, "special_tokens_map.json", needed=False), **settings}
    found = {name: merged.get(name) for name in NAMED_TOKENS}
    texts = {
        name: token.get("content", token) if isinstance(token, Mapping) else token for name, token in found.items()
    }
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise ModelError(
                f"{folder / 'tokenizer_config.json'}: {name}",
                value=text,
                problem="is neither text nor an object whose content is text",
                fix="write the token's text, or fetch the model again",
            )
    return {name: text for name, text in texts.items() if text is not None}


def _end_ids(path: Path, settings: Mapping[str, Any]) -> list[int]:
    """The eos_token_id of a settings file, or that of its text model."""
    text = settings.get("text_config")
    found = settings.get("eos_token_id", text.get("eos_token_id") if isinstance(text, Mapping) else None)
    ids = found if isinstance(found, list) else [] if found is None else [found]
    if all(type(number) is int and number >= 0 for number in ids):
        return ids
    raise ModelError(
        f"{path}: eos_token_id", value=found, problem="is no id and no list of ids", fix="write whole numbers"
    )


def _template_text(folder: Path, settings: Mapping[str, Any]) -> str:
    """chat_template.jinja, else the chat_template of tokenizer_config.json (of several, the one named default)."""
    path = folder / "chat_template.jinja"
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        fix = "save it as UTF-8 text, or fetch the model again"
        raise ModelError(str(path), problem=f"cannot be read ({error})", fix=fix) from error
    found = settings.get("chat_template")
    if isinstance(found, list):
        entries = [entry for entry in found if isinstance(entry, Mapping) and entry.get("name") == "default"]
        found = entries[-1].get("template") if entries else None
    if not isinstance(found, str):
        raise ModelError(
            str(folder),
            problem="has no chat template, neither chat_template.jinja nor chat_template in tokenizer_config.json",
            fix="copy chat_template.jinja from the instruct model of the same family",
        )
    return found
