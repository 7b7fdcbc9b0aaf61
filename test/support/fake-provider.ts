// The common parts of the fake providers (fake-openai.ts, fake-anthropic.ts, fake-gemini.ts):
// models that reply independently of the format, and a server that refuses requests that break the
// provider's published rules.

import type { TestContext } from "node:test";
import { startProvider, status, wordsIn, type Asked } from "./provider.ts";

export { wordsIn as words };

export const PROVIDER_KEY = "sk-provider-secret";

/** A request of any format, in the terms of chat completions. */
export interface Understood {
  /** The model's name without the prefix that states its generation. */
  readonly model: string;
  readonly upstreamModel: string;
  readonly stream: boolean;
  readonly messages: readonly Record<string, any>[];
  readonly thinking: { readonly type: "enabled" | "disabled" };
  /** Whether thinking is on, and its text is requested. */
  readonly showThinking: boolean;
  readonly tools: readonly { readonly name: string }[];
}

export interface Call {
  readonly id: string;
  readonly name: string;
  /** The arguments, as JSON. */
  readonly arguments: string;
}

/** The reply of a model. */
export interface Said {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly Call[];
  /** How a stream ends, as in provider.ts; "error": with an error event. Absent: it is complete. */
  readonly ending?: "eof" | "cut" | "open" | "error";
  /** The status of a refusal, which is sent instead of a reply. Absent: there is a reply. */
  readonly status?: number;
}

/** Returns the reply to a request. Undefined: the model never answers. */
export type Model = (request: Understood) => Said | undefined;

/** The message of the provider's own errors, which no client of a gateway may see. */
export const OWN_WORDS = "the provider's own words";

/** The token counts of every reply, the same as in provider.ts. */
export const COUNTS = { prompt: 20, cached: 8, completion: 7, reasoning: 3 };

class Refusal extends Error {}

/** Checks a rule of the provider. If it does not hold, the request is refused with `message`. */
export function rule(holds: unknown, message: string): asserts holds {
  if (!holds) throw new Refusal(message);
}

export const isObject = (value: unknown): value is Record<string, any> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** One provider's format. */
export interface Format {
  /** Parses a request, and refuses it with rule() if it breaks one. */
  understand(asked: Asked): Understood;
  /** The body of an error. */
  refusal(message: string): object;
  /** The body of a whole reply. */
  whole(request: Understood, said: Said): object;
  /** The text of a stream. If `said` has an ending, the events that finish a stream are missing. */
  stream(request: Understood, said: Said): string;
  /** The event of an error in a stream. */
  readonly failure: string;
}

type Models = Readonly<Record<string, Model>>;
export type FakeProvider = Awaited<ReturnType<typeof startFake>>;

/** Starts providers of a format. */
export const fakeOf = (format: Format) => (t: TestContext, models: Models) =>
  startFake(t, format, models);

async function startFake(t: TestContext, format: Format, models: Models) {
  /** The requests that broke no rule. */
  const heard: (Understood & Pick<Asked, "closed">)[] = [];
  /** The messages of the rules that other requests broke. */
  const broken: string[] = [];

  const refuse = (asked: Asked, code: number, message: string) =>
    status(code, format.refusal(message))(asked);

  const provider = await startProvider(t, (asked) => {
    let request: Understood;
    try {
      request = format.understand(asked);
      rule(Object.hasOwn(models, request.model), `there is no model ${request.model}`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      broken.push(error.message);
      return refuse(asked, 400, error.message);
    }
    heard.push({ ...request, closed: asked.closed });
    const said = models[request.model]!(request);
    if (said === undefined) return;
    if (said.status !== undefined) return refuse(asked, said.status, OWN_WORDS);
    if (!request.stream) return status(200, format.whole(request, said))(asked);
    speak(asked, said.ending, format.stream(request, said));
  });

  function speak({ res, socket }: Asked, ending: Said["ending"], text: string): void {
    res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    res.write(ending === "error" ? text + format.failure : text, () => {
      if (ending === "cut") socket.resetAndDestroy();
      else if (ending !== "open") res.end();
    });
  }

  return { ...provider, heard, broken };
}

/** Splits JSON into pieces of a few characters, as it is streamed. */
export const letters = (text: string): string[] => text.match(/.{1,5}/gsu) ?? [];

/** A signature by the provider. It contains the signed value, so that a wrong one is detected. */
export const sign = (what: unknown): string => Buffer.from(JSON.stringify(what)).toString("base64");
