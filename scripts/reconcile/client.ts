// The clients of the run: each asks one request after the other of a gateway, leaves at a random
// moment now and then, and keeps what it sent and what it saw.

import { EventEmitter, once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { within } from "../../test/support/wait.ts";
import type { Counts } from "./money.ts";
import { isInReference, KEYS, type Phase } from "./plan.ts";
import type { Trouble } from "./house.ts";
import { markOf, type Random, troublesOf } from "./provider.ts";

/** What is sent, and after how many milliseconds the client leaves, if it does. */
type Plan = ReturnType<ReturnType<typeof createPlanner>>;

/** What a client sent, and what came of it. */
export interface Asked extends Readonly<Plan["about"]> {
  readonly endedAt: number;
  /**
   * "whole": a whole reply; "error": a whole error, or an error event; "left": this client left;
   * "hung": nothing has come for a long time; "cut": anything else, such as a gateway that died.
   */
  readonly verdict: "whole" | "error" | "left" | "hung" | "cut";
  /** 0: there was no answer. */
  readonly status: number;
  /** `model` of a whole reply. */
  readonly served?: string | undefined;
  /** What a whole reply states of its figures. A stream of chat does so only if it was asked to. */
  readonly usage?: Partial<Counts> | undefined;
  /** The text of a whole reply, thoughts left out. */
  readonly text?: string | undefined;
  /** In a simulation: when its connection was reset or stood still. */
  readonly troubles?: readonly Trouble[];
  /** The id or the mark of another request, if the answer had one. */
  readonly foreign?: string | undefined;
  /** `error.code`. Errors of the Messages API have none. */
  readonly code?: string | undefined;
}

/** A client waits a little before it asks again a gateway that takes no requests, or is not there. */
const OVERLOADED = 503;

const PATHS = { chat: "chat/completions", messages: "messages", responses: "responses" };
type Api = keyof typeof PATHS;

/** What each API has names of its own for. */
function inFormat(api: Api, content: string, maxTokens: number | undefined) {
  const messages = [{ role: "user", content }];
  if (api === "responses") return { input: messages, max_output_tokens: maxTokens };
  return { messages, max_tokens: maxTokens };
}

const PADDING = "Überall 李 steht etwas anderes. ";

function createPlanner({ random, between, pick }: Random, isReference: boolean) {
  const apis: readonly Api[] = isReference ? ["chat"] : ["chat", "messages", "responses"];
  let serials = 0;

  return (gateway: number) => {
    serials += 1;
    const key = pick(KEYS);
    const content = `#${serials}# ${PADDING.repeat(between(0, 40))}`;
    const stream = random() < 0.55;
    const api = pick(apis);
    const isBounded = key.bounded || api === "messages" || random() < 0.4;
    const maxTokens = isBounded ? between(40, 300) : undefined;
    const model = pick(key.names.filter((name) => !isReference || isInReference(name)));
    const asksUsage = stream && api === "chat" && random() < 0.7;
    const body = JSON.stringify({
      model,
      stream,
      ...inFormat(api, content, maxTokens),
      ...(asksUsage && { stream_options: { include_usage: true } }),
    });
    const about = {
      serial: serials,
      /** The X-Request-Id. */
      id: `own-${serials}`,
      account: key.account,
      keyId: key.keyId,
      api,
      model,
      stream,
      /** Undefined: the reply has no bound. */
      maxTokens,
      /** Bytes of the prompt's text. */
      promptBytes: Buffer.byteLength(content),
      /** Which gateway of the phase is asked. */
      gateway,
      /** Milliseconds of the wall clock. */
      startedAt: Date.now(),
    };
    const leaveAfterMs = random() < 0.13 ? between(0, 60) : undefined;
    return { key, body, about, leaveAfterMs };
  };
}

/** What a client makes of an answer: whether it is whole, and which text and figures it has. */
type Verdict = Pick<Asked, "verdict" | "served" | "usage" | "code" | "text">;

/** The text of blocks, or of the deltas of them. */
const textIn = (parts: readonly any[]): string => parts.map((part) => part?.text ?? "").join("");

/** The text and the figures of a whole reply. */
const SEEN: Readonly<Record<Api, (reply: any) => Pick<Verdict, "usage" | "text">>> = {
  chat: ({ choices, usage }) => ({
    text: choices[0].message.content,
    usage: usage && {
      prompt: usage.prompt_tokens,
      hit: usage.prompt_cache_hit_tokens,
      write: usage.prompt_tokens_details.cache_write_tokens ?? 0,
      write1h: usage.prompt_tokens_details.cache_write_1h_tokens ?? 0,
      completion: usage.completion_tokens,
      reasoning: usage.completion_tokens_details.reasoning_tokens,
    },
  }),
  // It does not say how much was thought, or is kept for an hour.
  messages: ({ content, usage }) => ({
    text: textIn(content),
    usage: {
      prompt:
        usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
      hit: usage.cache_read_input_tokens,
      write: usage.cache_creation_input_tokens,
      completion: usage.output_tokens,
    },
  }),
  // It does not say what is kept for an hour.
  responses: ({ output, usage }) => ({
    text: textIn(output.flatMap(({ content }: any) => content ?? [])),
    usage: {
      prompt: usage.input_tokens,
      hit: usage.input_tokens_details.cached_tokens,
      write: usage.input_tokens_details.cache_write_tokens,
      completion: usage.output_tokens,
      reasoning: usage.output_tokens_details.reasoning_tokens,
    },
  }),
};

const DONE = "[DONE]";

/** The data of the events that have come whole. */
const eventsIn = (text: string): any[] =>
  text
    .split("\n\n")
    .slice(0, -1)
    .flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? [])
    .map((data) => (data === DONE ? DONE : JSON.parse(data)));

/** The reply or the error that the events of a stream come to. Undefined: they do not end. */
const REPLIES: Readonly<Record<Api, (events: readonly any[]) => any>> = {
  chat(events) {
    const last = events.at(-1);
    if (last !== DONE) return last?.error && last;
    // Each chunk has the model that made it; the last one that of the model that finished.
    const chunks = events.slice(0, -1);
    const content = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    return { ...chunks.at(-1), choices: [{ message: { content } }] };
  },
  messages(events) {
    const last = events.at(-1);
    if (last?.type !== "message_stop") return last?.error && last;
    const { message } = events.find(({ type }) => type === "message_start");
    const end = events.findLast(({ type, usage }) => type === "message_delta" && usage);
    const content = events.flatMap(({ delta }) => delta ?? []);
    return { ...message, content, usage: { ...message.usage, ...end?.usage } };
  },
  responses(events) {
    const { type, response } = events.at(-1) ?? {};
    if (type === "response.failed") return response;
    if (type !== "response.completed" && type !== "response.incomplete") return undefined;
    const deltas = events.filter((event) => event.type === "response.output_text.delta");
    return { ...response, output: [{ content: deltas.map(({ delta }) => ({ text: delta })) }] };
  },
};

function verdictOn(
  res: IncomingMessage,
  text: string,
  { api, stream }: Pick<Asked, "api" | "stream">,
): Verdict {
  const isStream = res.statusCode === 200 && stream;
  if (!isStream && !res.complete) return { verdict: "cut" };
  const reply = isStream ? REPLIES[api](eventsIn(text)) : JSON.parse(text);
  if (!reply) return { verdict: "cut" };
  if (reply.error) return { verdict: "error", code: reply.error.code };
  return { verdict: "whole", served: reply.model, ...SEEN[api](reply) };
}

/** A client that has no answer after this time gives up, in milliseconds. */
const PATIENCE_MS = 120_000;

/** One request to its end, whatever that is. */
function ask(url: string, agent: http.Agent, plan: Plan): Promise<Asked> {
  const { key, about, body, leaveAfterMs } = plan;
  const headers = {
    authorization: `Bearer ${key.key}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "x-request-id": about.id,
  };
  return new Promise((resolve) => {
    let left: "left" | "hung" | undefined;
    const end = (more: Verdict & Pick<Asked, "status" | "foreign">): void => {
      clearTimeout(patience);
      const verdict = (more.verdict === "cut" && left) || more.verdict;
      const troubles = troublesOf(req.socket, about.startedAt);
      resolve({ ...about, ...more, verdict, troubles, endedAt: Date.now() });
    };
    const options = { method: "POST", agent, headers };
    const req = http.request(`${url}/v1/${PATHS[about.api]}`, options, (res) => {
      const pieces: Buffer[] = [];
      res.on("data", (piece: Buffer) => {
        if (!left) pieces.push(piece);
      });
      res.on("error", () => undefined);
      res.on("close", () => {
        const text = Buffer.concat(pieces).toString();
        const seen = verdictOn(res, text, about);
        const marks = [res.headers["x-request-id"], ...(text.match(/<\d+>/g) ?? [])];
        const own = [about.id, markOf(about.serial)];
        const foreign = marks.find((mark) => !own.includes(String(mark)));
        end({ ...seen, foreign: foreign && String(foreign), status: res.statusCode ?? 0 });
      });
    });
    const leave = (why: "left" | "hung") => () => {
      left ??= why;
      req.destroy();
    };
    const patience = setTimeout(leave("hung"), PATIENCE_MS);
    req.on("error", () => end({ verdict: "cut", status: 0 }));
    if (leaveAfterMs !== undefined) setTimeout(leave("left"), leaveAfterMs);
    req.end(body);
  });
}

/** Clients of all gateways of a phase. */
export type Crowd = ReturnType<typeof createCrowd>;

/**
 * `clients`: how many each gateway has. `enough`: once so many requests have ended in all, clients
 * pause before they ask again.
 */
export function createCrowd(random: Random, phase: Phase, clients: number, enough = Infinity) {
  const plan = createPlanner(random, phase.isReference === true);
  const asked: Asked[] = [];
  const events = new EventEmitter().setMaxListeners(0);
  let stopped = false;
  /** A gateway that was started again gets new connections. */
  const targetOf = (url: string | undefined) => ({
    url,
    agent: new http.Agent({ keepAlive: true }),
  });
  const targets = Array.from({ length: phase.gateways }, () => targetOf(undefined));

  /** Where the clients of a gateway ask from now on. Undefined: they wait. */
  function turnTo(gateway: number, url: string | undefined): void {
    targets[gateway] = targetOf(url);
    events.emit("turned");
  }
  /** How long a client waits before it asks again. */
  async function pauseAfter({ status }: Asked): Promise<void> {
    if (status === OVERLOADED || status === 0) await pause(random.between(20, 300));
    if (asked.length >= enough) await pause(random.between(200, 2_000));
  }
  async function client(gateway: number): Promise<void> {
    while (!stopped) {
      const { url, agent } = targets[gateway]!;
      if (url === undefined) {
        await once(events, "turned");
        continue;
      }
      const one = await ask(url, agent, plan(gateway));
      asked.push(one);
      events.emit("ended");
      await pauseAfter(one);
    }
  }
  async function reach(requests: number): Promise<void> {
    while (asked.length < requests) await once(events, "ended");
  }
  const all = targets.flatMap((_, gateway) =>
    Array.from({ length: clients }, () => client(gateway)),
  );
  return {
    asked: asked as readonly Asked[],
    turnTo,
    /** Resolves when so many requests have ended in all. */
    reached: (requests: number) =>
      within(reach(requests), `${requests} requests to end`, 1_200_000),
    /** Lets the requests on their way end, and sends no more. */
    async stop() {
      stopped = true;
      for (const gateway of targets.keys()) turnTo(gateway, undefined);
      await within(Promise.all(all), "the last requests to end", 150_000);
    },
  };
}
