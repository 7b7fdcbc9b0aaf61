// The chat handler without a network: requests, responses and providers are objects of this
// process. Everything between is the gateway's own: key, limits, checks, candidates, dialects,
// fallback, decoding and the client's reply. It is for tests whose point is not the wire. What
// sockets do (connections, back-pressure of a client, a client that leaves) is not imitated.

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { ServerResponse, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { Duplex, PassThrough, Readable } from "node:stream";
import { parseRaw } from "../../scripts/conformance/client.ts";
import { createLimiter } from "../../src/core/accounts/limiter.ts";
import { createKeyring, NO_CREATED_KEYS } from "../../src/core/accounts/keyring.ts";
import { aroundBreaks } from "../../src/extensions/routing/recovery/index.ts";
import { aroundRoom } from "../../src/extensions/routing/context-room/index.ts";
import { completeWithFallback } from "../../src/core/routing/fallback.ts";
import { createChatCompletions } from "../../src/core/chat/chat-completions.ts";
import { createChatHandlers } from "../../src/core/chat/handler.ts";
import {
  aroundStreams,
  createLeftStreams,
} from "../../src/extensions/routing/left-streams/index.ts";
import type { Clock } from "../../src/core/clock.ts";
import { requestCheck } from "../../src/core/extension/places.ts";
import type { Observe } from "../../src/core/extension/installer.ts";
import { slots } from "../../src/core/extension/places.ts";
import { internalErrorReporter, renderError } from "../../src/core/error-responses.ts";
import { createResponseLog } from "../../src/core/http/access-log.ts";
import { createConnections } from "../../src/core/http/connection.ts";
import { answerRequest } from "../../src/core/http/request-listener.ts";
import type { Ledger, Settlement } from "../../src/core/ledger/ledger.ts";
import { createCatalog, type Catalog } from "../../src/core/routing/catalog.ts";
import { createFingerprint } from "../../src/core/routing/fingerprint.ts";
import type { Transport, UpstreamRequest } from "../../src/core/upstream/transport.ts";
import { checkConfig, formats, installed } from "./config.ts";
import type { ChatAnswer } from "./gateway.ts";
import { KEY } from "./gateway.ts";
import { breakersBy } from "./routing.ts";
import type { Scope } from "./scope.ts";
import { unhurriedClock } from "./unhurried-clock.ts";
import { behaviourFor, type Asked, type Behaviours } from "./provider.ts";

type Headers = Readonly<Record<string, unknown>>;

const networkError = (code: string): Error =>
  Object.assign(new Error(`the connection failed: ${code}`), { code });

const lowerCased = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/**
 * What a provider sends, as the transport's response, whose body it is: the part of ServerResponse
 * that providers of tests use.
 */
class ProviderResponse extends PassThrough {
  readonly headers = new Map<string, string>();
  headersSent = false;
  #status = 200;
  readonly #settle: PromiseWithSettlers;

  constructor(settle: PromiseWithSettlers) {
    super();
    this.#settle = settle;
    this.on("error", () => undefined); // nobody may be reading any more
  }
  setHeader(name: string, value: unknown): this {
    this.headers.set(name.toLowerCase(), String(value));
    return this;
  }
  writeHead(status: number, headers: Headers = {}): this {
    this.#status = status;
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value);
    this.flushHeaders();
    return this;
  }
  flushHeaders(): void {
    if (this.headersSent) return;
    this.headersSent = true;
    const get = (name: string) => this.headers.get(name.toLowerCase()) ?? null;
    this.#settle.resolve({ status: this.#status, headers: { get }, body: this });
  }
  /** Called with each piece before anybody reads it. */
  override _transform(...piece: Parameters<PassThrough["_transform"]>): void {
    this.flushHeaders();
    super._transform(...piece);
  }
  /** Called when everything is written, before the end is passed on. */
  override _flush(done: () => void): void {
    this.flushHeaders();
    done();
  }
  override destroy(error: Error = networkError("ECONNRESET")): this {
    if (this.writableEnded) return this;
    if (!this.headersSent) this.#settle.reject(error);
    return super.destroy(error);
  }
}

interface PromiseWithSettlers {
  resolve(response: Awaited<ReturnType<Transport>>): void;
  reject(error: Error): void;
}

type Serve = (url: string, request: UpstreamRequest, response: ProviderResponse) => void;
/** By origin. */
const providers = new Map<string, Serve>();
let providersMade = 0;

const memoryTransport: Transport = (url, request) =>
  new Promise((resolve, reject) => {
    const serve = providers.get(new URL(url).origin);
    if (!serve) {
      reject(networkError("ECONNREFUSED"));
      return;
    }
    request.sent();
    const response = new ProviderResponse({ resolve, reject });
    request.cancel.onAbort(() => response.destroy(request.cancel.reason as Error));
    serve(url, request, response);
  });

export interface MemoryProvider {
  readonly url: string;
  readonly asked: Asked[];
}

/** A provider without a socket, at a URL of its own, that does the same as startProvider's. */
export function memoryProvider(t: Scope, behaviours: Behaviours): MemoryProvider {
  providersMade += 1;
  const url = `http://provider-${providersMade}.test`;
  const asked: Asked[] = [];
  providers.set(url, (address, request, response) => {
    const { pathname, search } = new URL(address);
    const socket = {
      resetAndDestroy: () => response.destroy(),
      destroy: () => response.destroy(),
    };
    const record: Asked = {
      body: JSON.parse(request.body),
      headers: lowerCased(request.headers),
      path: pathname + search,
      req: { headers: lowerCased(request.headers) } as unknown as IncomingMessage,
      res: response as unknown as ServerResponse,
      socket: socket as unknown as Socket,
      closed: () => response.destroyed && !response.writableFinished,
    };
    asked.push(record);
    behaviourFor(behaviours, record)(record);
  });
  t.after(() => providers.delete(url));
  return { url, asked };
}

/** A response of the gateway whose bytes are collected. Rejects if it is cut. */
function collected(req: IncomingMessage) {
  const res = new ServerResponse(req);
  const pieces: Buffer[] = [];
  const socket = new Duplex({
    read: () => undefined,
    write(piece: Buffer, _encoding, done) {
      pieces.push(piece);
      done();
    },
  });
  res.shouldKeepAlive = false;
  res.useChunkedEncodingByDefault = false; // the connection's end ends a stream
  res.assignSocket(socket as Socket);
  res.on("finish", () => process.nextTick(() => res.emit("close"))); // as a server does
  const answer = new Promise<ChatAnswer>((resolve, reject) => {
    res.on("close", () => {
      if (!res.writableFinished) return reject(networkError("ECONNRESET"));
      const { status, headers, text } = parseRaw(Buffer.concat(pieces).toString());
      const get = (name: string) => headers[name.toLowerCase()] ?? null;
      const json = async () => JSON.parse(text);
      resolve({ status, headers: { get }, text: async () => text, json });
    });
  });
  return { res, answer };
}

export interface MemoryGateway {
  readonly catalog: Catalog;
  /** Lines of the access log, and for the operator. */
  readonly access: Record<string, unknown>[];
  readonly diagnostics: Record<string, unknown>[];
  /** The access log's line of a request that is over. */
  accessOf(requestId: string): Record<string, unknown>;
  /** What requests came to, in the order of their ends. */
  readonly settled: Settlement[];
  /** A chat request; a string is sent as it is. */
  chat(body: unknown, headers?: Record<string, string>): Promise<ChatAnswer>;
}

function createRequest(body: Buffer, headers: Record<string, string>): IncomingMessage {
  const all = lowerCased({ host: "gateway.test", "content-type": "application/json", ...headers });
  const head = {
    method: "POST",
    url: "/v1/chat/completions",
    httpVersion: "1.1",
    headers: { ...all, "content-length": String(body.length) },
    rawHeaders: Object.entries(all).flat(),
    complete: true,
    socket: Object.assign(new EventEmitter(), { destroyed: false }),
  };
  return Object.assign(Readable.from([body]), head) as unknown as IncomingMessage;
}

/** As a log has it: without undefined fields. */
const asLine = (record: object): Record<string, unknown> => JSON.parse(JSON.stringify(record));

/**
 * The gateway of a configuration. It needs no closing. `time`: parts of another clock. `observe`: what
 * hears of its requests.
 */
export function createMemoryGateway(
  settings: object,
  time: Partial<Clock> = {},
  observe?: Observe,
): MemoryGateway {
  const clock = { ...unhurriedClock, ...time };
  const config = checkConfig(settings);
  const access: Record<string, unknown>[] = [];
  const diagnostics: Record<string, unknown>[] = [];
  const settled: Settlement[] = [];
  const diagnose = (event: object) => {
    diagnostics.push(asLine(event));
  };
  const jsonExcess = installed.filled(slots.jsonExcess);
  const catalog = createCatalog(config, {
    dialects: formats.dialects,
    transport: memoryTransport,
    reach: (_destination, transport) => transport,
    redact: installed.filled(slots.redact)?.(config, installed),
    jsonExcess,
    mediaTokens: installed.filled(slots.mediaTokens),
    capable: installed.filled(slots.capable)!(installed),
    createBreaker: breakersBy(clock),
    breakers: new Map(),
    fingerprint: createFingerprint(() => Buffer.from("5ec4e7".repeat(8), "hex")),
  });
  const keyring = createKeyring(config, NO_CREATED_KEYS, clock.now);
  const ledger: Ledger = {
    open: () => ({
      opened: Promise.resolve(),
      settle: async (settlement) => {
        settled.push(settlement);
      },
    }),
    fault: () => null,
  };
  const aroundLeft = aroundStreams(createLeftStreams(clock), () => config);
  const snapshot = { config, keyring, catalog, guard: () => false };
  const handle = createChatHandlers(() => snapshot, {
    limiter: createLimiter(clock.monotonic),
    ledger,
    diagnose,
    clock,
    jsonExcess,
    complete: aroundBreaks(aroundLeft(aroundRoom(completeWithFallback))),
  });
  const log = createResponseLog((record, exchange) => {
    access.push(asLine(record));
    for (const observer of exchange?.observers ?? [])
      observer.responded?.("/v1/chat/completions", record);
  }, clock);
  const connections = createConnections(clock, (_, exchange, status) =>
    log.ended(exchange, status),
  );
  const routes = {
    "/v1/chat/completions": { POST: handle(createChatCompletions(requestCheck(installed))) },
  };
  const hooks = {
    renderError,
    failed: internalErrorReporter(diagnose),
  };
  return {
    catalog,
    access,
    diagnostics,
    accessOf(id) {
      const line = access.find((record) => record["request_id"] === id);
      assert.ok(line, `there is no line of ${id} in the access log`);
      return line;
    },
    settled,
    async chat(body, headers = {}) {
      const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
      const req = createRequest(bytes, { authorization: `Bearer ${KEY}`, ...headers });
      const { res, answer } = collected(req);
      const exchange = connections.begin(req, res);
      exchange.observers = [observe?.(exchange) ?? []].flat();
      answerRequest(exchange, routes, hooks);
      return answer;
    },
  };
}
