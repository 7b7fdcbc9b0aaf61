"""The official openai client for Python on the Responses API of a running gateway: see python_checks.py."""

import openai
from python_checks import AFTER_CALLS, CLOCK, FACTS, MESSAGES, PARAMETERS, QUESTION, REASONING, TEXT, check, json, named, raised, run

TOOL = {"type": "function", "name": "get_time", "strict": False, "parameters": PARAMETERS}
OPTIONS = {"base_url": FACTS["baseURL"], "api_key": FACTS["KEY"], "max_retries": 0}

client = openai.OpenAI(**OPTIONS)
create = client.responses.create


@check
def the_streaming_helper_ends_with_the_whole_reply():
    request = {"model": named("exact"), "input": QUESTION, "reasoning": {"summary": "auto"}}
    whole = create(**request)
    assert whole.output_text == TEXT, whole
    with client.responses.stream(**request) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == TEXT
    assert final.output[0].summary[0].text == REASONING
    assert final.usage == whole.usage and final.usage.input_tokens == 20, final.usage


@check
def a_conversation_goes_on_with_its_own_items():
    request = {"model": named("parallel"), "tools": [TOOL], "include": ["reasoning.encrypted_content"], "store": False}
    first = create(input=MESSAGES, **request)
    calls = [item for item in first.output if item.type == "function_call"]
    assert [call.call_id for call in calls] == [call["id"] for call in FACTS["CALLS"]], first
    cities = [(call.call_id, json.loads(call.arguments)["city"]) for call in calls]
    results = [{"type": "function_call_output", "call_id": id, "output": CLOCK[city]} for id, city in cities]
    assert create(input=[*MESSAGES, *first.output, *results], **request).output_text == AFTER_CALLS


@check
def errors_are_the_client_s_own():
    for stored in ({"store": True}, {"previous_response_id": "resp_1"}):
        error = raised(openai.BadRequestError, lambda: create(model="demo-chat", input=QUESTION, **stored))
        assert error.code == "unsupported_value" and error.param in stored
    broken = {"model": named("error-event"), "input": QUESTION, "stream": True}
    assert raised(openai.APIError, lambda: list(create(**broken))).message


run()
