// A provider that speaks Gemini's generateContent (wire.md "Gemini requests") and holds its clients
// to the rules that are published for it. It is stricter than the service, which takes turns of one
// role in a row: here only the model's may be in pieces, as Google's SDK sends a streamed reply
// back. Models are named gemini-2.5-... (thinking has a budget) or gemini-3-... (thinking has a
// level, calls have ids, and a call that is sent back must carry its signature).

import type { TestContext } from "node:test";
import type { Asked } from "./provider.ts";
import {
  COUNTS,
  isObject,
  PROVIDER_KEY,
  OWN_WORDS,
  rule,
  sign,
  startFake,
  words,
  type Call,
  type Format,
  type Model,
  type FakeProvider,
  type Said,
  type Understood,
} from "./fake-provider.ts";

export const startGemini = (
  t: TestContext,
  models: Readonly<Record<string, Model>>,
): Promise<FakeProvider> => startFake(t, gemini, models);

/** Stands for a signature that a client never had. */
const ANY_SIGNATURE = "skip_thought_signature_validator";

const FIELDS = [
  ...["contents", "systemInstruction", "generationConfig", "tools", "toolConfig"],
  ...["safetySettings", "cachedContent"],
];
const CONFIG_FIELDS = [
  ...["temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed"],
  ...["presencePenalty", "frequencyPenalty", "candidateCount", "responseMimeType"],
  ...["responseSchema", "responseJsonSchema", "responseLogprobs", "logprobs", "thinkingConfig"],
  ...["responseModalities"],
];
/** A part holds exactly one of these. */
const DATA: Readonly<Record<string, readonly string[]>> = {
  text: [],
  inlineData: ["mimeType", "data"],
  fileData: ["mimeType", "fileUri"],
  functionCall: ["id", "name", "args"],
  functionResponse: ["id", "name", "response"],
};
const ERROR_STATUSES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
};

type Part = Record<string, any>;
function known(
  value: unknown,
  fields: readonly string[],
  path: string,
): asserts value is Record<string, any> {
  rule(isObject(value), `'${path}' must be an object`);
  for (const field of Object.keys(value))
    rule(fields.includes(field), `Unknown name "${field}" at ${path}`);
}

function understand({ path, headers, body }: Asked): Understood {
  const [, name, method, query] =
    /^\/v1(?:beta)?\/models\/([^/:]+):(generateContent|streamGenerateContent)(?:\?(.*))?$/.exec(
      path,
    ) ?? [];
  rule(name, "Requested entity was not found.", 404);
  rule(headers["x-goog-api-key"], "no unregistered callers", 403);
  rule(headers["x-goog-api-key"] === PROVIDER_KEY, "API key not valid.");
  const stream = method === "streamGenerateContent";
  rule(!stream || query === "alt=sse", "streams are only here as alt=sse");
  known(body, FIELDS, "");
  const third = name.startsWith("gemini-3");
  const { systemInstruction, generationConfig: config = {}, tools = [], toolConfig } = body;
  const thinking = checkConfig(config, third, tools.length > 0);
  const choice = checkTools(tools, toolConfig);
  const system =
    systemInstruction === undefined
      ? ""
      : partsOf(systemInstruction, "systemInstruction")
          .map(({ text }) => text)
          .join("");
  const responseFormat = () => {
    if (config.responseJsonSchema)
      return { type: "json_schema", json_schema: { name: "x", schema: config.responseJsonSchema } };
    return config.responseMimeType === "application/json" ? { type: "json_object" } : undefined;
  };
  return {
    model: name.replace(/^gemini-(3|2\.5)-/, ""),
    upstreamModel: name,
    stream,
    thinking: { type: thinking ? "enabled" : "disabled" },
    showThinking: thinking && config.thinkingConfig?.includeThoughts === true,
    messages: [
      ...(system === "" ? [] : [{ role: "system", content: system }]),
      ...messagesOf(body["contents"], third),
    ],
    tools:
      tools.length === 0
        ? undefined
        : tools[0].functionDeclarations.map((tool: any) => ({
            type: "function",
            function: {
              name: tool.name,
              description: tool.description,
              parameters: tool.parametersJsonSchema ?? tool.parameters,
            },
          })),
    tool_choice: choice,
    response_format: responseFormat(),
    stop: config.stopSequences,
    max_tokens: config.maxOutputTokens,
    runnersUp: config.responseLogprobs ? (config.logprobs ?? 0) : undefined,
  };
}

/** Whether thinking is on. */
function checkConfig(config: unknown, third: boolean, withTools: boolean): boolean {
  known(config, CONFIG_FIELDS, "generation_config");
  const {
    temperature = 1,
    topP = 1,
    maxOutputTokens = 1,
    stopSequences = [],
    candidateCount = 1,
    responseMimeType,
    responseJsonSchema,
    responseLogprobs,
    logprobs,
    thinkingConfig = {},
  } = config;
  rule(temperature >= 0 && temperature <= 2, `temperature value of ${temperature}`);
  rule(topP >= 0 && topP <= 1, `topP value of ${topP}`);
  rule(
    Number.isInteger(maxOutputTokens) && maxOutputTokens > 0,
    "max_output_tokens must be positive.",
  );
  rule(candidateCount === 1, "Multiple candidates is not enabled for this model");
  rule(
    Array.isArray(stopSequences) &&
      stopSequences.length <= 5 &&
      stopSequences.every((each) => each !== ""),
    "stop_sequences: at most 5",
  );
  rule(
    responseJsonSchema === undefined || responseMimeType === "application/json",
    "response_json_schema needs response_mime_type application/json",
  );
  rule(
    responseJsonSchema === undefined || isObject(responseJsonSchema),
    "response_json_schema must be an object",
  );
  rule(
    third || !withTools || responseMimeType !== "application/json",
    "tools with mime type: 'application/json' is unsupported",
  );
  rule(logprobs === undefined || responseLogprobs === true, "logprobs without response_logprobs");
  rule(
    logprobs === undefined || (Number.isInteger(logprobs) && logprobs >= 0 && logprobs <= 20),
    "logprobs must be in the range [0, 20]",
  );
  known(
    thinkingConfig,
    ["includeThoughts", "thinkingBudget", "thinkingLevel"],
    "generation_config.thinking_config",
  );
  return checkThinking(thinkingConfig, third);
}

/** Whether thinking is on. */
function checkThinking(thinkingConfig: Record<string, any>, third: boolean): boolean {
  const { thinkingBudget, thinkingLevel } = thinkingConfig;
  rule(
    thinkingBudget === undefined || thinkingLevel === undefined,
    "only one of thinking budget and level",
  );
  if (third) {
    rule(thinkingBudget === undefined, "Thinking budget is not supported.");
    rule(
      thinkingLevel === undefined || /^(minimal|low|medium|high)$/i.test(thinkingLevel),
      `Invalid thinking_level ${thinkingLevel}`,
    );
    return !/^minimal$/i.test(thinkingLevel);
  }
  rule(thinkingLevel === undefined, "Thinking level is not supported.");
  rule(
    thinkingBudget === undefined ||
      (Number.isInteger(thinkingBudget) && thinkingBudget >= -1 && thinkingBudget <= 24_576),
    `The thinking budget ${thinkingBudget} is invalid.`,
  );
  rule(
    thinkingBudget !== 0 || thinkingConfig["includeThoughts"] !== true,
    "include_thoughts without thinking",
  );
  return thinkingBudget !== 0;
}

/** One function; `names` are those before it. */
function checkDeclaration(declared: unknown, path: string, names: readonly string[]): void {
  known(
    declared,
    [
      ...["name", "description", "parameters", "parametersJsonSchema", "response"],
      ...["responseJsonSchema", "behavior"],
    ],
    path,
  );
  rule(
    /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/.test(declared["name"]),
    `${path}.name: must start with a letter, and be at most 64`,
  );
  rule(!names.includes(declared["name"]), `Duplicate function: ${declared["name"]}`);
  rule(
    declared["parametersJsonSchema"] === undefined || isObject(declared["parametersJsonSchema"]),
    `${path}.parameters_json_schema must be an object`,
  );
  rule(
    declared["parametersJsonSchema"] === undefined || declared["parameters"] === undefined,
    `${path}: parameters are mutually exclusive`,
  );
}

/** What is to be done with the tools, in the words of chat completions. */
function checkTools(tools: unknown, toolConfig: unknown): unknown {
  rule(Array.isArray(tools) && tools.length <= 1, "tools: at most one list of functions");
  const names: string[] = [];
  for (const tool of tools) {
    known(tool, ["functionDeclarations"], "tools[0]");
    rule(
      Array.isArray(tool["functionDeclarations"]) && tool["functionDeclarations"].length > 0,
      "tools[0]: at least one function",
    );
    for (const [at, declared] of tool["functionDeclarations"].entries()) {
      checkDeclaration(declared, `tools[0].function_declarations[${at}]`, names);
      names.push(declared["name"]);
    }
  }
  if (toolConfig === undefined) return "auto";
  known(toolConfig, ["functionCallingConfig"], "tool_config");
  const config = toolConfig["functionCallingConfig"] ?? {};
  known(config, ["mode", "allowedFunctionNames"], "tool_config.function_calling_config");
  const { mode = "AUTO", allowedFunctionNames: allowed } = config;
  rule(["AUTO", "ANY", "NONE", "VALIDATED"].includes(mode), `Invalid mode ${mode}`);
  rule(names.length > 0, "toolConfig without function_declarations");
  rule(
    allowed === undefined || mode === "ANY",
    "allowed names only when function calling mode is ANY",
  );
  for (const name of allowed ?? [])
    rule(names.includes(name), `allowed_function_names contains ${name}, which is not declared`);
  if (mode !== "ANY") return mode === "NONE" ? "none" : "auto";
  return allowed?.length === 1 ? { type: "function", function: { name: allowed[0] } } : "required";
}

function partsOf(content: unknown, path: string): Part[] {
  known(content, ["role", "parts"], path);
  const parts = content["parts"];
  rule(Array.isArray(parts) && parts.length > 0, `${path}: at least one part`);
  for (const [at, part] of parts.entries()) {
    known(part, [...Object.keys(DATA), "thought", "thoughtSignature"], `${path}.parts[${at}]`);
    const held = Object.keys(DATA).filter((field) => field in part);
    rule(held.length === 1, `${path}.parts[${at}].data: exactly one`);
    if (held[0] === "text")
      rule(
        typeof part["text"] === "string" && (part["text"] !== "" || part["thoughtSignature"]),
        `${path}.parts[${at}]: text parameter must not be empty`,
      );
    else known(part[held[0]!], DATA[held[0]!]!, `${path}.parts[${at}].${held[0]}`);
  }
  return parts;
}

/** Checks the turns, and says them as messages; a call that has no id gets one here. */
function messagesOf(contents: unknown, third: boolean): object[] {
  rule(Array.isArray(contents) && contents.length > 0, "contents is not specified");
  const turns: { role: string; parts: Part[] }[] = [];
  for (const [at, content] of contents.entries()) {
    const { role, parts } = { role: content.role, parts: partsOf(content, `contents[${at}]`) };
    rule(role === "user" || role === "model", "Please use a valid role: user, model.");
    const last = turns.at(-1);
    rule(
      role !== (last?.role ?? "model") || (last && role === "model"),
      "turns alternate between user and model, beginning with user",
    );
    if (role === last?.role) last?.parts.push(...parts);
    else turns.push({ role, parts: [...parts] });
  }
  let open: { id: string; given: unknown; name: string }[] = [];
  return turns.flatMap(({ role, parts }, at) => {
    const path = `contents[${at}]`;
    const text = parts.map((part) => (part["thought"] ? "" : (part["text"] ?? ""))).join("");
    const calls = parts.filter((part) => part["functionCall"]);
    const responses = parts
      .filter((part) => part["functionResponse"])
      .map((part) => part["functionResponse"]);
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
    rule(
      responses.length === open.length,
      "the number of function response parts is that of the calls",
    );
    rule(
      parts.slice(0, open.length).every((part) => part["functionResponse"]),
      "function response turn comes immediately after a function call turn",
    );
    const results = responses.map(({ id, name, response }) => {
      rule(isObject(response), `${path}: function_response.response`);
      const found = open.findIndex((call) => call.name === name && call.given === id);
      rule(found !== -1, "function response parts match the function call parts");
      const [call] = open.splice(found, 1);
      const values = Object.values(response);
      return {
        role: "tool",
        tool_call_id: call!.id,
        content:
          values.length === 1 && typeof values[0] === "string"
            ? values[0]
            : JSON.stringify(response),
      };
    });
    return parts.length > responses.length
      ? [...results, { role: "user", content: text }]
      : results;
  });
}

const signatureOf = ({ name, id }: { name: string; id?: string }, third: boolean): string =>
  sign([name, third ? id : undefined]);

/** Only the first of several calls at once has a signature. */
function checkCall(
  { functionCall: call, thoughtSignature }: Part,
  third: boolean,
  first: boolean,
  path: string,
): void {
  rule(typeof call.name === "string" && call.name !== "", `${path}: Name cannot be empty.`);
  rule(call.args === undefined || isObject(call.args), `${path}: args`);
  rule(
    !third || !first || thoughtSignature,
    `Function call ${call.name} is missing a thought_signature`,
  );
  rule(
    [undefined, ANY_SIGNATURE, signatureOf(call, third)].includes(thoughtSignature),
    "Corrupted thought signature.",
  );
}

/** The parts of a reply: thoughts, text and calls, cut as they are streamed. */
function partsSaid(
  request: Understood,
  { reasoning = "", text = "", calls = [] }: Said,
  cut: (text: string) => string[],
): Part[] {
  const third = request.upstreamModel.startsWith("gemini-3");
  const call = ({ id, name, arguments: args }: Call) => ({
    ...(third && { id }),
    name,
    args: JSON.parse(args),
  });
  return [
    ...(request.showThinking
      ? cut(reasoning).map((piece) => ({ text: piece, thought: true }))
      : []),
    ...cut(text).map((piece) => ({ text: piece })),
    ...calls.map(call).map((functionCall, index) => ({
      functionCall,
      ...(index === 0 && { thoughtSignature: signatureOf(functionCall, third) }),
    })),
  ];
}

function finish({ finish }: Said): string {
  if (finish === "length") return "MAX_TOKENS";
  return finish === "content_filter" ? "SAFETY" : "STOP";
}

/** Every word of a text is a token here. */
function logprobs({ runnersUp }: Understood, text: string): object {
  if (runnersUp === undefined) return {};
  const ranked = (token: string, rank: number) => ({ token, logProbability: -0.1 - rank });
  const chosenCandidates = words(text).map((token) => ranked(token, 0));
  const topCandidates = words(text).map((token) => ({
    candidates: Array.from({ length: runnersUp }, (_, rank) =>
      ranked(token + "~".repeat(rank), rank),
    ),
  }));
  return { avgLogprobs: -0.1, logprobsResult: { chosenCandidates, topCandidates } };
}

/** A whole reply, or a piece of one. Candidates' tokens are counted without the thoughts. */
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
  return response(
    request,
    {
      content: { parts, role: "model" },
      finishReason: finish(said),
      ...logprobs(request, said.text ?? ""),
    },
    TOKENS,
  );
}

const event = (data: object): string => `data: ${JSON.stringify(data)}\r\n\r\n`;

function stream(request: Understood, said: Said): string {
  // A signature may also come with a text that is empty, after everything else.
  const signature: Part[] = request.upstreamModel.startsWith("gemini-3")
    ? [{ text: "", thoughtSignature: sign("the end") }]
    : [];
  const parts = [
    ...partsSaid(request, said, words),
    ...(said.ending === undefined ? signature : []),
  ];
  const pieces = parts.map((part, at) => {
    const last = said.ending === undefined && at === parts.length - 1;
    const probabilities = part["thought"] || !part["text"] ? {} : logprobs(request, part["text"]);
    return response(
      request,
      {
        content: { parts: [part], role: "model" },
        ...(last && { finishReason: finish(said) }),
        ...probabilities,
      },
      last ? TOKENS : Math.min(at, TOKENS),
    );
  });
  return pieces.map(event).join("");
}

function refusal(code: number, message: string) {
  const details =
    code === 429 ? [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "1s" }] : [];
  return {
    body: { error: { code, message, status: ERROR_STATUSES[code] ?? "UNKNOWN", details } },
    headers: {},
  };
}

export const gemini: Format = {
  understand,
  refusal,
  whole,
  stream,
  failure: event(refusal(500, OWN_WORDS).body),
};
