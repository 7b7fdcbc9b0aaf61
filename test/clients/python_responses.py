"""The official openai client for Python and openai-agents in its default setup, on the Responses API of a running gateway.

Usage: python_responses.py FACTS, where FACTS is a JSON object with the gateway's address, its key and what its scripted models say.
Prints a line for each check, and exits with 1 if any failed.
"""

import asyncio
import json
import sys
import traceback

import agents
import openai
from pydantic import BaseModel

FACTS = json.loads(sys.argv[1])
CLOCK = {"Oslo": "14:05", "Lima": "08:05"}
INPUT = "What time is it in Oslo?"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "name": "get_time", "strict": False, "parameters": PARAMETERS}
OPTIONS = {"base_url": FACTS["baseURL"], "api_key": FACTS["KEY"], "max_retries": 0}

client = openai.OpenAI(**OPTIONS)


class Answer(BaseModel):
    answer: str


def named(model):
    """The model of that name behind which is the provider that the checks are about just now."""
    return prefix + model


def the_streaming_helper_ends_with_the_whole_reply():
    request = {"model": named("exact"), "input": INPUT, "reasoning": {"summary": "auto"}}
    whole = client.responses.create(**request)
    assert whole.output_text == FACTS["TEXT"], whole
    deltas = []
    with client.responses.stream(**request) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == FACTS["TEXT"]
    assert final.output[0].summary[0].text == FACTS["REASONING"]
    assert final.usage == whole.usage and final.usage.input_tokens == 20, final.usage


def a_conversation_goes_on_with_its_own_items():
    items = [{"role": "user", "content": INPUT}]
    request = {"model": named("parallel"), "tools": [TOOL], "include": ["reasoning.encrypted_content"], "store": False}
    first = client.responses.create(input=items, **request)
    calls = [item for item in first.output if item.type == "function_call"]
    assert [call.call_id for call in calls] == [call["id"] for call in FACTS["CALLS"]], first
    items += first.output
    for call in calls:
        output = CLOCK[json.loads(call.arguments)["city"]]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    assert client.responses.create(input=items, **request).output_text == FACTS["AFTER_CALLS"]


def structured_output_is_parsed():
    whole = client.responses.parse(model="demo-chat", input=INPUT, text_format=Answer)
    assert isinstance(whole.output_parsed, Answer)
    with client.responses.stream(model="demo-chat", input=INPUT, text_format=Answer) as stream:
        assert stream.get_final_response().output_parsed == whole.output_parsed


def errors_are_the_client_s_own():
    for stored in ({"store": True}, {"previous_response_id": "resp_1"}):
        try:
            client.responses.create(model="demo-chat", input=INPUT, **stored)
        except openai.BadRequestError as error:
            assert error.code == "unsupported_value" and error.param in stored
        else:
            raise AssertionError("not refused")
    try:
        list(client.responses.create(model=named("error-event"), input=INPUT, stream=True))
    except openai.APIError as error:
        assert error.message
    else:
        raise AssertionError("the broken stream was taken for whole")


def an_agent_calls_its_tools():
    asked = []

    @agents.function_tool
    def get_time(city: str) -> str:
        """The time in a city."""
        asked.append(city)
        return CLOCK[city]

    agents.set_tracing_disabled(True)
    agents.set_default_openai_client(openai.AsyncOpenAI(**OPTIONS))
    # What stands before the first slash of a model's name is for the SDK itself.
    model = "openai/" + named("parallel")
    agent = agents.Agent(name="Clock", instructions="Say the time.", model=model, tools=[get_time])

    async def both():
        whole = await agents.Runner.run(agent, INPUT)
        streamed = agents.Runner.run_streamed(agent, INPUT)
        async for _ in streamed.stream_events():
            pass
        return whole.final_output, streamed.final_output

    assert asyncio.run(both()) == (FACTS["AFTER_CALLS"], FACTS["AFTER_CALLS"])
    assert sorted(asked) == ["Lima", "Lima", "Oslo", "Oslo"], asked


CHECKS = (
    the_streaming_helper_ends_with_the_whole_reply,
    a_conversation_goes_on_with_its_own_items,
    structured_output_is_parsed,
    errors_are_the_client_s_own,
    an_agent_calls_its_tools,
)
failed = False
for prefix in FACTS["PREFIXES"]:
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            check()
            print(f"ok - {name} {prefix}")
        except Exception:
            failed = True
            print(f"not ok - {name} {prefix}")
            traceback.print_exc()
sys.exit(1 if failed else 0)
