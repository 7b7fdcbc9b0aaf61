// What the fake providers have in common (fake-openai.ts, fake-anthropic.ts, fake-gemini.ts):
// models that say things, whatever format they are asked in, and a server that refuses what breaks
// the provider's published rules.

import type { TestContext } from "node:test";
import { startProvider, status, wordsIn, type Asked } from "./provider.ts";

export { wordsIn as words };

export const PROVIDER_KEY = "sk-provider-secret";

/** A request in the terms of chat completions, whatever format it came in. */
export interface Understood {
  /** Without the beginning that says which generation it is. */
  readonly model: string;
  readonly upstreamModel: string;
  readonly stream: boolean;
  readonly messages: readonly Record<string, any>[];
  readonly thinking: { readonly type: "enabled" | "disabled" };
  /** Thinking is on, and its text is to be seen. */
  readonly showThinking: boolean;
  readonly tools: readonly { readonly name: string }[];
}

export interface Call {
  readonly id: string;
  readonly name: string;
  /** JSON. */
  readonly arguments: string;
}

/** What a model says. */
export interface Said {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly Call[];
  /** How a stream ends, as in provider.ts; "error": by an error event. Absent: it is complete. */
  readonly ending?: "eof" | "cut" | "open" | "error";
  /** Refused with this status instead. */
  readonly status?: number;
}

/** What it says to a request; undefined: nothing, ever. */
export type Model = (request: Understood) => Said | undefined;

/** The words of the provider's own errors, which no client of a gateway may see. */
export const OWN_WORDS = "the provider's own words";

/** The same counts whatever was said; those of provider.ts. */
export const COUNTS = { prompt: 20, cached: 8, completion: 7, reasoning: 3 };

class Refusal extends Error {}

/** A rule of the provider: what is not so is refused. */
export function rule(holds: unknown, message: string): asserts holds {
  if (!holds) throw new Refusal(message);
}

export const isObject = (value: unknown): value is Record<string, any> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** One provider's format. */
export interface Format {
  /** What a request says, which is refused if it breaks a rule. */
  understand(asked: Asked): Understood;
  /** An error's body. */
  refusal(message: string): object;
  whole(request: Understood, said: Said): object;
  /** A stream, as text; what finishes it is left out if it has an ending of another kind. */
  stream(request: Understood, said: Said): string;
  /** An error in mid-stream. */
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
  /** What was said of those that did. */
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

/** Of JSON, as it is streamed: a few characters each. */
export const letters = (text: string): string[] => text.match(/.{1,5}/gsu) ?? [];

/** A signature by the provider. It contains what it signs, so that any other one is refused. */
export const sign = (what: unknown): string => Buffer.from(JSON.stringify(what)).toString("base64");
