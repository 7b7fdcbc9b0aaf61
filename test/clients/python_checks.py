"""What the scripts of Python's clients have in common.

Usage of each: SCRIPT FACTS, where FACTS is a JSON object with the gateway's address, its keys, what its scripted models say, and for
which providers behind the gateway the checks are run. Prints a line for each check, and exits with 1 if any failed.
"""

import json
import sys
import traceback

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


def run():
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
