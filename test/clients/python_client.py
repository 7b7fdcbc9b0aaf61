"""The official openai client for Python against a running gateway.

Usage: python_client.py GROUP FACTS, where FACTS is a JSON object with the gateway's address, its keys and what its scripted
models say. Runs the checks of that group, prints a line for each, and exits with 1 if any failed.
"""

import asyncio
import json
import re
import sys
import time
import traceback

import openai
from pydantic import BaseModel, Field

GROUP = sys.argv[1]
FACTS = json.loads(sys.argv[2])
TEXT, CALLS, STREAMED_CALLS = FACTS["TEXT"], FACTS["CALLS"], FACTS["STREAMED_CALLS"]
CLOCK = {"Oslo": "14:05", "Lima": "08:05"}
GENERATED_ID = re.compile(r"req_[0-9a-f]{32}")
OPTIONS = {"base_url": FACTS["baseURL"], "api_key": FACTS["KEY"], "max_retries": 0}
MESSAGES = [{"role": "user", "content": "What time is it in Oslo?"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_time", "description": "The time in a city", "parameters": PARAMETERS}}]
THINKING = {"thinking": {"type": "enabled"}}

client = openai.OpenAI(**OPTIONS)
create = client.chat.completions.create
checks = []


def check(name, group="replies"):
    """Registers a function as a check of a group."""

    def register(function):
        if group == GROUP:
            checks.append((name, function))
        return function

    return register


def raised(expected, function):
    """What the function raised, which must be of the expected class."""
    try:
        function()
    except expected as error:
        return error
    raise AssertionError(f"{expected.__name__} was not raised")


def named(model):
    """The model of that name behind which is the provider that these checks are about."""
    return FACTS["PREFIX"] + model


def text_of(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def plain(calls):
    return [{"id": call.id, "name": call.function.name, "arguments": call.function.arguments} for call in calls or []]


@check("a streamed reply is the whole reply in pieces")
def _():
    for name in FACTS["TALKERS"]:
        model = named(name)
        whole = create(model=model, messages=MESSAGES)
        content = whole.choices[0].message.content
        assert whole.model == model and whole.choices[0].finish_reason == "stop"
        assert content == TEXT if name == "exact" else content.startswith("You said")
        assert "reasoning_content" not in whole.choices[0].message.model_dump(exclude_unset=True)
        chunks = list(create(model=model, messages=MESSAGES, stream=True))
        assert len(chunks) > 5 and text_of(chunks) == content
        with client.chat.completions.stream(model=model, messages=MESSAGES) as stream:
            final = stream.get_final_completion().choices[0]
        assert (final.message.role, final.message.content, final.finish_reason) == ("assistant", content, "stop")


@check("the asynchronous client")
def _():
    async def both():
        async with openai.AsyncOpenAI(**OPTIONS) as client:
            whole = await client.chat.completions.create(model=named("exact"), messages=MESSAGES)
            streamed = [chunk async for chunk in await client.chat.completions.create(model=named("exact"), messages=MESSAGES, stream=True)]
            return whole.choices[0].message.content, text_of(streamed)

    assert asyncio.run(both()) == (TEXT, TEXT)


@check("an alias is served, and the reply names the model that served it", group="around")
def _():
    assert create(model="auto/reasoning", messages=MESSAGES).model == "demo-reasoner"


@check("usage, whole and streamed")
def _():
    def numbers(usage):
        return (
            usage.prompt_tokens, usage.completion_tokens, usage.total_tokens, usage.prompt_cache_hit_tokens, usage.prompt_cache_miss_tokens,
            usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens,
        )  # fmt: skip

    expected = (20, 7, 27, 8, 12, 8, 3)
    assert numbers(create(model=named("exact"), messages=MESSAGES).usage) == expected
    streaming = {"model": named("exact"), "messages": MESSAGES, "stream_options": {"include_usage": True}}
    given = [chunk for chunk in create(**streaming, stream=True) if chunk.usage]
    assert [numbers(chunk.usage) for chunk in given] == [expected] and given[0].choices == []
    with client.chat.completions.stream(**streaming) as stream:
        assert numbers(stream.get_final_completion().usage) == expected


@check("a tool loop")
def _():
    messages = list(MESSAGES)
    reply = create(model=named("demo-chat"), messages=messages, tools=TOOLS, tool_choice="auto").choices[0]
    assert reply.finish_reason == "tool_calls" and reply.message.content is None
    messages.append(reply.message)
    for call in reply.message.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": CLOCK[city]})
    reply = create(model=named("demo-chat"), messages=messages, tools=TOOLS, tool_choice="auto").choices[0]
    assert (reply.finish_reason, reply.message.content) == ("stop", "The tool says: 14:05")


@check("parallel calls byte for byte, whole and in interleaved fragments, and their results")
def _():
    request = {"model": named("parallel"), "messages": MESSAGES, "tools": TOOLS, "tool_choice": "auto"}
    assert plain(create(**request).choices[0].message.tool_calls) == CALLS
    fragments = {}
    for chunk in create(**request, stream=True):
        for fragment in chunk.choices[0].delta.tool_calls or []:
            call = fragments.setdefault(fragment.index, {"id": "", "name": "", "arguments": ""})
            call["id"] += fragment.id or ""
            call["name"] += fragment.function.name or ""
            call["arguments"] += fragment.function.arguments or ""
    assert list(fragments.values()) == STREAMED_CALLS
    with client.chat.completions.stream(**request) as stream:
        message = stream.get_final_completion().choices[0].message
    assert plain(message.tool_calls) == STREAMED_CALLS
    results = [{"role": "tool", "tool_call_id": call["id"], "content": CLOCK[json.loads(call["arguments"])["city"]]} for call in CALLS]
    answer = create(**{**request, "messages": [*MESSAGES, message, *results]})
    assert answer.choices[0].message.content == FACTS["AFTER_CALLS"]


@check("no tool is called without tool_choice", group="no-tool")
def _():
    assert create(model=named("demo-chat"), messages=MESSAGES, tools=TOOLS).choices[0].finish_reason == "stop"


@check("a tool is called without tool_choice", group="tool")
def _():
    assert create(model=named("demo-chat"), messages=MESSAGES, tools=TOOLS).choices[0].finish_reason == "tool_calls"


@check("JSON mode")
def _():
    reply = create(model=named("demo-chat"), messages=MESSAGES, response_format={"type": "json_object"})
    assert json.loads(reply.choices[0].message.content)["question"] == MESSAGES[0]["content"]


@check("structured output, whole and streamed")
def _():
    class Opening(BaseModel):
        city: str
        hours: int = Field(ge=7)
        open: bool

    request = {"model": named("demo-chat"), "messages": MESSAGES, "response_format": Opening}
    expected = Opening(city="Oslo", hours=7, open=True)
    assert client.chat.completions.parse(**request).choices[0].message.parsed == expected
    with client.chat.completions.stream(**request) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == expected


@check("thinking, whole and streamed")
def _():
    message = create(model=named("exact"), messages=MESSAGES, extra_body=THINKING).choices[0].message
    assert (message.reasoning_content, message.content) == (FACTS["REASONING"], TEXT)
    chunks = list(create(model=named("exact"), messages=MESSAGES, extra_body=THINKING, stream=True))
    reasoning = "".join(getattr(chunk.choices[0].delta, "reasoning_content", None) or "" for chunk in chunks)
    assert (reasoning, text_of(chunks)) == (FACTS["REASONING"], TEXT)
    with client.chat.completions.stream(model=named("exact"), messages=MESSAGES, extra_body=THINKING) as stream:
        message = stream.get_final_completion().choices[0].message
    assert (message.reasoning_content, message.content) == (FACTS["REASONING"], TEXT)


@check("log probabilities")
def _():
    request = {"model": named("demo-chat"), "messages": MESSAGES, "logprobs": True, "top_logprobs": 2}
    if not FACTS["LOGPROBS"]:
        error = raised(openai.BadRequestError, lambda: create(**request))
        assert (error.code, error.param) == ("unsupported_value", "logprobs")
        return
    choice = create(**request).choices[0]
    assert "".join(token.token for token in choice.logprobs.content) == choice.message.content
    assert all(len(token.top_logprobs) == 2 for token in choice.logprobs.content)


@check("the list of models", group="around")
def _():
    ids = {model.id for model in client.models.list()}
    assert {"demo-chat", "demo-reasoner", "exact", "auto/chat", "auto/reasoning"} <= ids


@check("a stream can be left")
def _():
    # The caller sees at the provider that the connection was closed.
    with create(model=named("endless"), messages=MESSAGES, stream=True) as stream:
        text = ""
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            if text == FACTS["BEFORE_BAD_ENDING"]:
                break
    assert text == FACTS["BEFORE_BAD_ENDING"]


def expect(expected, status, code, request, **options):
    """Whole or streamed, the request must fail with this class, status and code, under the id that was sent."""
    other = client.with_options(**options)
    sent = {"model": "demo-chat", "messages": MESSAGES, "extra_headers": {"X-Request-Id": f"my-{code}"}, **request}
    for stream in (False, True):
        error = raised(expected, lambda: other.chat.completions.create(**sent, stream=stream))
        assert (error.status_code, error.code, error.request_id) == (status, code, f"my-{code}"), error
        assert error.body["request_id"] == f"my-{code}" and "own words" not in str(error)


@check("BadRequestError", group="around")
def _():
    expect(openai.BadRequestError, 400, "invalid_value", {"temperature": 3})


@check("AuthenticationError", group="around")
def _():
    expect(openai.AuthenticationError, 401, "invalid_api_key", {}, api_key="sk-nobody")


@check("PermissionDeniedError", group="around")
def _():
    expect(openai.PermissionDeniedError, 403, "model_not_allowed", {"model": "exact"}, api_key=FACTS["RESTRICTED_KEY"])


@check("NotFoundError", group="around")
def _():
    expect(openai.NotFoundError, 404, "model_not_found", {"model": "no-such-model"})


@check("InternalServerError")
def _():
    expect(openai.InternalServerError, 503, "upstream_error", {"model": named("broken")})


@check("a stream that breaks off is an exception, never a reply")
def _():
    for model in map(named, FACTS["BAD_ENDINGS"]):
        seen = []
        # extend() keeps what came before the exception
        error = raised(openai.APIError, lambda: seen.extend(create(model=model, messages=MESSAGES, stream=True)))
        assert error.code == "upstream_error" and GENERATED_ID.fullmatch(error.body["request_id"])
        assert text_of(seen) == FACTS["BEFORE_BAD_ENDING"] and all(chunk.choices[0].finish_reason is None for chunk in seen)


@check("request ids, sent and generated", group="around")
def _():
    reply = create(model="demo-chat", messages=MESSAGES, extra_headers={"X-Request-Id": "order 66/a"})
    assert reply._request_id == "order 66/a"
    assert GENERATED_ID.fullmatch(create(model="demo-chat", messages=MESSAGES)._request_id)
    error = raised(openai.NotFoundError, lambda: create(model="no-such-model", messages=MESSAGES))
    assert GENERATED_ID.fullmatch(error.request_id) and error.body["request_id"] == error.request_id


@check("a 429 is retried when the gateway said", group="retry")
def _():
    began = time.monotonic()
    reply = client.with_options(max_retries=1).chat.completions.create(model="exact", messages=MESSAGES, extra_headers={"X-Request-Id": "again"})
    assert reply.choices[0].message.content == TEXT and reply._request_id == "again"
    assert time.monotonic() - began > 0.99, "Retry-After of 1 second was obeyed"


failed = 0
for name, function in checks:
    try:
        function()
        print(f"ok - {name}", flush=True)
    except Exception:
        failed += 1
        print(f"not ok - {name}\n{traceback.format_exc()}", flush=True)
if not checks:
    print(f"no checks are called {GROUP}")
sys.exit(1 if failed or not checks else 0)
