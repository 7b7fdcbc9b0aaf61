"""The official openai client for Python reads a stream that broke and was gone on with.

Usage: python_recovered.py FACTS, where FACTS is a JSON object with the gateway's address, its key, the model and the whole text.
Exits with 1 if the client sees anything but that text.
"""

import json
import sys

import openai

FACTS = json.loads(sys.argv[1])
client = openai.OpenAI(base_url=FACTS["baseURL"], api_key=FACTS["KEY"], max_retries=0)
request = {"model": FACTS["MODEL"], "messages": [{"role": "user", "content": "Go on."}]}
with client.chat.completions.stream(**request) as stream:
    pieces = [event.delta for event in stream if event.type == "content.delta"]
    final = stream.get_final_completion().choices[0]
assert "".join(pieces) == FACTS["WHOLE"], pieces
assert (final.message.content, final.finish_reason) == (FACTS["WHOLE"], "stop"), final
