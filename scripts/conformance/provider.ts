// The suite's own provider. Its behaviour depends on the name of the requested model
// (behaviours.ts). A model is called `behaviour:anything`, so that each check has its own models,
// whose calls are recorded separately. This file also has a configuration for the whole suite: the
// demo models for most levels, and models at this provider for each check of the level `robust`.

import { EventEmitter, once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { perform } from "./behaviours.ts";
import { parseJson } from "./client.ts";
import { within } from "./expect.ts";
import { isObject, type Json } from "./shapes.ts";
import { ELSEWHERE } from "./wire.ts";

/** A request that the provider received. */
export type Call = ReturnType<typeof callOf>;

function callOf(req: IncomingMessage, res: ServerResponse, position: number, body: Json) {
  const before = req.socket.bytesWritten;
  const [closed, finished] = ["close", "finish"].map(
    (name) => new Promise<void>((resolve) => res.on(name, resolve)),
  );
  return {
    headers: req.headers,
    body,
    /** The port of the gateway, which identifies the connection. */
    connection: req.socket.remotePort,
    /** The number of the request on its connection, from 0. */
    position,
    /** Bytes of the answer that have been written so far. */
    sent: () => req.socket.bytesWritten - before,
    /** Resolves if the connection closes before the end of the answer. */
    left: closed!.then(() => (res.writableFinished ? new Promise<void>(() => {}) : undefined)),
    /** Resolves at the end of the answer. */
    finished: finished!,
  };
}

/** The provider's key, for the gateway's configuration. */
export const PROVIDER_KEY = "sk-canary-of-the-provider";

/** The suite's provider. */
export type Provider = Awaited<ReturnType<typeof startProvider>>;

/**
 * Starts the provider. `port`: of its first address; the second address has the next one. 0: any.
 */
export async function startProvider(port = 0) {
  const calls = new Map<string, Call[]>();
  const behaviours = new Map<string, string>();
  const changes = new EventEmitter().setMaxListeners(0);
  /** The number of requests on each connection so far. */
  const requests = new WeakMap<Socket, number>();

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const parsed = parseJson(await textOf(req));
    const body: Json = isObject(parsed) ? parsed : {};
    const model = req.url === `/${ELSEWHERE}` ? ELSEWHERE : String(body["model"]);
    const position = requests.get(req.socket) ?? 0;
    requests.set(req.socket, position + 1);
    const earlier = calls.get(model) ?? [];
    calls.set(model, [...earlier, callOf(req, res, position, body)]);
    changes.emit("call");
    const turned = () => once(changes, `turn ${model}`).then(([behaviour]) => String(behaviour));
    const behaviour = behaviours.get(model) ?? model.split(":", 1)[0]!;
    await perform(behaviour, { body, number: earlier.length, position, res, turned });
  }

  const servers = [0, 1].map(() =>
    http.createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (req, res) => {
      res.on("error", () => undefined); // `left` resolves then
      serve(req, res).catch(() => res.destroy());
    }),
  );
  const urls: string[] = [];
  for (const [index, server] of servers.entries()) {
    await new Promise<void>((resolve, reject) =>
      server.once("error", reject).listen(port === 0 ? 0 : port + index, "127.0.0.1", resolve),
    );
    urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }

  return {
    /** The base address for the gateway's configuration. */
    url: urls[0]!,
    /** Another address, for checks that count connections. */
    loneUrl: urls[1]!,
    /** An address at which nothing listens. */
    goneUrl: "http://127.0.0.1:1",
    /** The calls of a model so far. */
    calls: (model: string): readonly Call[] => calls.get(model) ?? [],
    /** Waits for the call that comes after `after` others. */
    async call(model: string, position: number, deadlineMs: number): Promise<Call> {
      const there = async () => {
        for (;;) {
          const call = calls.get(model)?.[position];
          if (call) return call;
          await once(changes, "call");
        }
      };
      return within(there(), `request ${position + 1} of the gateway for ${model}`, deadlineMs);
    },
    /** Changes a model's behaviour, also for answers that it is holding back. */
    turn(model: string, behaviour: string): void {
      behaviours.set(model, behaviour);
      changes.emit(`turn ${model}`, behaviour);
    },
    async close(): Promise<void> {
      for (const server of servers) {
        const closed = once(server, "close");
        server.close();
        server.closeAllConnections();
        await closed;
      }
    },
  };
}

/** What a check needs in the gateway's configuration. */
export interface ProviderSetup {
  readonly id: string;
  /**
   * The provider's behaviours, with a model for each. An alias lists these models in this order.
   */
  readonly behaviours: readonly string[];
  /**
   * The provider of the first model: `impatient` has short timeouts, `lone` has its own
   * connections, `gone` has an address at which nothing listens. Absent: the usual one.
   */
  readonly at?: string | undefined;
}

/** A key with its own account, and its limit of requests per minute. */
export const BURST = { key: "sk-conformance-burst", rpm: 60 };
/** The key whose limit the suite exceeds. */
export const LIMITED = { key: "sk-conformance-limited", rpm: 3 };
/** A key with its own account, and its limit of requests in flight. */
export const CROWDED = { key: "sk-conformance-crowded", maxInFlight: 2 };
/** `failures`: more than most checks cause in a row. */
const BREAKER = { failures: 5, cooldown_ms: 400 };

/** A model that answers, which shows that the gateway has loaded this configuration. */
export const READY: ProviderSetup = { id: "ready", behaviours: ["good"] };

/** The names of a setup's models, in the order of their behaviours. */
export const modelsOf = ({ id, behaviours }: ProviderSetup): string[] =>
  behaviours.map((behaviour) => `${behaviour}:${id}`);
/** The name of a setup's alias. */
export const aliasOf = ({ id }: ProviderSetup): string => `auto/robust.${id}`;

/** A configuration for the whole suite. `key`: the client's. */
export function readyConfig(
  { url, loneUrl, goneUrl }: Pick<Provider, "url" | "loneUrl" | "goneUrl">,
  setups: readonly ProviderSetup[],
  key: string,
) {
  const lab = { dialect: "openai", base_url: url, api_key: PROVIDER_KEY, thinking: "thinking" };
  const demo = {
    provider: "demo",
    supports: ["tools", "json_object", "json_schema", "logprobs"],
    context_tokens: 32768,
    max_output_tokens: 4096,
  };
  const models = [READY, ...setups].flatMap((each) =>
    modelsOf(each).map((name, index) => {
      const provider = (index === 0 && each.at) || "lab";
      return [name, { provider, reasoning: name.startsWith("reasoning:") }] as const;
    }),
  );
  return {
    apis: ["messages", "responses"],
    providers: {
      demo: { dialect: "demo", pace_ms: 0 },
      lab,
      impatient: { ...lab, timeouts: { first_token_ms: 400, idle_ms: 400 } },
      lone: { ...lab, base_url: loneUrl, retry: { max_retries: 0 } },
      gone: { ...lab, base_url: goneUrl },
    },
    models: {
      "demo-chat": { ...demo, quality_score: 50, price: { input_cache_miss: 0.1, output: 0.2 } },
      "demo-reasoner": {
        ...demo,
        quality_score: 40,
        reasoning: true,
        reasoning_score: 50,
        price: { input_cache_miss: 0.5, output: 1 },
      },
      ...Object.fromEntries(models),
    },
    aliases: {
      "auto/reasoning": { policy: "reasoning" },
      "auto/chat": { policy: "value" },
      ...Object.fromEntries(setups.map((each) => [aliasOf(each), { models: modelsOf(each) }])),
    },
    accounts: { crowded: { max_in_flight: CROWDED.maxInFlight } },
    keys: [
      { account: "demo", key },
      { account: "burst", key: BURST.key, rpm: BURST.rpm },
      { account: "limited", key: LIMITED.key, rpm: LIMITED.rpm },
      { account: "crowded", key: CROWDED.key },
    ],
    limits: { rpm: null },
    timeouts: { connect_ms: 2_000, first_token_ms: 8_000, idle_ms: 8_000, total_ms: 30_000 },
    retry: { max_retries: 1, backoff_ms: 10, max_wait_ms: 1_000 },
    breaker: BREAKER,
  };
}
