// The gateway put together: a configuration and the extensions that it needs in, an HTTP server
// out. Which path leads to which handler stands here.
import { createLimiter, type Limiter } from "./accounts/limiter.ts";
import { createChatHandlers } from "./chat/handler.ts";
import { systemClock, type Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Diagnose } from "./diagnose.ts";
import { errorRenderer, internalErrorReporter, shuttingDown } from "./error-responses.ts";
import { install } from "./extension/install.ts";
import type { Extension, Installed } from "./extension/installer.ts";
import { requestCheck, slots, type HostSources, type Report } from "./extension/places.ts";
import { startProcess } from "./extension/process-parts.ts";
import type { Handler, Routes } from "./http/exchange.ts";
import { sendJson } from "./http/responses.ts";
import { match } from "./http/router.ts";
import { createServer, type Server } from "./http/server.ts";
import { ledgerUnavailable, type Ledger } from "./ledger/ledger.ts";
import { createLogs, type LogTargets } from "./logs.ts";
import { createChatCompletions } from "./chat/chat-completions.ts";
import { ApiError } from "./openai/errors.ts";
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
  const { clock = systemClock } = options;
  const installation = install(options.extensions ?? []);
  const logs = createLogs(options, clock, installation);
  const { diagnose } = logs;
  const limiter = options.sharedLimiter ?? createLimiter(clock.monotonic);
  const current = (): Snapshot => snapshots.current();
  const services = { config, current, installed: installation, clock, diagnose, limiter };
  const parts = startProcess(installation, services);
  const transport = options.transport ?? parts.transport ?? fetchTransport();
  const readKey = installation.filled(slots.fingerprintKey);
  const fingerprint = createFingerprint(readKey && (() => readKey(config.data_dir, diagnose)));
  const secure = installation.filled(slots.secure)?.(config, "server");
  const snapshots = createSnapshots(config, { ...services, ...parts, transport, fingerprint });
  return { clock, installed: installation as Installed, logs, parts, secure, snapshots };
}

export function createGateway(initial: Config, options: GatewayOptions = {}): Gateway {
  const assembly = assemble(initial, options);
  const { clock, installed, logs, parts, secure, snapshots } = assembly;
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
    droppedLines: logs.dropped(),
    extensions: parts.report(),
  });
  const sources: HostSources = {
    config: initial,
    current: () => snapshots.current().config,
    installed,
    clock,
    diagnose,
    reports: async () => [report()],
    droppedLines: () => ({ access: 0, diagnostics: 0 }),
    accounts: () => snapshots.current().keyring.accounts(),
    used: parts.limiter.used,
  };
  const host = options.sharedLimiter ? undefined : installed.filled(slots.host)?.(sources);

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
      const installation = install(loaded);
      const prepared = [
        secure?.reload(config),
        parts.reload(config, installation),
        snapshots.prepare(config, installation),
      ];
      for (const apply of prepared) apply?.();
    },
    close,
    drain: () => close(snapshots.current().config.server.drain_ms),
  };
}

/** `inForce` throws while the gateway is stopping. */
function createPublicServer(config: Config, assembly: Assembly, inForce: () => Snapshot): Server {
  const { clock, installed, logs, parts, secure, snapshots } = assembly;
  const { access, diagnose } = logs;
  const jsonExcess = installed.filled(slots.jsonExcess);
  const handle = createChatHandlers(inForce, { ...parts, clock, diagnose, jsonExcess });
  const apis = [createChatCompletions(requestCheck(installed)), ...parts.apis];
  const routes: Routes = {
    ...Object.fromEntries(apis.map((api) => [api.path, { POST: handle(api) }])),
    ...publicRoutes(inForce, parts.ledger),
    ...parts.routes,
  };
  const boundPipeline = installed.filled(slots.boundPipeline);
  const capacity = installed.filled(slots.capacity)?.(config);
  const options = { ...config.server, secure, boundPipeline, capacity };
  return createServer(routes, options, {
    clock,
    observe: parts.observe,
    access(record, exchange) {
      access.write(record);
      const route = match(routes, record.path ?? "")?.pattern ?? "other";
      const observers = exchange?.observers ?? parts.observe(undefined);
      for (const observer of observers) observer.responded?.(route, record);
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
