// The client load of a run: each client sends one request after another to a gateway, sometimes
// disconnects at a random moment, and records what it sent and what it received.

import { EventEmitter, once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { within } from "../../test/support/wait.ts";
import { parseEvents } from "../conformance/client.ts";
import type { Period } from "./evidence.ts";
import type { Counts } from "./money.ts";
import { type Api, createPlanner, PATHS, type Phase, type PlannedRequest } from "./plan.ts";
import { interruptionsOf, markOf, type Random } from "./provider.ts";

/** What a client sent, and what it received. */
export interface ClientRequest extends Readonly<PlannedRequest["about"]> {
  /** Milliseconds of the wall clock. */
  readonly endedAt: number;
  /**
   * "complete": a complete reply. "error": a complete error, or an error event in a stream. "left":
   * the client disconnected. "hung": the client gave up waiting. "cut": anything else, such as a
   * connection that broke because the gateway was killed.
   */
  readonly outcome: "complete" | "error" | "left" | "hung" | "cut";
  /** The HTTP status. 0: there was no response. */
  readonly status: number;
  /** `model` of a complete reply. */
  readonly served?: string | undefined;
  /** The usage in a complete reply. A stream of chat completions has it only on request. */
  readonly usage?: Partial<Counts> | undefined;
  /** The text of a complete reply, without reasoning. */
  readonly text?: string | undefined;
  /** In a simulation: when its connection was reset or stalled. */
  readonly interruptions?: readonly Period[];
  /** The request id or the mark of another request, if the response contained one. */
  readonly foreign?: string | undefined;
  /** `error.code`. Errors of the Messages API have none. */
  readonly code?: string | undefined;
}

/** What a response says. */
type ResponseSummary = Pick<ClientRequest, "outcome" | "served" | "usage" | "code" | "text">;

/** The texts of content blocks or deltas, joined. */
const textIn = (parts: readonly any[]): string => parts.map((part) => part?.text ?? "").join("");

/** The text and the usage of a complete reply. Figures that an API does not state are left out. */
const READERS: Readonly<Record<Api, (reply: any) => Pick<ResponseSummary, "usage" | "text">>> = {
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

/** The JSON of all complete events of a stream, and DONE. */
const eventsIn = (text: string): any[] =>
  parseEvents(text)
    .events.flatMap(({ data }) => data ?? [])
    .map((data) => (data === DONE ? DONE : JSON.parse(data)));

/** Joins the events of a stream into a reply or an error. Undefined: the stream is incomplete. */
const ASSEMBLERS: Readonly<Record<Api, (events: readonly any[]) => any>> = {
  chat(events) {
    const last = events.at(-1);
    if (last !== DONE) return last?.error && last;
    // Each chunk names the model that made it, so the last one names the model that finished.
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

function summaryOf(
  res: IncomingMessage,
  text: string,
  { api, stream }: Pick<ClientRequest, "api" | "stream">,
): ResponseSummary {
  const isStream = res.statusCode === 200 && stream;
  if (!isStream && !res.complete) return { outcome: "cut" };
  const reply = isStream ? ASSEMBLERS[api](eventsIn(text)) : JSON.parse(text);
  if (!reply) return { outcome: "cut" };
  if (reply.error) return { outcome: "error", code: reply.error.code };
  return { outcome: "complete", served: reply.model, ...READERS[api](reply) };
}

/** A client gives up after this time, in milliseconds. */
const TIMEOUT_MS = 120_000;

/** Sends a request. Resolves when it has ended in any way; never rejects. */
function send(url: string, agent: http.Agent, planned: PlannedRequest): Promise<ClientRequest> {
  const { key, about, body, leaveAfterMs } = planned;
  const headers = {
    authorization: `Bearer ${key.key}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "x-request-id": about.id,
  };
  return new Promise((resolve) => {
    /** Why the client closed the connection. Undefined: it did not. */
    let closedBecause: "left" | "hung" | undefined;
    const end = (more: ResponseSummary & Pick<ClientRequest, "status" | "foreign">): void => {
      clearTimeout(timeout);
      const outcome = (more.outcome === "cut" && closedBecause) || more.outcome;
      const interruptions = interruptionsOf(req.socket, about.startedAt);
      resolve({ ...about, ...more, outcome, interruptions, endedAt: Date.now() });
    };
    const options = { method: "POST", agent, headers };
    const req = http.request(`${url}/v1/${PATHS[about.api]}`, options, (res) => {
      const pieces: Buffer[] = [];
      res.on("data", (piece: Buffer) => {
        if (!closedBecause) pieces.push(piece);
      });
      res.on("error", () => undefined);
      res.on("close", () => {
        const text = Buffer.concat(pieces).toString();
        const ids = [`${res.headers["x-request-id"] ?? about.id}`, ...(text.match(/<\d+>/g) ?? [])];
        const foreign = ids.find((id) => id !== about.id && id !== markOf(about.serial));
        end({ ...summaryOf(res, text, about), foreign, status: res.statusCode ?? 0 });
      });
    });
    const close = (reason: "left" | "hung") => () => {
      closedBecause ??= reason;
      req.destroy();
    };
    const timeout = setTimeout(close("hung"), TIMEOUT_MS);
    req.on("error", () => end({ outcome: "cut", status: 0 }));
    if (leaveAfterMs !== undefined) setTimeout(close("left"), leaveAfterMs);
    req.end(body);
  });
}

/** The status of a gateway that accepts no requests at present. */
const OVERLOADED = 503;

/** The clients of all gateways of a phase. */
export type ClientLoad = ReturnType<typeof createClientLoad>;

/**
 * Starts clients, which wait until connectTo() names their gateway. `clients`: their number for
 * each gateway. `enough`: after so many requests in all, clients wait longer between requests.
 */
export function createClientLoad(random: Random, phase: Phase, clients: number, enough = Infinity) {
  const plan = createPlanner(random, phase.isReference === true);
  const requests: ClientRequest[] = [];
  const events = new EventEmitter().setMaxListeners(0);
  let stopped = false;
  // A gateway that was started again gets new connections.
  const targetOf = (url: string | undefined) => ({
    url,
    agent: new http.Agent({ keepAlive: true }),
  });
  const targets = Array.from({ length: phase.gateways }, () => targetOf(undefined));

  /** Sets the address of a gateway for its clients. Undefined: they wait. */
  function connectTo(gateway: number, url: string | undefined): void {
    targets[gateway] = targetOf(url);
    events.emit("target");
  }
  async function pauseAfter({ status }: ClientRequest): Promise<void> {
    if (status === OVERLOADED || status === 0) await pause(random.between(20, 300));
    if (requests.length >= enough) await pause(random.between(200, 2_000));
  }
  async function client(gateway: number): Promise<void> {
    while (!stopped) {
      const { url, agent } = targets[gateway]!;
      if (url === undefined) {
        await once(events, "target");
        continue;
      }
      const request = await send(url, agent, plan(gateway));
      requests.push(request);
      events.emit("ended");
      await pauseAfter(request);
    }
  }
  async function countReaches(count: number): Promise<void> {
    while (requests.length < count) await once(events, "ended");
  }
  const all = targets.flatMap((_, gateway) =>
    Array.from({ length: clients }, () => client(gateway)),
  );
  return {
    /** The requests that have ended. */
    requests: requests as readonly ClientRequest[],
    connectTo,
    /** Resolves when so many requests have ended in all. */
    completed: (count: number) =>
      within(countReaches(count), `${count} requests to end`, 1_200_000),
    /** Sends no more requests, and waits for the end of those in flight. */
    async stop() {
      stopped = true;
      for (const gateway of targets.keys()) connectTo(gateway, undefined);
      await within(Promise.all(all), "the last requests to end", 150_000);
    },
  };
}
