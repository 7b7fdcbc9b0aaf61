// The gateway put together: a configuration and the extensions that it needs in, an HTTP server out. Which path leads to which handler
// stands here.
import { monitorEventLoopDelay } from "node:perf_hooks";
import {
  createKeyring,
  NO_CREATED_KEYS,
  type CreatedKeys,
  type Keyring,
} from "./accounts/keyring.ts";
import { createLimiter, type Limiter } from "./accounts/limiter.ts";
import { createChatHandler } from "./chat/handler.ts";
import { modelRoutes } from "./chat/models.ts";
import { systemClock, type Clock } from "./clock.ts";
import { demoKeyIssues } from "./config/check.ts";
import { changedFixedSettings } from "./config/fixed.ts";
import type { Config } from "./config/schema.ts";
import type { Diagnose } from "./diagnose.ts";
import type { Extension, GatewayPart, RunningGateway } from "./extension/extension.ts";
import { createHost, secureListener } from "./extension/host.ts";
import type { Report } from "./extension/report.ts";
import {
  internalErrorReporter,
  renderError,
  shuttingDown,
} from "./error-responses.ts";
import type { AccessLog } from "./http/access-record.ts";
import { dropEvents } from "./http/dropped-lines.ts";
import type { Routes } from "./http/exchange.ts";
import { createLineLog, type LineLog, type LineSink, type WriteLines } from "./http/line-log.ts";
import { sendJson } from "./http/responses.ts";
import { match } from "./http/router.ts";
import { createServer } from "./http/server.ts";
import { ledgerUnavailable, noLedger, type Ledger } from "./ledger/ledger.ts";
import { joinObservers, type Observer } from "./observer.ts";
import { ApiError } from "./openai/errors.ts";
import { openapiText } from "./openai/openapi.ts";
import { createCatalog, createMemory, type Catalog } from "./routing/catalog.ts";
import { createFingerprint } from "./routing/fingerprint.ts";
import { createLeftStreams } from "./routing/left-streams.ts";
import { ValidationError } from "./schema/checker.ts";
import { fetchTransport } from "./upstream/fetch.ts";
import type { Transport } from "./upstream/transport.ts";

export interface GatewayOptions {
  /** Absent: none. The gateway then keeps no books and has no admin listener. */
  readonly extensions?: readonly Extension[];
  /** Absent: the machine's. */
  readonly clock?: Clock;
  /** Takes the place of every other transport to providers over the network. */
  readonly transport?: Transport;
  /** Where the access log goes. Absent: nowhere. */
  readonly accessLog?: WriteLines | LineSink;
  /** Where diagnostics go. Absent: nowhere. */
  readonly diagnostics?: WriteLines | LineSink;
  /** Set in one of several processes: this limiter admits, and what exists once in the installation is elsewhere. Absent: there is only
   * this process. */
  readonly sharedLimiter?: Limiter;
}

export interface Gateway extends RunningGateway {
  report(): Report;
  /** Takes no new connections, lets requests in flight run for at most `drainMs` (0), then ends them with an error. */
  close(drainMs?: number): Promise<void>;
}

/** What a configuration decides: replaced as one. A request keeps what it began with. */
interface Snapshot {
  readonly config: Config;
  readonly keyring: Keyring;
  readonly catalog: Catalog;
  /** In ISO 8601. */
  readonly loadedAt: string;
}

type NamedPart = GatewayPart & { readonly name: string };

/** What the first extension says that says anything. */
const firstOf = <K extends keyof GatewayPart>(parts: readonly NamedPart[], member: K) =>
  parts.find((part) => part[member] !== undefined)?.[member];

export function createGateway(initial: Config, options: GatewayOptions = {}): Gateway {
  const { extensions = [], clock = systemClock } = options;
  const observations = extensions.flatMap(({ name, observe }) =>
    observe ? [{ name, ...observe() }] : [],
  );
  const observer = joinObservers(observations.map((observation) => observation.observer));
  const logs = createLogs(options, clock, observer);
  const { diagnose } = logs;
  const ownLimiter = options.sharedLimiter ?? createLimiter(clock.monotonic);
  const context = { config: initial, extensions, clock, diagnose, limiter: ownLimiter };
  const parts = extensions.flatMap(({ name, start }): NamedPart[] =>
    start ? [{ name, ...start(context) }] : [],
  );
  const ledger = firstOf(parts, "ledger") ?? noLedger;
  const limiter = firstOf(parts, "limiter") ?? ownLimiter;
  const transport =
    options.transport ?? firstOf(parts, "transport") ?? fetchTransport();
  const secure = secureListener(initial, "server", extensions);
  const memory = createMemory(createFingerprint(initial.data_dir, diagnose));
  const leftStreams = createLeftStreams();
  const loop = createLoopDelay();
  let draining = false;

  const keySources = extensions.flatMap(({ openKeys }) =>
    openKeys ? [openKeys({ dataDir: initial.data_dir, changed: renewKeyring, diagnose })] : [],
  );
  let current = snapshotOf(initial);

  function createdKeys(): CreatedKeys {
    return keySources[0]?.current() ?? NO_CREATED_KEYS;
  }
  function renewKeyring(): void {
    current = { ...current, keyring: createKeyring(current.config, createdKeys(), clock.now) };
  }
  function snapshotOf(config: Config): Snapshot {
    return {
      config,
      keyring: createKeyring(config, createdKeys(), clock.now),
      catalog: createCatalog(config, transport, memory, clock.monotonic),
      loadedAt: new Date(clock.now()).toISOString(),
    };
  }
  /** What a request begins with. */
  function inForce(): Snapshot {
    if (draining) throw shuttingDown();
    return current;
  }

  const routes: Routes = {
    "/v1/chat/completions": {
      POST: createChatHandler(inForce, {
        limiter,
        ledger,
        observer,
        now: clock.now,
        leftStreams,
        diagnose,
      }),
    },
    ...modelRoutes(() => current, Math.floor(clock.now() / 1000)),
    ...healthRoutes(inForce, ledger),
    "/openapi.json": { GET: ({ res }) => sendJson(res, 200, openapiText) },
    ...Object.assign({}, ...parts.map((part) => part.routes)),
  };
  const accessed: AccessLog = (record) => {
    logs.access.write(record);
    const path = match(routes, record.path ?? "")?.pattern ?? "other";
    observer.responded?.(path, record);
  };
  const { host: listenHost, port, receive_ms: receiveMs, send_ms: sendMs } = initial.server;
  const server = createServer(
    routes,
    { host: listenHost, port, receiveMs, sendMs, secure },
    { clock, access: accessed, renderError, failed: internalErrorReporter(diagnose) },
  );

  function report(): Report {
    const { catalog, loadedAt } = current;
    const added = [...observations, ...parts].flatMap((part) =>
      part.report ? [[part.name, part.report()] as const] : [],
    );
    return {
      draining,
      inFlight: server.inFlight(),
      loopDelay: loop.take(),
      models: [...catalog.models.values()].map(({ name, provider, upstreamModel, status }) => ({
        model: name,
        provider: provider.name,
        upstream_model: upstreamModel,
        breaker: status(),
      })),
      ranking: catalog.ranking,
      loadedAt,
      extensions: Object.fromEntries(added),
    };
  }

  const host = options.sharedLimiter
    ? undefined
    : createHost({
        config: initial,
        current: () => current.config,
        extensions,
        clock,
        diagnose,
        reports: async () => [report()],
        accounts: () => current.keyring.accounts(),
        used: limiter.used,
      });

  async function close(drainMs = 0): Promise<void> {
    draining = true;
    await server.close(drainMs, shuttingDown());
    leftStreams.close(); // before the ledger closes, which waits for their settlements
    await host?.close();
    loop.stop();
    for (const source of keySources) source.close();
    for (const part of parts.toReversed()) await part.close?.();
    logs.access.flush();
    logs.diagnostics.flush();
  }

  return {
    async listen() {
      for (const part of parts) await part.open?.();
      loop.start();
      try {
        const address = await server.listen();
        await host?.listen(address);
        return address;
      } catch (error) {
        await close();
        throw error;
      }
    },
    announcements: () => host?.announcements() ?? [],
    report,
    diagnose,
    reload(config, loaded) {
      assertFits(config, initial);
      const applied = [secure, ...parts].map((part) => part?.reload?.(config));
      for (const apply of applied) apply?.();
      const changed = changedFixedSettings(initial, config, loaded);
      if (changed.length > 0) {
        const detail = `read at start only: ${changed.join(", ")}`;
        diagnose({ event: "restart_needed", level: "warn", detail });
      }
      current = snapshotOf(config);
      diagnose({ event: "reloaded", level: "info" });
    },
    close,
    drain: () => close(current.config.server.drain_ms),
  };
}

/** Throws a ValidationError if a configuration cannot take the place of `initial`, whose address the gateway listens on. */
export function assertFits(config: Config, initial: Config): void {
  const issues = demoKeyIssues(config, initial.server.host);
  if (issues.length > 0) throw new ValidationError(issues);
}

interface Logs {
  readonly access: LineLog;
  readonly diagnostics: LineLog;
  readonly diagnose: Diagnose;
}

/** The two logs. Lines that they drop are counted, and reported when the reader goes on. */
export function createLogs(
  { accessLog, diagnostics: target }: Pick<GatewayOptions, "accessLog" | "diagnostics">,
  clock: Clock,
  { lineDropped }: Observer,
): Logs {
  const nowhere = () => undefined;
  const count = (log: string): void => lineDropped?.(log as "access" | "diagnostics");
  const diagnose: Diagnose = (event) =>
    diagnostics.write({ time: new Date(clock.now()).toISOString(), ...event });
  const diagnostics = createLineLog(target ?? nowhere, dropEvents("diagnostics", count, diagnose));
  const access = createLineLog(accessLog ?? nowhere, dropEvents("access", count, diagnose));
  return { access, diagnostics, diagnose };
}

/** Whether the process is alive, and whether it can serve. */
function healthRoutes(inForce: () => Snapshot, ledger: Ledger): Routes {
  return {
    "/healthz": { GET: ({ res }) => sendJson(res, 200, { status: "ok" }, NO_STORE) },
    "/readyz": {
      GET({ res }) {
        const models = [...inForce().catalog.models.values()];
        if (ledger.fault() !== null) throw ledgerUnavailable();
        if (models.every((model) => model.status().retryMs > 0))
          throw new ApiError("model_unavailable", "No model can serve at the moment.");
        sendJson(res, 200, { status: "ready" }, NO_STORE);
      },
    },
  };
}

const NO_STORE = { "Cache-Control": "no-store" };

/** How often the event loop's delay is measured, in milliseconds. What is measured is longer by this. */
const LOOK_MS = 20;

/** How late the event loop is. */
function createLoopDelay() {
  const histogram = monitorEventLoopDelay({ resolution: LOOK_MS });
  const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - LOOK_MS / 1000);
  return {
    start: () => histogram.enable(),
    stop: () => histogram.disable(),
    /** In seconds, by quantile, since the last time. */
    take(): Report["loopDelay"] {
      const delays = {
        0.5: late(histogram.percentile(50)),
        0.99: late(histogram.percentile(99)),
        1: late(histogram.max),
      };
      histogram.reset();
      return delays;
    },
  };
}
