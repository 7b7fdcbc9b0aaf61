// The gateway put together: a configuration and the extensions that it needs in, an HTTP server
// out. Which path leads to which handler stands here.
import { createLimiter, type Limiter } from "./accounts/limiter.ts";
import { createChatHandlers } from "./chat/handler.ts";
import { systemClock, type Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Diagnose } from "./diagnose.ts";
import { errorRenderer, internalErrorReporter, shuttingDown } from "./error-responses.ts";
import type { Extension } from "./extension/extension.ts";
import {
  dialectsIn,
  soleOf,
  requestCheck,
  startObservations,
  startParts,
} from "./extension/gateway-parts.ts";
import type { Report } from "./extension/report.ts";
import type { Handler, Routes } from "./http/exchange.ts";
import { sendJson } from "./http/responses.ts";
import { match } from "./http/router.ts";
import { createServer, type Server } from "./http/server.ts";
import { ledgerUnavailable, type Ledger } from "./ledger/ledger.ts";
import { createLogs, type LogTargets } from "./logs.ts";
import { createChatCompletions } from "./chat/chat-completions.ts";
import { ApiError } from "./openai/errors.ts";
import { createCatalog, createMemory } from "./routing/catalog.ts";
import { createFingerprint } from "./routing/fingerprint.ts";
import type { Snapshot } from "./chat/context.ts";
import { createSnapshots } from "./snapshot.ts";
import { fetchTransport } from "./upstream/fetch.ts";
import type { Transport } from "./upstream/transport.ts";

export interface GatewayOptions extends LogTargets {
  /** Absent: none. The gateway then keeps no books and has no admin listener. */
  readonly extensions?: readonly Extension[];
  /** Absent: the machine's. */
  readonly clock?: Clock;
  /**
   * Takes the place of every other transport to providers over the network. Absent: an extension's,
   * else Node's fetch.
   */
  readonly transport?: Transport;
  /**
   * Set in one of several processes: this limiter admits, and what exists once in the installation
   * is elsewhere. Absent: there is only this process.
   */
  readonly sharedLimiter?: Limiter;
}

/** A gateway that can be started, as program.ts uses it. */
export interface RunningGateway {
  /**
   * Resolves with the address that clients can use. Rejects if a part cannot start or the address
   * cannot be bound; everything is closed then.
   */
  listen(): Promise<string>;
  /** Further text of the start line of the gateway. */
  announcements(): readonly string[];
  /** Tells the operator of events, such as a reload that failed. */
  readonly diagnose: Diagnose;
  /**
   * Puts another configuration in force for requests and connections that come from now on. Throws
   * a ValidationError if it cannot be.
   */
  reload(config: Config, extensions: readonly Extension[]): void;
  /**
   * Takes no new requests, lets those in flight run for as long as server.drain_ms says, and
   * closes.
   */
  drain(): Promise<void>;
}

export interface Gateway extends RunningGateway {
  /** The report of this process at this moment. */
  report(): Report;
  /**
   * Takes no new connections, lets requests in flight run for at most `drainMs` (0), then ends them
   * with an error.
   */
  close(drainMs?: number): Promise<void>;
}

/** The parts of a gateway, before it has a server. */
type Assembly = ReturnType<typeof assemble>;

function assemble(config: Config, options: GatewayOptions) {
  const { extensions = [], clock = systemClock } = options;
  const observations = startObservations(extensions);
  const logs = createLogs(options, clock, observations.observer);
  const { diagnose } = logs;
  const limiter = options.sharedLimiter ?? createLimiter(clock.monotonic);
  const current = (): Snapshot => snapshots.current();
  const parts = startParts({ config, current, extensions, clock, diagnose, limiter });
  const transport = options.transport ?? parts.transport ?? fetchTransport();
  const readKey = soleOf(extensions, "fingerprintKey");
  const fingerprint = createFingerprint(readKey && (() => readKey(config.data_dir, diagnose)));
  const memory = createMemory(fingerprint);
  const secure = soleOf(extensions, "secure")?.(config, "server");
  const snapshots = createSnapshots(config, {
    extensions,
    clock,
    diagnose,
    createCatalog(settings, loaded) {
      return createCatalog(settings, {
        dialects: dialectsIn(loaded),
        transport,
        redact: soleOf(loaded, "createRedact")?.(settings, loaded),
        jsonExcess: soleOf(loaded, "jsonExcess"),
        mediaTokens: soleOf(loaded, "mediaTokens"),
        capable: soleOf(loaded, "capable"),
        createBreaker: soleOf(loaded, "createBreaker"),
        memory,
        clock,
      });
    },
  });
  return { clock, extensions, observations, logs, parts, secure, snapshots };
}

export function createGateway(initial: Config, options: GatewayOptions = {}): Gateway {
  const assembly = assemble(initial, options);
  const { clock, extensions, observations, logs, parts, secure, snapshots } = assembly;
  const { diagnose } = logs;
  let draining = false;

  /** The configuration for a new request. Throws the 503 while the gateway stops. */
  function inForce(): Snapshot {
    if (draining) throw shuttingDown();
    return snapshots.current();
  }
  const server = createPublicServer(initial, assembly, inForce);

  const report = (): Report => ({
    draining,
    inFlight: server.inFlight(),
    extensions: { ...observations.report(), ...parts.report() },
  });
  const sources = {
    config: initial,
    current: () => snapshots.current().config,
    extensions,
    clock,
    diagnose,
    reports: async () => [report()],
    accounts: () => snapshots.current().keyring.accounts(),
    used: parts.limiter.used,
  };
  const host = options.sharedLimiter ? undefined : soleOf(extensions, "createHost")?.(sources);

  async function close(drainMs = 0): Promise<void> {
    draining = true;
    await server.close(drainMs, shuttingDown());
    await host?.close();
    snapshots.close();
    await parts.close();
    logs.flush();
  }

  return {
    async listen() {
      try {
        await parts.open();
        const url = await server.listen();
        await host?.listen(url);
        return url;
      } catch (error) {
        await close();
        throw error;
      }
    },
    announcements: () => host?.announcements() ?? [],
    report,
    diagnose,
    reload(config, loaded) {
      const prepared = [
        secure?.reload(config),
        parts.reload(config),
        snapshots.prepare(config, loaded),
      ];
      for (const apply of prepared) apply?.();
    },
    close,
    drain: () => close(snapshots.current().config.server.drain_ms),
  };
}

/** `inForce` throws while the gateway is stopping. */
function createPublicServer(config: Config, assembly: Assembly, inForce: () => Snapshot): Server {
  const { clock, extensions, observations, logs, parts, secure, snapshots } = assembly;
  const { observer } = observations;
  const { access, diagnose } = logs;
  const { limiter, ledger, complete, trace, hold } = parts;
  const jsonExcess = soleOf(extensions, "jsonExcess");
  const core = { limiter, ledger, observer, clock, diagnose };
  const handle = createChatHandlers(inForce, { ...core, jsonExcess, complete, trace, hold });
  const apis = [createChatCompletions(requestCheck(extensions)), ...parts.apis];
  const routes: Routes = {
    ...Object.fromEntries(apis.map((api) => [api.path, { POST: handle(api) }])),
    ...publicRoutes(inForce, ledger),
    ...parts.routes,
  };
  const { host, port, receive_ms: receiveMs, send_ms: sendMs } = config.server;
  const boundPipeline = soleOf(extensions, "boundPipeline");
  const capacity = soleOf(extensions, "capacity")?.(config);
  const options = { host, port, receiveMs, sendMs, secure, boundPipeline, capacity };
  return createServer(routes, options, {
    clock,
    access(record) {
      access.write(record);
      observer.responded?.(match(routes, record.path ?? "")?.pattern ?? "other", record);
    },
    renderError: errorRenderer(apis),
    failed: internalErrorReporter(diagnose),
    guard: (exchange) => snapshots.current().guard(exchange),
  });
}

/** `inForce` throws while the gateway is stopping. */
const publicRoutes = (inForce: () => Snapshot, ledger: Ledger): Routes => ({
  "/healthz": { GET: alive },
  "/health": { GET: alive },
  "/readyz": {
    GET({ res }) {
      const models = [...inForce().catalog.models.values()];
      if (ledger.fault() !== null) throw ledgerUnavailable();
      if (models.every((model) => model.status().retryMs > 0))
        throw new ApiError("model_unavailable", "No model can serve at the moment.");
      sendJson(res, 200, { status: "ready" }, NO_STORE);
    },
  },
});

const NO_STORE = { "Cache-Control": "no-store" };
const alive: Handler = ({ res }) => sendJson(res, 200, { status: "ok" }, NO_STORE);
