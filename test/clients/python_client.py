"""The official openai client for Python on a running gateway.

Usage: python_client.py FACTS, where FACTS is a JSON object with the gateway's address, its keys, what its scripted models say, and for
which providers behind the gateway the checks are run. Prints a line for each provider, and ends at the first check that fails.
"""

import json
import sys

import openai

FACTS = json.loads(sys.argv[1])
MESSAGES = [{"role": "user", "content": "What time is it in Oslo?"}]

client = openai.OpenAI(base_url=FACTS["baseURL"], api_key=FACTS["KEY"], max_retries=0)
create = client.chat.completions.create


def a_streamed_reply_is_the_whole_reply_in_pieces(prefix):
    request = {"model": prefix + "exact", "messages": MESSAGES}
    whole = create(**request)
    assert whole.model == prefix + "exact" and whole.choices[0].finish_reason == "stop"
    assert whole.choices[0].message.content == FACTS["TEXT"]
    assert "reasoning_content" not in whole.choices[0].message.model_dump(exclude_unset=True)
    streaming = {**request, "stream_options": {"include_usage": True}}
    chunks = list(create(**streaming, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert len(chunks) > 5 and text == FACTS["TEXT"]
    with client.chat.completions.stream(**streaming) as stream:
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert (message.role, message.content, final.choices[0].finish_reason) == ("assistant", FACTS["TEXT"], "stop")
    assert whole.usage.total_tokens == 27 and whole.usage.prompt_cache_hit_tokens == 8
    assert [chunk.usage for chunk in chunks if chunk.usage] == [whole.usage] == [final.usage]


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
    a_streamed_reply_is_the_whole_reply_in_pieces(prefix)
    errors_are_of_the_client_s_own_classes(prefix)
    print("ok", flush=True)
