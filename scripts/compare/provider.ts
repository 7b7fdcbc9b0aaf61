// The provider of scripts/compare.ts: one server that speaks the three provider formats, as the
// fake providers of the tests do. The model that it is asked for is the name of a script, so that
// a configuration needs one model a script. It keeps what it was asked.

import { anthropic } from "../../test/support/fake-anthropic.ts";
import { gemini } from "../../test/support/fake-gemini.ts";
import { openai } from "../../test/support/fake-openai.ts";
import type { Format, Said, Understood } from "../../test/support/fake-provider.ts";
import { event, startProvider as startServer, type Asked } from "../../test/support/provider.ts";

const DIALECTS: Readonly<Record<string, Format>> = { openai, anthropic, gemini };
export const FORMATS = Object.keys(DIALECTS);

interface Script extends Said {
  /** Raw text in the place of a reply. Absent: the reply. */
  readonly raw?: string;
  /** What is made of the text of a reply, a stream or a refusal. Absent: nothing. */
  readonly edit?: (text: string, isStream: boolean) => string;
  /** Beside those of the format. Absent: none. */
  readonly headers?: Readonly<Record<string, string>>;
}

const call = (id: string, args: object) => ({
  id,
  name: "get_time",
  arguments: JSON.stringify(args),
});
const text = "14:05 世🎉";
const STATUSES = [400, 401, 404, 413, 500, 503, 529];
const TOKEN = { token: "14", logprob: -0.5, bytes: [49, 52] };
const LOGPROBS = { content: [{ ...TOKEN, top_logprobs: [TOKEN, { ...TOKEN, token: "15" }] }] };
const BUSY = { error: { type: "overloaded_error", message: "busy", code: 503 }, type: "error" };
/** One text in the place of another. */
const instead =
  (...pairs: readonly (readonly [one: string, other: string])[]): Script["edit"] & {} =>
  (given) =>
    pairs.reduce((edited, [one, other]) => edited.replaceAll(one, other), given);
const coded = (code: string, message: string): Script => ({
  status: 400,
  raw: JSON.stringify({ error: { message, code } }),
});
/** Nonsense as the third event. */
const nonsense = (given: string): string =>
  given
    .split(/(?<=\n\r?\n)/)
    .toSpliced(2, 0, "data: {nonsense\n\n")
    .join("");
const SCRIPTS: Readonly<Record<string, Script>> = {
  text: { text },
  reasoning: {
    reasoning: "Let me think.",
    text: "42",
    edit: instead(['"reasoning_content":" think."', '"reasoning":" think."']),
  },
  tools: { text: "I look.", calls: [call("call_a", { city: "Oslo" }), call("call_b", {})] },
  length: { text: "14", finish: "length" },
  logprobs: {
    text: "14",
    edit: instead(['"content":"14"},', `"content":"14"},"logprobs":${JSON.stringify(LOGPROBS)},`]),
  },
  refusal: { text: "No.", edit: instead(['"content":"No."', '"refusal":"No."']) },
  filtered: { text: "14", finish: "content_filter" },
  "filtered-empty": { finish: "content_filter" },
  failed: {
    text: "14",
    edit: instead(
      ['"finish_reason":"stop"', '"finish_reason":"error"'],
      ['"finishReason":"STOP"', '"finishReason":"MALFORMED_FUNCTION_CALL"'],
    ),
  },
  empty: {},
  cut: { text, ending: "cut" },
  short: { text, ending: "eof" },
  "late-error": { text, ending: "error" },
  "error-event": {
    edit: (_, isStream) => (isStream ? event(BUSY) : JSON.stringify(BUSY)),
  },
  "not-json": { raw: "<html>no</html>" },
  garbage: { text: `${text} now`, edit: nonsense },
  "status-400-context": coded(
    "context_length_exceeded",
    "the prompt is too long: maximum context length is 10",
  ),
  "status-400-filter": coded("content_filter", "refused"),
  "status-429": { status: 429, headers: { "retry-after": "7" } },
  ...Object.fromEntries(STATUSES.map((status) => [`status-${status}`, { status }])),
};
export const SCRIPT_NAMES = Object.keys(SCRIPTS);

function formatOf(path: string): string {
  if (path.startsWith("/v1beta")) return "gemini";
  return path.startsWith("/v1/messages") ? "anthropic" : "openai";
}

function answer({ res, socket }: Asked, format: Format, script: Script, asked: Understood): void {
  const { status = 200, raw, edit = (said: string) => said, headers, ending } = script;
  const refused = status === 200 ? undefined : format.refusal(status, "its own words");
  const isStream = asked.stream && !refused;
  const type = isStream ? "text/event-stream" : "application/json";
  const body = refused?.body ?? format.whole(asked, script);
  const stream = () => format.stream(asked, script) + (ending === "error" ? format.failure : "");
  res.writeHead(status, { "content-type": type, ...refused?.headers, ...headers });
  res.write(raw ?? edit(isStream ? stream() : JSON.stringify(body), isStream), () => {
    if (ending === "cut") socket.resetAndDestroy();
    else res.end();
  });
}

/** Of a request: its format, a slash, and the name of its script, which Gemini has in its path. */
export const scriptOf = ({ path, body }: Asked): string => {
  const [, name] = /__([\w-]+)/.exec(`${path} ${body["model"]}`) ?? [];
  return `${formatOf(path)}/${name}`;
};

export async function startProvider() {
  const ends: (() => unknown)[] = [];
  const scope = { after: (end: () => unknown) => ends.push(end) };
  const { url, asked } = await startServer(scope, (request) => {
    const [format = "", name = ""] = scriptOf(request).split("/");
    const stream = request.body["stream"] === true || request.path.includes("streamGenerate");
    const understood: Understood = {
      model: name,
      upstreamModel: name,
      stream,
      messages: [],
      thinking: { type: "enabled" },
      showThinking: true,
    };
    answer(request, DIALECTS[format]!, SCRIPTS[name]!, understood);
  });
  return {
    url,
    asked,
    async close(): Promise<void> {
      for (const end of ends) await end();
    },
  };
}
