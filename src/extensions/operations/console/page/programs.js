// A chat request as a program: for curl, and for the SDKs in JavaScript and Python. The key is read
// from the environment.

/** `kind`: "curl", "js" or "python". `address`: that of the public listener. */
export function programOf(kind, request, address) {
  // A listener on all addresses is reached by the one by which this page was found.
  const reachable = address.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:)/, `//${location.hostname}`);
  return PROGRAMS[kind](request, `${reachable}/v1`);
}

const PROGRAMS = {
  curl(request, base) {
    const body = JSON.stringify(request, null, 2).replaceAll("'", "'\\''");
    return `curl -sN ${base}/chat/completions \\
  -H "Authorization: Bearer $CHAT_GATEWAY_KEY" -H 'Content-Type: application/json' \\
  -d '${body}'`;
  },

  js(request, base) {
    const print = request.stream
      ? 'for await (const chunk of reply) process.stdout.write(chunk.choices[0]?.delta.content ?? "");'
      : "console.log(reply.choices[0].message);";
    const options = `{ baseURL: ${JSON.stringify(base)}, apiKey: process.env.CHAT_GATEWAY_KEY }`;
    return `import OpenAI from "openai";

const client = new OpenAI(${options});
const reply = await client.chat.completions.create(${JSON.stringify(request, null, 2)});
${print}`;
  },

  /** The three words of JSON that Python has not are given to it, so the request stands as it is. */
  python({ thinking, ...known }, base) {
    const request = { ...known, extra_body: thinking && { thinking } };
    const print = known.stream
      ? `for chunk in reply:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`
      : "print(reply.choices[0].message)";
    return `import os
from openai import OpenAI

true, false, null = True, False, None
client = OpenAI(base_url=${JSON.stringify(base)}, api_key=os.environ["CHAT_GATEWAY_KEY"])
reply = client.chat.completions.create(**${JSON.stringify(request, null, 4)})
${print}`;
  },
};
