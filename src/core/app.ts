// Assembles a gateway: from a configuration and its extensions to an HTTP server, with the handler
// of each path.
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
  /** Absent: none, so the gateway has no books and no admin listener. */
  readonly extensions?: readonly Extension[];
  /** Absent: the system clock. */
  readonly clock?: Clock;
  /** Sends all requests to providers. Absent: an extension's transport, else Node's fetch. */
  readonly transport?: Transport;
  /**
   * The limiter of a worker process. The parts that exist once in an installation then run in the
   * primary. Absent: this is the only process.
   */
  readonly sharedLimiter?: Limiter;
}

/** The part of a gateway that program.ts uses. */
export interface RunningGateway {
  /**
   * Resolves with the address that clients can use. If a part cannot start or the address cannot be
   * bound, closes everything and rejects.
   */
  listen(): Promise<string>;
  /** Texts that extensions add to the gateway's start line. */
  announcements(): readonly string[];
  /** Reports an event to the operator, such as a reload that failed. */
  readonly diagnose: Diagnose;
  /**
   * Applies another configuration to all later requests and connections. Throws a ValidationError,
   * and changes nothing, if the configuration cannot be applied.
   */
  reload(config: Config, extensions: readonly Extension[]): void;
  /** Accepts no more requests, waits at most server.drain_ms for those in flight, and closes. */
  drain(): Promise<void>;
}

export interface Gateway extends RunningGateway {
  /** The current figures of this process. */
  report(): Report;
  /**
   * Accepts no more connections, waits at most `drainMs` (default 0) for the requests in flight,
   * then ends them with an error.
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
  return { config, clock, installed: installation as Installed, logs, parts, secure, snapshots };
}

export function createGateway(initial: Config, options: GatewayOptions = {}): Gateway {
  const assembly = assemble(initial, options);
  const { clock, installed, logs, parts, secure, snapshots } = assembly;
  const { diagnose } = logs;
  let draining = false;
  /**
   * All extensions that were ever loaded. They stay even if the present configuration needs them no
   * longer: requests in progress may use them, and so may parts that only a restart removes, such
   * as client APIs.
   */
  let known = options.extensions ?? [];

  /** The snapshot for a new request. Throws the 503 while the gateway is stopping. */
  function snapshotForRequest(): Snapshot {
    if (draining) throw shuttingDown();
    return snapshots.current();
  }
  const server = createPublicServer(assembly, snapshotForRequest);

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
      const all = [...new Set([...loaded, ...known])];
      const installation = install(all);
      const prepared = [
        secure?.reload(config),
        parts.reload(config, installation),
        snapshots.prepare(config, installation),
      ];
      for (const apply of prepared) apply?.();
      known = all;
    },
    close,
    drain: () => close(snapshots.current().config.server.drain_ms),
  };
}

function createPublicServer(assembly: Assembly, snapshotForRequest: () => Snapshot): Server {
  const { config, clock, installed, logs, parts, secure, snapshots } = assembly;
  const { access, diagnose } = logs;
  const jsonExcess = installed.filled(slots.jsonExcess);
  const handle = createChatHandlers(snapshotForRequest, { ...parts, clock, diagnose, jsonExcess });
  const apis = [createChatCompletions(requestCheck(installed)), ...parts.apis];
  const routes: Routes = {
    ...Object.fromEntries(apis.map((api) => [api.path, { POST: handle(api) }])),
    ...publicRoutes(snapshotForRequest, parts.ledger),
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

const publicRoutes = (snapshotForRequest: () => Snapshot, ledger: Ledger): Routes => ({
  "/healthz": { GET: alive },
  "/health": { GET: alive },
  "/readyz": {
    GET({ res }) {
      const models = [...snapshotForRequest().catalog.models.values()];
      if (ledger.fault() !== null) throw ledgerUnavailable();
      if (models.every((model) => model.status().retryMs > 0))
        throw new ApiError("model_unavailable", "No model can serve at the moment.");
      sendJson(res, 200, { status: "ready" }, NO_STORE);
    },
  },
});

const NO_STORE = { "Cache-Control": "no-store" };
const alive: Handler = ({ res }) => sendJson(res, 200, { status: "ok" }, NO_STORE);
