// The suite's own provider, which misbehaves as the name of the model says that it is asked for
// (behaviours.ts). A model is called `behaviour:anything`, so that each check has models that no
// other asks for: what came for them is kept for the check to read. And a configuration with which
// this gateway is ready for the whole suite: the demo models for the other levels, and this provider
// behind a model for each thing that goes wrong in a check of the level `robust`.

import { EventEmitter, once } from "node:events";
import http, {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { perform } from "./behaviours.ts";
import { parseJson } from "./client.ts";
import { within } from "./expect.ts";
import { isObject, type Json } from "./shapes.ts";
import { ELSEWHERE } from "./wire.ts";

/** What the provider was asked. */
export interface Call {
  readonly headers: IncomingHttpHeaders;
  readonly body: Json;
  /** Counts the connections, and the requests on each, from 0. */
  readonly connection: number;
  readonly position: number;
  /** Bytes of the answer that were handed to the connection so far. */
  readonly sent: () => number;
  /** Resolves when the connection has closed before the answer was finished. */
  readonly left: Promise<void>;
  /** Resolves when the answer was finished. */
  readonly finished: Promise<void>;
}

export interface Provider {
  /** What a gateway is to use as its upstream's base address. */
  readonly url: string;
  /** The same at an address of its own, whose connections nobody else uses. */
  readonly loneUrl: string;
  /** An address at which nobody is. */
  readonly goneUrl: string;
  /** What was asked of this model so far. */
  calls(model: string): readonly Call[];
  /** The call after so many others, waited for. */
  call(model: string, after: number, deadlineMs: number): Promise<Call>;
  /** Another behaviour for this model from now on, and for what it holds back. */
  turn(model: string, behaviour: string): void;
  close(): Promise<void>;
}

/** The key that the gateway under test is to use for this provider. */
export const PROVIDER_KEY = "sk-canary-of-the-provider";

export async function startProvider(port = 0): Promise<Provider> {
  const came = new Map<string, Call[]>();
  const behaviours = new Map<string, string>();
  const changes = new EventEmitter().setMaxListeners(0);
  const connections = new WeakMap<Socket, { readonly number: number; requests: number }>();
  let connected = 0;

  function keep(req: IncomingMessage, res: ServerResponse, model: string, body: Json): Call {
    const connection = connections.get(req.socket)!;
    const before = req.socket.bytesWritten;
    const [closed, finished] = ["close", "finish"].map(
      (name) => new Promise<void>((resolve) => res.on(name, resolve)),
    );
    const call: Call = {
      body,
      headers: req.headers,
      connection: connection.number,
      position: connection.requests,
      finished: finished!,
      sent: () => req.socket.bytesWritten - before,
      left: closed!.then(() => (res.writableFinished ? new Promise(() => undefined) : undefined)),
    };
    connection.requests += 1;
    came.set(model, [...(came.get(model) ?? []), call]);
    changes.emit("call");
    return call;
  }

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(piece as Buffer);
    const parsed = parseJson(Buffer.concat(pieces).toString("utf8"));
    const body: Json = isObject(parsed) ? parsed : {};
    const model = req.url === `/${ELSEWHERE}` ? ELSEWHERE : String(body["model"]);
    const number = came.get(model)?.length ?? 0;
    const { position } = keep(req, res, model, body);
    const turned = () => once(changes, `turn ${model}`).then(([behaviour]) => String(behaviour));
    const behaviour = behaviours.get(model) ?? model.split(":", 1)[0]!;
    await perform(behaviour, { body, number, position, res, turned });
  }

  const servers = [0, 1].map(() => {
    const server = http.createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (req, res) => {
      res.on("error", () => undefined); // told by `left`
      serve(req, res).catch(() => res.destroy());
    });
    server.on("connection", (socket) =>
      connections.set(socket, { number: connected++, requests: 0 }),
    );
    return server;
  });
  const urls: string[] = [];
  for (const [index, server] of servers.entries()) {
    await new Promise<void>((resolve, reject) =>
      server.once("error", reject).listen(port === 0 ? 0 : port + index, "127.0.0.1", resolve),
    );
    urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }

  return {
    url: urls[0]!,
    loneUrl: urls[1]!,
    goneUrl: "http://127.0.0.1:1",
    calls: (model) => came.get(model) ?? [],
    async call(model, position, deadlineMs) {
      const there = async () => {
        for (;;) {
          const call = came.get(model)?.[position];
          if (call) return call;
          await once(changes, "call");
        }
      };
      return within(there(), `request ${position + 1} of the gateway for ${model}`, deadlineMs);
    },
    turn(model, behaviour) {
      behaviours.set(model, behaviour);
      changes.emit(`turn ${model}`, behaviour);
    },
    async close() {
      for (const server of servers) {
        const closed = once(server, "close");
        server.close();
        server.closeAllConnections();
        await closed;
      }
    },
  };
}

/** What a check needs of the gateway's configuration. */
export interface ProviderSetup {
  readonly id: string;
  /**
   * What the provider does, a model for each. If there are several, an alias has them in this
   * order.
   */
  readonly behaviours: readonly string[];
  /**
   * Where the first of them is: at a provider with short deadlines, at one with connections of its
   * own, or where nobody is (`impatient`, `lone`, `gone`).
   */
  readonly at?: string | undefined;
}

/** A key of its own account, and how often it may ask in a minute. */
export const BURST = { key: "sk-conformance-burst", rpm: 60 };
export const LIMITED = { key: "sk-conformance-limited", rpm: 3 };
/** A key of its own account, and how many requests that may have in hand. */
export const CROWDED = { key: "sk-conformance-crowded", maxInFlight: 2 };
/** More failures in a row than those with which most checks are content. */
const BREAKER = { failures: 5, cooldown_ms: 400 };

/** A model that answers, by which it is seen that a gateway has this configuration. */
export const READY: ProviderSetup = { id: "ready", behaviours: ["good"] };

/** Its models, in the order of their behaviours. */
export const modelsOf = ({ id, behaviours }: ProviderSetup): string[] =>
  behaviours.map((behaviour) => `${behaviour}:${id}`);
export const aliasOf = ({ id }: ProviderSetup): string => `auto/robust.${id}`;

export function readyConfig(
  { url, loneUrl, goneUrl }: Pick<Provider, "url" | "loneUrl" | "goneUrl">,
  labs: readonly ProviderSetup[],
  key: string,
) {
  const lab = { dialect: "openai", base_url: url, api_key: PROVIDER_KEY, thinking: "thinking" };
  const demo = {
    provider: "demo",
    supports: ["tools", "json_object", "json_schema", "logprobs"],
    context_tokens: 32768,
    max_output_tokens: 4096,
  };
  const models = [READY, ...labs].flatMap((each) =>
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
      ...Object.fromEntries(labs.map((each) => [aliasOf(each), { models: modelsOf(each) }])),
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
