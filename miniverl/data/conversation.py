"""This file holds conversation: one cell of the prompt column as messages, or a complaint that says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROLES = ("system", "user", "assistant")


class Complaint(Exception):
    """Why one row cannot be used. Collected by row, and shown to the user together."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.problem, self.fix = problem, fix


def conversation(cell: Any) -> list[dict[str, Any]]:
    """The messages of a cell: a list of {role, content}, or plain text, which becomes one user message.

    Many templates render a message they do not understand as nothing, and the row silently becomes another task. So
    roles, fields and texts are checked here. Raises Complaint.
    """
    if isinstance(cell, str):
        cell = [{"role": "user", "content": cell}]
    if not isinstance(cell, list) or not cell:
        found = "an empty list" if cell == [] else f"of type {type(cell).__name__}"
        raise Complaint(f"is {found}, not a list of messages", "write messages of role and content, or plain text")
    messages = [_message(index, message) for index, message in enumerate(cell)]
    roles = [message["role"] for message in messages]
    if "user" not in roles:
        raise Complaint("has no user turn", "add a message of role user: it is what the model answers")
    if roles[-1] == "assistant":
        raise Complaint(
            "ends with an assistant turn, which would show the model an answer",
            "remove the last message; a reference answer belongs into reward_model.ground_truth",
        )
    return messages


def _message(index: int, message: Any) -> dict[str, Any]:
    """The message without its empty fields, which Parquet adds where rows differ."""
    if not isinstance(message, Mapping):
        raise Complaint(
            f"message {index} is of type {type(message).__name__}", "write each message as role and content"
        )
    present = {name: value for name, value in message.items() if value is not None}
    if "role" not in present and {"from", "value"} & present.keys():
        raise Complaint(
            f"message {index} has the ShareGPT fields from and value",
            "rename from to role (human is user, gpt is assistant) and value to content",
        )
    role, content = present.get("role"), present.get("content")
    if role not in ROLES:
        raise Complaint(f"message {index} has the role {role!r}", f"use one of {', '.join(ROLES)}, in lower case")
    if not isinstance(content, str):
        found = "no content" if content is None else f"content of type {type(content).__name__}"
        raise Complaint(f"message {index} ({role}) has {found}", "write content as plain text, not as parts")
    if role == "user" and not content.strip():
        raise Complaint(f"message {index} (user) is empty text", "write the question, or remove the row")
    return present
