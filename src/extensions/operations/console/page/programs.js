// A chat request as a program: for curl, and for the SDKs in JavaScript and Python. The key is read
// from the environment.

/** `kind`: "curl", "js" or "python". `address`: that of the public listener. */
export function programOf(kind, given, address) {
  const request = JSON.parse(JSON.stringify(given));
  // A listener on all addresses is reached by the one by which this page was found.
  const reachable = address.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:)/, `//${location.hostname}`);
  const base = `${reachable}/v1`;
  if (kind === "curl") return curl(request, base);
  return kind === "js" ? javaScript(request, base) : python(request, base);
}

function curl(request, base) {
  const body = JSON.stringify(request, null, 2).replaceAll("'", "'\\''");
  return `curl -sN ${base}/chat/completions \\
  -H "Authorization: Bearer $CHAT_GATEWAY_KEY" -H 'Content-Type: application/json' \\
  -d '${body}'`;
}

function javaScript(request, base) {
  const print = request.stream
    ? 'for await (const chunk of reply) process.stdout.write(chunk.choices[0]?.delta.content ?? "");'
    : "console.log(reply.choices[0].message);";
  const options = `{ baseURL: ${JSON.stringify(base)}, apiKey: process.env.CHAT_GATEWAY_KEY }`;
  return `import OpenAI from "openai";

const client = new OpenAI(${options});
const reply = await client.chat.completions.create(${JSON.stringify(request, null, 2)});
${print}`;
}

function python(request, base) {
  const { thinking, ...known } = request;
  const members = { ...known, ...(thinking && { extra_body: { thinking } }) };
  const lines = Object.entries(members).map(
    ([name, value]) => `    ${name}=${pythonValue(value, 4)},\n`,
  );
  const print = request.stream
    ? `for chunk in reply:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`
    : "print(reply.choices[0].message)";
  return `import os
from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(base)}, api_key=os.environ["CHAT_GATEWAY_KEY"])
reply = client.chat.completions.create(
${lines.join("")})
${print}`;
}

const PYTHON_WORDS = { true: "True", false: "False", null: "None" };

/** A JSON value as Python has it, its lines indented. */
function pythonValue(value, indent) {
  if (value === null || typeof value === "boolean") return PYTHON_WORDS[value];
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((each) => pythonValue(each, indent + 4))
    : Object.entries(value).map(
        ([name, each]) => `${JSON.stringify(name)}: ${pythonValue(each, indent + 4)}`,
      );
  const [from, to] = isList ? "[]" : "{}";
  if (items.length === 0) return from + to;
  const inner = `\n${" ".repeat(indent + 4)}`;
  return `${from}${items.map((item) => `${inner}${item},`).join("")}\n${" ".repeat(indent)}${to}`;
}
