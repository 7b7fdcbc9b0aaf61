// The clients of the run: each asks one request after the other of a gateway, leaves at a random
// byte now and then, and keeps what it sent and what it saw.

import { EventEmitter, once } from "node:events";
import http from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { within } from "../../test/support/wait.ts";
import type { Counts } from "./money.ts";
import { type Verdict, verdictOn } from "./verdict.ts";
import { type Key, KEYS, namesOf } from "./plan.ts";
import type { Trouble } from "./house.ts";
import { markOf, type Random, troublesOf } from "./provider.ts";

/** What a client sent, and what came of it. */
export interface Asked {
  readonly serial: number;
  readonly account: string;
  readonly keyId: string;
  /** The X-Request-Id that it sent. Absent: none. */
  readonly sentId?: string | undefined;
  /** The format of the request and the answer. */
  readonly api: "chat" | "messages" | "responses";
  readonly model: string;
  readonly stream: boolean;
  /** Absent: the reply has no bound. */
  readonly maxTokens?: number | undefined;
  /** Bytes of the prompt's text. */
  readonly promptBytes: number;
  /** Which gateway of the phase was asked. */
  readonly gateway: number;
  /** Milliseconds of the wall clock. */
  readonly startedAt: number;
  readonly endedAt: number;
  /**
   * "whole": a whole reply; "error": a whole error, or an error event; "left": this client left;
   * "hung": nothing has come for a long time; "cut": anything else, such as a gateway that died.
   */
  readonly verdict: "whole" | "error" | "left" | "hung" | "cut";
  /** 0: there was no answer. */
  readonly status: number;
  /** The X-Request-Id of the answer, if there was one. */
  readonly id?: string | undefined;
  /** `model` of a whole reply. */
  readonly served?: string | undefined;
  /** What a whole reply states of its figures. A stream of chat does so only if it was asked to. */
  readonly usage?: Partial<Counts> | undefined;
  /** The text of a whole reply, thoughts left out. */
  readonly text?: string | undefined;
  /** In a simulation: when its connection was reset or stood still. */
  readonly troubles?: readonly Trouble[];
  /** The mark of another request that stood in the answer. Absent: there was none. */
  readonly foreign?: string | undefined;
  /** `error.code`. Errors of the Messages API have none. */
  readonly code?: string | undefined;
}

/** What is sent, and when the client leaves. */
interface Plan {
  readonly key: Key;
  readonly about: Omit<Asked, "verdict" | "status" | "endedAt">;
  readonly body: string;
  /** The client leaves when so many bytes of the answer have come. */
  readonly leaveAfterBytes: number;
  /** The client leaves after this time. Absent: it does not. */
  readonly leaveAfterMs?: number | undefined;
  /** So many bytes of the request are sent, and no more. */
  readonly sendBytes: number;
}

/** A client waits a little before it asks again a gateway that takes no requests, or is not there. */
const OVERLOADED = 503;

const PATHS = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
};

/** What each API has names of its own for. */
function inFormat(api: Asked["api"], content: string, maxTokens: number | undefined) {
  const messages = [{ role: "user", content }];
  if (api === "responses") return { input: messages, max_output_tokens: maxTokens };
  return { messages, max_tokens: maxTokens };
}

const PADDING = "Überall 李 steht etwas anderes. ";

function createPlanner({ random, between, pick }: Random, isReference: boolean) {
  /** The share of chat completions; the other two APIs halve the rest. */
  const chatShare = isReference ? 1 : 0.76;
  const drawn = KEYS.flatMap((key) => Array.from({ length: key.weight }, () => key));
  let serials = 0;

  function idFor(serial: number): string | undefined {
    const chance = random();
    if (chance < 0.1) return `again-${Math.floor(serial / 40)}`;
    return chance < 0.25 ? undefined : `own-${serial}`;
  }

  return (gateway: number): Plan => {
    serials += 1;
    const serial = serials;
    const key = pick(drawn);
    const padding = PADDING.repeat(between(0, 40));
    const frame = (bytes: number) => `#${serial}/${bytes}# ${padding}`;
    // The size stands in the text itself, always in four digits.
    const promptBytes = Buffer.byteLength(frame(1_000));
    const content = frame(promptBytes).replace(
      /\/(\d+)#/,
      (_, size) => `/${size.padStart(4, "0")}#`,
    );
    const stream = random() < 0.55;
    const api = random() < chatShare ? "chat" : pick(["messages", "responses"] as const);
    const isBounded = key.bounded || api === "messages" || random() < 0.4;
    const maxTokens = isBounded ? between(40, 300) : undefined;
    const model = pick(namesOf(key, isReference));
    const asksUsage = stream && api === "chat" && random() < 0.7;
    const body = JSON.stringify({
      model,
      stream,
      ...inFormat(api, content, maxTokens),
      ...(asksUsage && { stream_options: { include_usage: true } }),
    });
    const way = random();
    const length = Buffer.byteLength(body);
    return {
      key,
      body,
      about: {
        serial,
        account: key.account,
        keyId: key.keyId,
        sentId: idFor(serial),
        api,
        model,
        stream,
        maxTokens,
        promptBytes,
        gateway,
        startedAt: Date.now(),
      },
      leaveAfterBytes: way < 0.1 ? between(1, 1_500) : Infinity,
      leaveAfterMs: way >= 0.1 && way < 0.14 ? between(0, 30) : undefined,
      sendBytes: way >= 0.14 && way < 0.15 ? between(0, length - 1) : length,
    };
  };
}

/** A client that has no answer after this time gives up, in milliseconds. */
const PATIENCE_MS = 120_000;

/** One request to its end, whatever that is. */
function ask(url: string, agent: http.Agent, plan: Plan): Promise<Asked> {
  const { key, about, body, leaveAfterBytes, leaveAfterMs, sendBytes } = plan;
  const headers = {
    authorization: `Bearer ${key.key}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    ...(about.sentId !== undefined && { "x-request-id": about.sentId }),
  };
  return new Promise((resolve) => {
    let left: "left" | "hung" | undefined;
    const end = (more: Verdict & Pick<Asked, "status" | "id" | "foreign">): void => {
      clearTimeout(patience);
      const verdict = (more.verdict === "cut" && left) || more.verdict;
      const troubles = troublesOf(req.socket, about.startedAt);
      resolve({ ...about, ...more, verdict, troubles, endedAt: Date.now() });
    };
    const options = { method: "POST", agent, headers };
    const req = http.request(url + PATHS[about.api], options, (res) => {
      const pieces: Buffer[] = [];
      let size = 0;
      res.on("data", (piece: Buffer) => {
        size += piece.length;
        if (!left) pieces.push(piece);
        if (size >= leaveAfterBytes) leave();
      });
      res.on("error", () => undefined);
      res.on("close", () => {
        const text = Buffer.concat(pieces).toString();
        const id = res.headers["x-request-id"] as string;
        const seen = verdictOn(res, text, about);
        const marks = text.match(/<\d+>/g) ?? [];
        const foreign = marks.find((mark) => mark !== markOf(about.serial));
        end({ ...seen, foreign, status: res.statusCode ?? 0, id });
      });
    });
    function leave(): void {
      left ??= "left";
      req.destroy();
    }
    const patience = setTimeout(() => {
      left = "hung";
      req.destroy();
    }, PATIENCE_MS);
    req.on("error", () => end({ verdict: "cut", status: 0 }));
    if (leaveAfterMs !== undefined) setTimeout(leave, leaveAfterMs);
    if (sendBytes === headers["content-length"]) req.end(body);
    else req.write(Buffer.from(body).subarray(0, sendBytes), leave);
  });
}

/** Clients of all gateways of a phase. */
export interface Crowd {
  readonly asked: readonly Asked[];
  /** Where the clients of a gateway ask from now on. Undefined: they wait. */
  turnTo(gateway: number, url: string | undefined): void;
  /** Resolves when so many requests have ended in all. */
  reached(requests: number): Promise<void>;
  /** Lets the requests on their way end, and sends no more. */
  stop(): Promise<void>;
}

/** `clients`: how many each gateway has. `isReference`: as Phase.isReference. */
export function createCrowds(random: Random, isReference = false) {
  const plan = createPlanner(random, isReference);
  return (gateways: number, clients: number): Crowd => {
    const asked: Asked[] = [];
    const pending = new Set<object>();
    const events = new EventEmitter().setMaxListeners(0);
    let stopped = false;
    /** A gateway that was started again gets new connections. */
    const targetOf = (url: string | undefined) => ({
      url,
      agent: new http.Agent({ keepAlive: true }),
    });
    const targets = Array.from({ length: gateways }, () => targetOf(undefined));

    function turnTo(gateway: number, url: string | undefined): void {
      targets[gateway] = targetOf(url);
      events.emit("turned");
    }
    async function client(gateway: number): Promise<void> {
      while (!stopped) {
        const { url, agent } = targets[gateway]!;
        if (url === undefined) {
          await once(events, "turned");
          continue;
        }
        const next = plan(gateway);
        pending.add(next.about);
        const one = await ask(url, agent, next);
        pending.delete(next.about);
        asked.push(one);
        events.emit("ended");
        if (one.status === OVERLOADED || one.status === 0) await pause(random.between(20, 300));
      }
    }
    async function reach(requests: number): Promise<void> {
      while (asked.length < requests) await once(events, "ended");
    }
    const all = targets.flatMap((_, gateway) =>
      Array.from({ length: clients }, () => client(gateway)),
    );
    return {
      asked,
      turnTo,
      reached: (requests) => within(reach(requests), `${requests} requests to end`, 1_200_000),
      async stop() {
        stopped = true;
        for (const gateway of targets.keys()) turnTo(gateway, undefined);
        await within(Promise.all(all), "the last requests to end", 150_000).catch((error) => {
          throw new Error(`still without an answer: ${JSON.stringify([...pending])}`, {
            cause: error,
          });
        });
      },
    };
  };
}
