// The provider of scripts/compare.ts: one server that speaks the three provider formats, as the
// fake providers of the tests do. The model that it is asked for is the name of a script, so that
// a configuration needs one model a script. It keeps what it was asked.

import { anthropic } from "../../test/support/fake-anthropic.ts";
import { gemini } from "../../test/support/fake-gemini.ts";
import { openai } from "../../test/support/fake-openai.ts";
import type { Format, Said, Understood } from "../../test/support/fake-provider.ts";
import { startProvider as startServer, type Asked } from "../../test/support/provider.ts";

const DIALECTS: Readonly<Record<string, Format>> = { openai, anthropic, gemini };
export const FORMATS = Object.keys(DIALECTS);

/** What is said, and raw text in the place of a reply. */
interface Script extends Said {
  readonly raw?: string;
}

const call = (id: string, args: object) => ({
  id,
  name: "get_time",
  arguments: JSON.stringify(args),
});
const text = "14:05 世🎉";
const STATUSES = [400, 401, 404, 413, 429, 500, 503, 529];
const SCRIPTS: Readonly<Record<string, Script>> = {
  text: { text },
  reasoning: { reasoning: "Let me think.", text: "42" },
  tools: { text: "I look.", calls: [call("call_a", { city: "Oslo" }), call("call_b", {})] },
  length: { text: "14", finish: "length" },
  filtered: { text: "14", finish: "content_filter" },
  empty: {},
  cut: { text, ending: "cut" },
  short: { text, ending: "eof" },
  "late-error": { text, ending: "error" },
  "error-event": { ending: "error" },
  "not-json": { raw: "<html>no</html>" },
  garbage: { raw: "data: {nonsense\n\n" },
  ...Object.fromEntries(STATUSES.map((status) => [`status-${status}`, { status }])),
};
export const SCRIPT_NAMES = Object.keys(SCRIPTS);

function formatOf(path: string): string {
  if (path.startsWith("/v1beta")) return "gemini";
  return path.startsWith("/v1/messages") ? "anthropic" : "openai";
}

function answer({ res, socket }: Asked, format: Format, script: Script, asked: Understood): void {
  const { status = 200, raw, ending } = script;
  const refused = status === 200 ? undefined : format.refusal(status, "its own words");
  const isStream = asked.stream && !refused;
  const type = isStream ? "text/event-stream" : "application/json";
  const body = refused?.body ?? format.whole(asked, script);
  const stream = () => format.stream(asked, script) + (ending === "error" ? format.failure : "");
  res.writeHead(status, { "content-type": type, ...refused?.headers });
  res.write(raw ?? (isStream ? stream() : JSON.stringify(body)), () => {
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
