"""Conversations: what a template would render as nothing, or as another task, is refused here."""

from __future__ import annotations

import pytest

from miniverl.data.conversation import Complaint, conversation


def user(text):
    return [{"role": "user", "content": text}]


def test_plain_text_is_one_user_message():
    assert conversation("1+1") == user("1+1")


def test_a_conversation_in_order_is_taken_as_it_stands():
    messages = [
        {"role": "system", "content": ""},
        *user("1+1"),
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "2+2", "name": "ann"},
    ]
    assert conversation(messages) == messages


def test_fields_that_parquet_left_empty_are_dropped():
    assert conversation([{"role": "user", "content": "1", "tool_calls": None, "from": None}]) == user("1")


@pytest.mark.parametrize(
    ("cell", "problem", "fix"),
    [
        ([{"role": "User", "content": "1"}], "message 0 has the role 'User'", "in lower case"),
        ([*user("1"), {"role": "tool", "content": "1"}], "message 1 has the role 'tool'", "system, user, assistant"),
        ([{"content": "1"}], "message 0 has the role None", "use one of"),
        ([{"from": "human", "value": "1"}], "message 0 has the ShareGPT fields", "rename from to role"),
        ([{"role": None, "from": "human", "value": "1"}], "message 0 has the ShareGPT fields", "rename from to role"),
        (user(" \n"), "message 0 (user) is empty text", "write the question"),
        ("", "message 0 (user) is empty text", "write the question"),
        ([*user("1"), {"role": "assistant", "content": "2"}], "ends with an assistant turn", "remove the last message"),
        (user([{"type": "text", "text": "1"}]), "message 0 (user) has content of type list", "as plain text"),
        (user(None), "message 0 (user) has no content", "as plain text"),
        ([{"role": "system", "content": "1"}], "has no user turn", "add a message of role user"),
        ([], "is an empty list", "messages of role and content"),
        (None, "is of type NoneType", "messages of role and content"),
        ({"role": "user", "content": "1"}, "is of type dict", "messages of role and content"),
        (["1", "2"], "message 0 is of type str", "role and content"),
    ],
)
def test_what_would_become_another_task_is_a_complaint_with_its_fix(cell, problem, fix):
    with pytest.raises(Complaint) as refusal:
        conversation(cell)
    assert refusal.value.problem.startswith(problem) and fix in refusal.value.fix
