"""The official anthropic client for Python against a running gateway.

Usage: anthropic_client.py FACTS, where FACTS is a JSON object with the gateway's address, its key and what its scripted models
say. Runs all checks, prints a line for each, and exits with 1 if any failed.
"""

import json
import sys
import traceback

import anthropic

FACTS = json.loads(sys.argv[1])
TEXT, REASONING = FACTS["TEXT"], FACTS["REASONING"]
CLOCK = {"Oslo": "14:05", "Lima": "08:05"}
MESSAGES = [{"role": "user", "content": "What time is it in Oslo?"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "get_time", "description": "The time in a city", "input_schema": SCHEMA}]
THINKING = {"type": "adaptive", "display": "summarized"}
BASE = {"max_tokens": 2000, "messages": MESSAGES}

client = anthropic.Anthropic(base_url=FACTS["url"], api_key=FACTS["KEY"], max_retries=0)
checks = []


def check(function):
    checks.append(function)
    return function


def named(model):
    """The model of that name behind which is the provider that the checks are about just now."""
    return prefix + model


def joined(message, kind):
    return "".join(getattr(block, kind) for block in message.content if block.type == kind)


@check
def a_whole_reply():
    message = client.messages.create(model=named("exact"), thinking=THINKING, **BASE)
    assert joined(message, "text") == TEXT
    assert joined(message, "thinking") == REASONING
    assert message.stop_reason == "end_turn" and message.model == named("exact")


@check
def a_streamed_reply():
    with client.messages.stream(model=named("exact"), thinking=THINKING, **BASE) as stream:
        pieces = list(stream.text_stream)
        message = stream.get_final_message()
    assert len(pieces) > 5 and "".join(pieces) == TEXT
    assert joined(message, "text") == TEXT and joined(message, "thinking") == REASONING
    assert message.usage.output_tokens > 0


@check
def tools():
    options = {"model": named("parallel"), "tools": TOOLS, "thinking": THINKING, "max_tokens": 2000}
    with client.messages.stream(messages=MESSAGES, **options) as stream:
        first = stream.get_final_message()
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [call.input["city"] for call in calls] == ["Oslo", "Lima"]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": CLOCK[call.input["city"]]} for call in calls]
    answer = {"role": "assistant", "content": first.content}
    last = client.messages.create(messages=[*MESSAGES, answer, {"role": "user", "content": results}], **options)
    assert joined(last, "text") == FACTS["AFTER_CALLS"]


@check
def errors():
    for model, expected in (("none", anthropic.NotFoundError), ("broken", anthropic.InternalServerError)):
        try:
            client.messages.create(model=named(model), **BASE)
        except expected as error:
            assert error.body["request_id"].startswith("req_")
        else:
            raise AssertionError(f"{model} did not fail")


@check
def count_and_models():
    assert client.messages.count_tokens(model="exact", messages=MESSAGES).input_tokens == 6
    assert named("exact") in [model.id for model in client.models.list(limit=5)]


failed = False
for prefix in FACTS["PREFIXES"]:
    for function in checks:
        try:
            function()
            print(f"ok - {function.__name__} {prefix}")
        except Exception:
            failed = True
            print(f"not ok - {function.__name__} {prefix}")
            traceback.print_exc()
sys.exit(1 if failed else 0)
