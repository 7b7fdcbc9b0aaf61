"""The official openai client for Python on a running gateway.

Usage: python_client.py FACTS, where FACTS is a JSON object with the gateway's address, its keys, what its scripted models say, and for
which providers behind the gateway the checks are run. Prints a line for each check that holds, and ends at the first that does not.
"""

import json
import sys

import openai

FACTS = json.loads(sys.argv[1])
CLOCK = {"Oslo": "14:05", "Lima": "08:05"}
MESSAGES = [{"role": "user", "content": "What time is it in Oslo?"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_time", "description": "The time in a city", "parameters": PARAMETERS}}]

client = openai.OpenAI(base_url=FACTS["baseURL"], api_key=FACTS["KEY"], max_retries=0)
create = client.chat.completions.create


def text_of(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def plain(calls):
    return [{"id": call.id, "name": call.function.name, "arguments": call.function.arguments} for call in calls or []]


def finished(request):
    """The reply that the streaming helper puts together."""
    with client.chat.completions.stream(**request) as stream:
        return stream.get_final_completion()


def a_streamed_reply_is_the_whole_reply_in_pieces(prefix):
    request = {"model": prefix + "exact", "messages": MESSAGES}
    whole = create(**request)
    assert whole.model == prefix + "exact" and whole.choices[0].finish_reason == "stop"
    assert whole.choices[0].message.content == FACTS["TEXT"]
    assert "reasoning_content" not in whole.choices[0].message.model_dump(exclude_unset=True)
    streaming = {**request, "stream_options": {"include_usage": True}}
    chunks = list(create(**streaming, stream=True))
    assert len(chunks) > 5 and text_of(chunks) == FACTS["TEXT"]
    final = finished(streaming)
    message = final.choices[0].message
    assert (message.role, message.content, final.choices[0].finish_reason) == ("assistant", FACTS["TEXT"], "stop")
    assert whole.usage.total_tokens == 27 and whole.usage.prompt_cache_hit_tokens == 8
    assert [chunk.usage for chunk in chunks if chunk.usage] == [whole.usage] == [final.usage]


def thoughts_and_parallel_calls_and_their_results(prefix):
    expected = FACTS["CALLS_BEHIND"][prefix]
    request = {
        "model": prefix + "parallel", "messages": MESSAGES, "tools": TOOLS, "tool_choice": "auto",
        "extra_body": {"thinking": {"type": "enabled"}},
    }  # fmt: skip
    whole = create(**request).choices[0].message
    assert (whole.reasoning_content, plain(whole.tool_calls)) == (FACTS["REASONING"], expected["whole"])
    message = finished(request).choices[0].message
    assert (message.reasoning_content, plain(message.tool_calls)) == (FACTS["REASONING"], expected["streamed"])
    cities = [(call.id, json.loads(call.function.arguments)["city"]) for call in message.tool_calls]
    results = [{"role": "tool", "tool_call_id": id, "content": CLOCK[city]} for id, city in cities]
    answer = create(**{**request, "messages": [*MESSAGES, message, *results]})
    assert answer.choices[0].message.content == FACTS["AFTER_CALLS"]


def errors_are_of_the_client_s_own_classes(prefix):
    for expected, status, code, request, options in (
        (openai.BadRequestError, 400, "invalid_value", {"temperature": 3}, {}),
        (openai.AuthenticationError, 401, "invalid_api_key", {}, {"api_key": "sk-nobody"}),
        (openai.PermissionDeniedError, 403, "model_not_allowed", {"model": "exact"}, {"api_key": FACTS["RESTRICTED_KEY"]}),
        (openai.NotFoundError, 404, "model_not_found", {"model": "no-such-model"}, {}),
        (openai.RateLimitError, 429, "rate_limit_exceeded", {}, {"api_key": FACTS["SPENT_KEY"]}),
        (openai.InternalServerError, 503, "upstream_error", {"model": prefix + "broken"}, {}),
    ):
        other = client.with_options(**options).chat.completions
        sent = {"model": "demo-chat", "messages": MESSAGES, "extra_headers": {"X-Request-Id": f"my-{code}"}, **request}
        for stream in (False, True):
            error = None
            try:
                other.create(**sent, stream=stream)
            except expected as raised:
                error = raised
            assert (error.status_code, error.code, error.request_id) == (status, code, f"my-{code}"), error
            assert error.body["request_id"] == f"my-{code}" and "own words" not in str(error)


for prefix in FACTS["PREFIXES"]:
    for check in (
        a_streamed_reply_is_the_whole_reply_in_pieces,
        thoughts_and_parallel_calls_and_their_results,
        errors_are_of_the_client_s_own_classes,
    ):
        check(prefix)
        print(f"ok - {check.__name__} {prefix}", flush=True)
