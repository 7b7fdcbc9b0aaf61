"""The official openai client for Python on a running gateway: chat completions, and Responses.

Usage: python_client.py FACTS, where FACTS is a JSON object with the gateway's address, its keys, what its scripted models say, and for
which providers behind the gateway the checks are run. Prints a line for each check, and exits with 1 if any failed.
"""

import json
import re
import sys
import traceback

import openai
import requests
from pydantic import BaseModel, Field

FACTS = json.loads(sys.argv[1])
TEXT, REASONING, AFTER_CALLS = FACTS["TEXT"], FACTS["REASONING"], FACTS["AFTER_CALLS"]
CLOCK = {"Oslo": "14:05", "Lima": "08:05"}
QUESTION = "What time is it in Oslo?"
MESSAGES = [{"role": "user", "content": QUESTION}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
checks = []
prefix = ""


def check(function):
    checks.append(function)
    return function


def named(model):
    """The model of that name behind which is the provider that the checks are about just now."""
    return prefix + model


def raised(expected, function):
    """What the function raised, which must be of the expected class."""
    try:
        function()
    except expected as error:
        return error
    raise AssertionError(f"{expected.__name__} was not raised")


GENERATED_ID = re.compile(r"req_[0-9a-f]{32}")
TOOLS = [{"type": "function", "function": {"name": "get_time", "description": "The time in a city", "parameters": PARAMETERS}}]

client = openai.OpenAI(base_url=FACTS["baseURL"], api_key=FACTS["KEY"], max_retries=0)
create = client.chat.completions.create
respond = client.responses.create


def text_of(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def plain(calls):
    return [{"id": call.id, "name": call.function.name, "arguments": call.function.arguments} for call in calls or []]


def finished(request):
    """The reply that the streaming helper puts together."""
    with client.chat.completions.stream(**request) as stream:
        return stream.get_final_completion()


@check
def a_streamed_reply_is_the_whole_reply_in_pieces():
    request = {"model": named("exact"), "messages": MESSAGES}
    whole = create(**request)
    assert whole.model == named("exact") and whole.choices[0].finish_reason == "stop"
    assert whole.choices[0].message.content == TEXT
    assert "reasoning_content" not in whole.choices[0].message.model_dump(exclude_unset=True)
    streaming = {**request, "stream_options": {"include_usage": True}}
    chunks = list(create(**streaming, stream=True))
    assert len(chunks) > 5 and text_of(chunks) == TEXT
    final = finished(streaming)
    message = final.choices[0].message
    assert (message.role, message.content, final.choices[0].finish_reason) == ("assistant", TEXT, "stop")
    assert whole.usage.total_tokens == 27 and whole.usage.prompt_cache_hit_tokens == 8
    assert [chunk.usage for chunk in chunks if chunk.usage] == [whole.usage] == [final.usage]


@check
def a_client_whose_lines_end_at_every_separator_of_unicode_reads_the_text():
    request = {"model": named("exact"), "messages": MESSAGES, "stream": True}
    headers = {"Authorization": f"Bearer {FACTS['KEY']}"}
    with requests.post(f"{FACTS['baseURL']}/chat/completions", json=request, headers=headers, stream=True) as response:
        lines = [line for line in response.iter_lines(decode_unicode=True) if line]
    assert lines.pop() == "data: [DONE]"
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert "".join(event["choices"][0]["delta"].get("content") or "" for event in events) == TEXT


@check
def thoughts_and_parallel_calls_and_their_results():
    expected = FACTS["CALLS_BEHIND"][named("")]
    request = {
        "model": named("parallel"), "messages": MESSAGES, "tools": TOOLS, "tool_choice": "auto",
        "extra_body": {"thinking": {"type": "enabled"}},
    }  # fmt: skip
    whole = create(**request).choices[0].message
    assert (whole.reasoning_content, plain(whole.tool_calls)) == (REASONING, expected["whole"])
    message = finished(request).choices[0].message
    assert (message.reasoning_content, plain(message.tool_calls)) == (REASONING, expected["streamed"])
    cities = [(call.id, json.loads(call.function.arguments)["city"]) for call in message.tool_calls]
    results = [{"role": "tool", "tool_call_id": id, "content": CLOCK[city]} for id, city in cities]
    answer = create(**{**request, "messages": [*MESSAGES, message, *results]})
    assert answer.choices[0].message.content == AFTER_CALLS


@check
def structured_output_whole_and_streamed():
    class Opening(BaseModel):
        city: str
        hours: int = Field(ge=7)
        open: bool

    request = {"model": named("shaped"), "messages": MESSAGES, "response_format": Opening}
    expected = Opening(**FACTS["OPENING"])
    assert client.chat.completions.parse(**request).choices[0].message.parsed == expected
    assert finished(request).choices[0].message.parsed == expected


@check
def errors_are_of_the_client_s_own_classes():
    for expected, status, code, request, options in (
        (openai.BadRequestError, 400, "invalid_value", {"temperature": 3}, {}),
        (openai.AuthenticationError, 401, "invalid_api_key", {}, {"api_key": "sk-nobody"}),
        (openai.PermissionDeniedError, 403, "model_not_allowed", {"model": "exact"}, {"api_key": FACTS["RESTRICTED_KEY"]}),
        (openai.NotFoundError, 404, "model_not_found", {"model": "no-such-model"}, {}),
        (openai.RateLimitError, 429, "rate_limit_exceeded", {}, {"api_key": FACTS["SPENT_KEY"]}),
        (openai.InternalServerError, 503, "upstream_error", {"model": named("broken")}, {}),
    ):
        other = client.with_options(**options).chat.completions
        sent = {"model": "demo-chat", "messages": MESSAGES, "extra_headers": {"X-Request-Id": f"my-{code}"}, **request}
        for stream in (False, True):
            error = raised(expected, lambda: other.create(**sent, stream=stream))
            assert (error.status_code, error.code, error.request_id) == (status, code, f"my-{code}"), error
            assert error.body["request_id"] == f"my-{code}" and "own words" not in str(error)


@check
def a_stream_that_breaks_off_is_an_exception_and_never_a_reply():
    for model in map(named, FACTS["BAD_ENDINGS"]):
        seen = []
        # extend() keeps what came before the exception
        error = raised(openai.APIError, lambda: seen.extend(create(model=model, messages=MESSAGES, stream=True)))
        assert error.code == "upstream_error" and GENERATED_ID.fullmatch(error.body["request_id"])
        assert text_of(seen) == FACTS["BEFORE_BAD_ENDING"] and all(chunk.choices[0].finish_reason is None for chunk in seen)


@check
def responses_a_conversation_goes_on_with_its_own_items():
    tool = {"type": "function", "name": "get_time", "strict": False, "parameters": PARAMETERS}
    included = ["reasoning.encrypted_content"]
    request = {"model": named("parallel"), "tools": [tool], "include": included, "store": False, "reasoning": {"summary": "auto"}}
    with client.responses.stream(input=MESSAGES, **request) as stream:
        first = stream.get_final_response()
    assert first.output[0].summary[0].text == REASONING and first.usage.input_tokens == 20, first
    calls = [item for item in first.output if item.type == "function_call"]
    assert [call.call_id for call in calls] == [call["id"] for call in FACTS["CALLS"]], first
    cities = [(call.call_id, json.loads(call.arguments)["city"]) for call in calls]
    results = [{"type": "function_call_output", "call_id": id, "output": CLOCK[city]} for id, city in cities]
    assert respond(input=[*MESSAGES, *first.output, *results], **request).output_text == AFTER_CALLS


@check
def responses_errors_are_the_client_s_own():
    for stored in ({"store": True}, {"previous_response_id": "resp_1"}):
        error = raised(openai.BadRequestError, lambda: respond(model="demo-chat", input=QUESTION, **stored))
        assert error.code == "unsupported_value" and error.param in stored
    broken = {"model": named("error-event"), "input": QUESTION, "stream": True}
    assert raised(openai.APIError, lambda: list(respond(**broken))).message


def run():
    """Runs the checks behind each provider, and exits."""
    global prefix
    failed = False
    for prefix in FACTS["PREFIXES"]:
        for function in checks:
            name = f"{function.__name__.replace('_', ' ')} {prefix}"
            try:
                function()
                print(f"ok - {name}", flush=True)
            except Exception:
                failed = True
                print(f"not ok - {name}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    run()
