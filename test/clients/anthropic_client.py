"""The official anthropic client for Python on the Messages API of a running gateway: see python_client.py."""

import anthropic
from python_client import AFTER_CALLS, CLOCK, FACTS, MESSAGES, PARAMETERS, REASONING, TEXT, check, checks, named, raised, run

checks.clear()  # those of the other client

TOOLS = [{"name": "get_time", "description": "The time in a city", "input_schema": PARAMETERS}]
BASE = {"max_tokens": 2000, "thinking": {"type": "adaptive", "display": "summarized"}}

client = anthropic.Anthropic(base_url=FACTS["url"], api_key=FACTS["KEY"], max_retries=0)
create = client.messages.create


def joined(message, kind):
    return "".join(getattr(block, kind) for block in message.content if block.type == kind)


@check
def a_whole_reply_and_a_streamed_one():
    request = {"model": named("exact"), "messages": MESSAGES, **BASE}
    whole = create(**request)
    with client.messages.stream(**request) as stream:
        pieces = list(stream.text_stream)
        streamed = stream.get_final_message()
    assert len(pieces) > 5 and "".join(pieces) == TEXT
    for message in (whole, streamed):
        assert (joined(message, "text"), joined(message, "thinking")) == (TEXT, REASONING)
        assert message.stop_reason == "end_turn" and message.model == named("exact")
        assert message.usage.output_tokens > 0


@check
def tools():
    options = {"model": named("parallel"), "tools": TOOLS, **BASE}
    with client.messages.stream(messages=MESSAGES, **options) as stream:
        first = stream.get_final_message()
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [call.input["city"] for call in calls] == ["Oslo", "Lima"]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": CLOCK[call.input["city"]]} for call in calls]
    answer = {"role": "assistant", "content": first.content}
    last = create(messages=[*MESSAGES, answer, {"role": "user", "content": results}], **options)
    assert joined(last, "text") == AFTER_CALLS


@check
def errors():
    for model, expected in (("none", anthropic.NotFoundError), ("broken", anthropic.InternalServerError)):
        error = raised(expected, lambda: create(model=named(model), messages=MESSAGES, **BASE))
        assert error.body["request_id"].startswith("req_")


run()
