// The gateway put together: configuration and the world in, an HTTP server out. Which path leads where stands here.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createBooks } from "../extensions/books/index.ts";
import { createKeyring, createKeyStore, type Caller } from "./accounts/keys.ts";
import { createLimiter, type Limiter } from "./accounts/limiter.ts";
import { createRedisLimiter } from "../extensions/redis/limiter.ts";
import { createAdmin, type Report } from "../extensions/admin/admin.ts";
import { createChatHandler } from "./chat/handler.ts";
import { readTls } from "../extensions/tls/certificate.ts";
import { systemClock } from "./clock.ts";
import { demoKeyFaults, type Config } from "./config/schema.ts";
import { createFetch, fetchTransport, type Fetch, type Transport } from "./upstream/fetch.ts";
import { createLineLog, dropEvents, failing, type LineSink, type WriteLines } from "./http/log.ts";
import type { Diagnose } from "./diagnose.ts";
import { sendJson, type Exchange, type Routes } from "./http/exchange.ts";
import { match } from "./http/router.ts";
import { ledgerUnavailable } from "./ledger/ledger.ts";
import { createServer, stopping, type AccessLog, type Tls } from "./http/server.ts";
import { createMetrics } from "../extensions/metrics/metrics.ts";
import { ValidationError } from "./schema/checker.ts";
import { ApiError } from "./openai/errors.ts";
import { openapiText } from "./openai/openapi.ts";
import { createCatalog, createMemory, noSuchModel, type Catalog } from "./routing/catalog.ts";
import { createFingerprint } from "./routing/fingerprint.ts";
import { createLeftStreams } from "./routing/left-streams.ts";

/** Absent means the real thing, and no log. `now` is the wall clock, `monotonic` that of limiter and breakers, both in milliseconds.
 * `limits`, where this is one of several processes, are those of all; it then has no admin listener of its own. */
export interface GatewayDeps {
  readonly fetch?: Fetch;
  readonly now?: () => number;
  readonly monotonic?: () => number;
  readonly limits?: Limiter;
  readonly accessLog?: WriteLines | LineSink;
  readonly diagnostics?: WriteLines | LineSink;
}

export type Gateway = ReturnType<typeof createGateway>;
/** Settings that are read once, at start. */
const fixedSettings = ({
  server: { host, port, tls, receive_ms, send_ms, workers },
  admin,
  data_dir,
  limits: { store, on_error },
  spend,
  usage,
  upstream,
}: Config) =>
  JSON.stringify([
    host,
    port,
    tls !== undefined,
    receive_ms,
    send_ms,
    workers,
    admin,
    data_dir,
    store,
    on_error,
    spend,
    usage,
    upstream,
  ]);
/** The certificate of a configuration that is to follow `initial`. Throws a ValidationError if it does not fit the address listened on, or its
 * certificate cannot be used. */
export function checkFit(config: Config, { server: { host, tls } }: Config): Tls | undefined {
  const faults = demoKeyFaults(config, host);
  if (faults.length > 0) throw new ValidationError(faults);
  return tls && config.server.tls && readTls(config.server.tls);
}
const LOOK_MS = 20; // how often the event loop's delay is looked at; what is measured is longer by this

export function createGateway(initial: Config, deps: GatewayDeps = {}) {
  const { now = Date.now, monotonic } = deps;
  const metrics = createMetrics();
  const nowhere = () => undefined;
  const diagnose: Diagnose = (event) =>
    diagnostics.write({ time: new Date(now()).toISOString(), ...event });
  const access = createLineLog(
    deps.accessLog ?? nowhere,
    dropEvents("access", metrics.lineDropped, diagnose),
  );
  const diagnostics = createLineLog(
    deps.diagnostics ?? nowhere,
    dropEvents("diagnostics", metrics.lineDropped, diagnose),
  );
  const {
    upstream: { client, max_connections },
    server: { tls },
  } = initial;
  const pooled = createFetch(max_connections ?? undefined);
  let send: Transport;
  if (deps.fetch) send = fetchTransport(deps.fetch);
  else send = client === "fetch" ? fetchTransport(fetch) : pooled;
  const memory = createMemory(createFingerprint(initial.data_dir, diagnose));
  const own = deps.limits ?? createLimiter(monotonic);
  const shared =
    initial.limits.store === "memory"
      ? undefined
      : createRedisLimiter(initial.limits, own, diagnose);
  const limiter = shared ?? own;
  const leftStreams = createLeftStreams();
  const loop = monitorEventLoopDelay({ resolution: LOOK_MS });
  const books = createBooks(initial, { clock: { ...systemClock, now }, diagnose });
  const created = Math.floor(now() / 1000);
  let draining = false;

  const keys = createKeyStore(
    initial.data_dir,
    (stored) => {
      current = { ...current, keyring: createKeyring(current.config, stored, now) };
    },
    ({ message }) =>
      diagnose({
        event: "keys_unreadable",
        level: "error",
        detail: `the keys before it stay in force: ${message}`,
      }),
  );

  /** All that a configuration decides: replaced as one. */
  const build = (config: Config) => ({
    config,
    keyring: createKeyring(config, keys.current(), now),
    catalog: createCatalog(config, send, memory, monotonic),
    loadedAt: new Date(now()).toISOString(),
  });
  let current = build(initial);
  /** What a request begins with. */
  const inForce = () => {
    if (draining) throw stopping();
    return current;
  };

  /** Who asks for the list of models; throws the 401. */
  const listing = ({ req, log }: Exchange) => {
    const { keyring, catalog } = current;
    const caller = keyring.authenticate(req.headers.authorization);
    log.account = caller.account;
    log.key_id = caller.keyId;
    return { catalog, caller };
  };
  const entryOf = (id: string, catalog: Catalog, caller: Caller) => ({
    id,
    object: "model",
    created,
    owned_by: "chat-gateway",
    ...catalog.abilities(id, caller),
  });

  const routes: Routes = {
    "/v1/chat/completions": {
      POST: createChatHandler(inForce, {
        limiter,
        ledger: books,
        observer: metrics,
        now,
        leftStreams,
        diagnose,
      }),
    },
    "/v1/models": {
      GET: (exchange) => {
        const { catalog, caller } = listing(exchange);
        const data = catalog.names(caller).map((id) => entryOf(id, catalog, caller));
        sendJson(exchange.res, 200, { object: "list", data });
      },
    },
    "/v1/models/{id}": {
      GET: (exchange, id) => {
        const { catalog, caller } = listing(exchange);
        if (!catalog.names(caller).includes(id)) throw noSuchModel(id);
        sendJson(exchange.res, 200, entryOf(id, catalog, caller));
      },
    },
    "/healthz": {
      GET: ({ res }) => sendJson(res, 200, { status: "ok" }, { "Cache-Control": "no-store" }),
    },
    "/readyz": {
      GET: ({ res }) => {
        const models = [...inForce().catalog.models.values()];
        if (books.status().spendFault !== null) throw ledgerUnavailable();
        if (models.every((model) => model.status().retryMs > 0))
          throw new ApiError("model_unavailable", "No model can serve at the moment.");
        sendJson(res, 200, { status: "ready" }, { "Cache-Control": "no-store" });
      },
    },
    "/openapi.json": { GET: ({ res }) => sendJson(res, 200, openapiText) },
  };

  const accessed: AccessLog = (record) => {
    access.write(record);
    const path = match(routes, record.path ?? "")?.pattern ?? "other";
    metrics.responded(path, record);
  };
  const server = createServer(
    routes,
    { ...initial.server, tls: tls && readTls(tls) },
    { now, access: accessed, failed: failing(diagnose) },
  );
  const report = (): Report => {
    const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - LOOK_MS / 1000);
    const loopDelay = {
      0.5: late(loop.percentile(50)),
      0.99: late(loop.percentile(99)),
      1: late(loop.max),
    };
    loop.reset();
    const {
      catalog: { models, ranking },
      loadedAt,
    } = current;
    return {
      draining,
      inFlight: server.inFlight(),
      loopDelay,
      samples: metrics.samples,
      ranking,
      books: books.status(),
      limitsFault: shared?.fault() ?? null,
      loadedAt,
      models: [...models.values()].map(({ name, provider, upstreamModel, status }) => ({
        model: name,
        provider: provider.name,
        upstream_model: upstreamModel,
        breaker: status(),
      })),
    };
  };
  const admin = deps.limits
    ? undefined
    : createAdmin(initial, {
        current: () => current.config,
        reports: () => [report()],
        accounts: () => current.keyring.accounts(),
        used: limiter.used,
        diagnose,
      });

  /** Takes no new connections, lets requests in flight run for at most `drainMs`, then ends them with an error. */
  async function close(drainMs = 0): Promise<void> {
    draining = true;
    await server.close(drainMs);
    leftStreams.close(); // before the books close, which wait for their last lines
    await admin?.close();
    shared?.close();
    loop.disable();
    pooled.close();
    keys.close();
    await books.close();
    access.flush();
    diagnostics.flush();
  }

  return {
    /** Resolves with the address that clients can use. Rejects if an address cannot be bound. */
    async listen(): Promise<string> {
      await books.start();
      await shared?.start();
      loop.enable();
      try {
        const address = await server.listen();
        await admin?.listen(address);
        return address;
      } catch (error) {
        await close();
        throw error;
      }
    },
    adminAddress: () => admin?.address(),
    report,
    /** A line for the operator. */
    diagnose,
    /** For requests and connections that come from now on; breakers and limits go on. Throws as checkFit does. */
    reload(config: Config): void {
      const renewed = checkFit(config, initial);
      if (renewed) server.setTls(renewed);
      const detail =
        "host, port, whether there is tls, receive_ms, send_ms, workers, admin, data_dir, limits.store, limits.on_error, spend, usage and upstream are read at start only";
      if (fixedSettings(config) !== fixedSettings(initial))
        diagnose({ event: "restart_needed", level: "warn", detail });
      current = build(config);
      diagnose({ event: "reloaded", level: "info" });
    },
    close,
    /** Closes; requests in flight have as long as the configuration in force says. */
    drain: () => close(current.config.server.drain_ms),
  };
}
