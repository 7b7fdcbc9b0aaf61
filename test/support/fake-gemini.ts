// A provider with Gemini's generateContent (wire.md "Gemini requests"), which enforces the
// published rules of a conversation. The rules of single fields are not here:
// test/extensions/providers/gemini/gemini.test.ts tests how each field is translated. It is
// stricter than the service, which accepts several turns of one role in a row: here only the
// model's turn may be in pieces, as Google's SDK sends a streamed reply back. Models are named
// gemini-2.5-... (thinking has a budget) or gemini-3-... (thinking has a level, calls have ids, and
// a call that is sent back must have its signature).

import type { Asked } from "./provider.ts";
import {
  COUNTS,
  isObject,
  PROVIDER_KEY,
  OWN_WORDS,
  fakeOf,
  rule,
  sign,
  words,
  type Call,
  type Format,
  type Said,
  type Understood,
} from "./fake-provider.ts";

/** Accepted in place of a signature that a client never got. */
const ANY_SIGNATURE = "skip_thought_signature_validator";

const FIELDS = [
  ...["contents", "systemInstruction", "generationConfig", "tools", "toolConfig"],
  ...["safetySettings", "cachedContent"],
];
/** A part holds exactly one of these. */
const DATA = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];

type Part = Record<string, any>;

function understand({ path, headers, body }: Asked): Understood {
  const [, name, method, query] =
    /^\/v1(?:beta)?\/models\/([^/:]+):(generateContent|streamGenerateContent)(?:\?(.*))?$/.exec(
      path,
    ) ?? [];
  rule(name, "Requested entity was not found.");
  rule(headers["x-goog-api-key"] === PROVIDER_KEY, "API key not valid.");
  const stream = method === "streamGenerateContent";
  rule(!stream || query === "alt=sse", "streams are only here as alt=sse");
  for (const field of Object.keys(body)) rule(FIELDS.includes(field), `Unknown name "${field}"`);
  const third = name.startsWith("gemini-3");
  const { systemInstruction, generationConfig: config = {}, tools = [] } = body;
  const { thinkingBudget, thinkingLevel, includeThoughts } = config.thinkingConfig ?? {};
  const thinks = third ? thinkingLevel !== "MINIMAL" : thinkingBudget !== 0;
  const system = systemInstruction ? partsOf(systemInstruction, "systemInstruction") : [];
  return {
    model: name.replace(/^gemini-(3|2\.5)-/, ""),
    upstreamModel: name,
    stream,
    thinking: { type: thinks ? "enabled" : "disabled" },
    showThinking: thinks && includeThoughts === true,
    messages: [
      ...system.map(({ text }) => ({ role: "system", content: text })),
      ...messagesOf(body["contents"], third),
    ],
    tools: tools.flatMap((tool: Part) => tool["functionDeclarations"]),
  };
}

function partsOf(content: unknown, path: string): Part[] {
  const { parts } = content as { parts: Part[] };
  rule(Array.isArray(parts) && parts.length > 0, `${path}: at least one part`);
  for (const [at, part] of parts.entries()) {
    const held = DATA.filter((field) => field in part);
    rule(held.length === 1, `${path}.parts[${at}].data: exactly one`);
    const isEmpty = part["text"] === "" && !part["thoughtSignature"];
    rule(!isEmpty, `${path}.parts[${at}]: text parameter must not be empty`);
  }
  return parts;
}

/** Checks the turns, and converts them to messages. A call without an id gets one. */
function messagesOf(contents: unknown, third: boolean): object[] {
  rule(Array.isArray(contents) && contents.length > 0, "contents is not specified");
  const turns: { role: string; parts: Part[] }[] = [];
  for (const [at, content] of contents.entries()) {
    const { role, parts } = { role: content.role, parts: partsOf(content, `contents[${at}]`) };
    rule(role === "user" || role === "model", "Please use a valid role: user, model.");
    const last = turns.at(-1);
    const isInTurn = role !== (last?.role ?? "model") || (last && role === "model");
    rule(isInTurn, "turns alternate between user and model, beginning with user");
    if (role === last?.role) last?.parts.push(...parts);
    else turns.push({ role, parts: [...parts] });
  }
  let open: { id: string; given: unknown; name: string }[] = [];
  return turns.flatMap(({ role, parts }, at) => {
    const path = `contents[${at}]`;
    const text = parts.map((part) => (part["thought"] ? "" : (part["text"] ?? ""))).join("");
    const calls = parts.filter((part) => part["functionCall"]);
    const responses = parts.flatMap((part) => part["functionResponse"] ?? []);
    if (role === "model") {
      rule(responses.length === 0, `${path}: a function response must come from the user`);
      calls.forEach((part, index) => {
        checkCall(part, third, index === 0, path);
      });
      open = calls.map(({ functionCall: { id, name } }, index) => ({
        id: id ?? `call_${at}_${index}`,
        given: id,
        name,
      }));
      const said = calls.map(({ functionCall: { name, args = {} } }, index) => ({
        id: open[index]!.id,
        type: "function",
        function: { name, arguments: JSON.stringify(args) },
      }));
      return [
        { role: "assistant", content: text || null, ...(calls.length > 0 && { tool_calls: said }) },
      ];
    }
    rule(calls.length === 0, `${path}: a function call must come from the model`);
    const areFirst = parts.slice(0, open.length).every((part) => part["functionResponse"]);
    rule(areFirst, "function response turn comes immediately after a function call turn");
    rule(responses.length === open.length, "as many function response parts as calls");
    const results = responses.map(({ id, name, response }) => {
      rule(isObject(response), `${path}: function_response.response`);
      const found = open.findIndex((call) => call.name === name && call.given === id);
      rule(found !== -1, "function response parts match the function call parts");
      const [call] = open.splice(found, 1);
      const [value, ...others] = Object.values(response);
      const isText = typeof value === "string" && others.length === 0;
      const content = isText ? value : JSON.stringify(response);
      return { role: "tool", tool_call_id: call!.id, content };
    });
    const said = parts.length > responses.length ? [{ role: "user", content: text }] : [];
    return [...results, ...said];
  });
}

const signatureOf = ({ name, id }: { name: string; id?: string }, third: boolean): string =>
  sign([name, third ? id : undefined]);

/** Checks a call. Of several calls in one turn, only the first must have a signature. */
function checkCall(
  { functionCall: call, thoughtSignature }: Part,
  third: boolean,
  first: boolean,
  path: string,
): void {
  rule(call.args === undefined || isObject(call.args), `${path}: args`);
  const isMissing = third && first && !thoughtSignature;
  rule(!isMissing, `Function call ${call.name} is missing a thought_signature`);
  const valid = [undefined, ANY_SIGNATURE, signatureOf(call, third)];
  rule(valid.includes(thoughtSignature), "Corrupted thought signature.");
}

/** The parts of a reply: thoughts, text and calls. `cut` splits texts into pieces. */
function partsSaid(
  request: Understood,
  { reasoning = "", text = "", calls = [] }: Said,
  cut: (text: string) => string[],
): Part[] {
  const call = ({ id, name, arguments: args }: Call) => ({ id, name, args: JSON.parse(args) });
  return [
    ...(request.showThinking
      ? cut(reasoning).map((piece) => ({ text: piece, thought: true }))
      : []),
    ...cut(text).map((piece) => ({ text: piece })),
    ...calls.map(call).map((functionCall, index) => ({
      functionCall,
      ...(index === 0 && { thoughtSignature: signatureOf(functionCall, true) }),
    })),
  ];
}

/** A whole reply, or a piece of one. Gemini counts the candidate's tokens without thoughts. */
function response(request: Understood, candidate: object, candidatesTokenCount: number): object {
  const { prompt, cached, reasoning } = COUNTS;
  const usageMetadata = {
    promptTokenCount: prompt,
    cachedContentTokenCount: cached,
    candidatesTokenCount,
    thoughtsTokenCount: reasoning,
    totalTokenCount: prompt + candidatesTokenCount + reasoning,
  };
  return {
    candidates: [{ ...candidate, index: 0 }],
    usageMetadata,
    modelVersion: request.upstreamModel,
    responseId: "upstream-1",
  };
}

const TOKENS = COUNTS.completion - COUNTS.reasoning;

function whole(request: Understood, said: Said): object {
  const parts = partsSaid(request, said, (text) => (text === "" ? [] : [text]));
  return response(request, { content: { parts, role: "model" }, finishReason: "STOP" }, TOKENS);
}

const event = (data: object): string => `data: ${JSON.stringify(data)}\r\n\r\n`;

function stream(request: Understood, said: Said): string {
  // A signature may also arrive with an empty text, after everything else.
  const signature: Part = { text: "", thoughtSignature: sign("the end") };
  const parts = [
    ...partsSaid(request, said, words),
    ...(said.ending === undefined ? [signature] : []),
  ];
  const pieces = parts.map((part, at) => {
    const last = said.ending === undefined && at === parts.length - 1;
    const content = { parts: [part], role: "model" };
    const candidate = { content, ...(last && { finishReason: "STOP" }) };
    return response(request, candidate, last ? TOKENS : Math.min(at, TOKENS));
  });
  return pieces.map(event).join("");
}

const refusal = (message: string) => ({ error: { code: 500, message, status: "INTERNAL" } });

const failure = event(refusal(OWN_WORDS));

export const gemini: Format = { understand, refusal, whole, stream, failure };
export const startGemini = fakeOf(gemini);
