// The admin listener: what the gateway is doing, for its operator. On a loopback address of its own, without keys. Where several
// processes serve, each reports and the answers are of all.
import type { Books } from "../books/books.ts";
import { ledgerOf } from "../books/sync.ts";
import type { Keyring } from "../../core/accounts/keys.ts";
import type { Limiter } from "../../core/accounts/limiter.ts";
import { readTls } from "../tls/certificate.ts";
import { hasDemoKey, type Config } from "../../core/config/schema.ts";
import { createGuard } from "./access.ts";
import { costRoutes } from "../books/cost-routes.ts";
import { createLive } from "../console/live.ts";
import { page, tryRoute } from "../console/page.ts";
import { manualRoutes } from "../manual/index.ts";
import { failing } from "../../core/http/log.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import { sendJson, type Routes } from "../../core/http/exchange.ts";
import { createServer } from "../../core/http/server.ts";
import { merge, render, type Samples } from "../metrics/metrics.ts";
import { ApiError } from "../../core/openai/errors.ts";
import { openapiText } from "../../core/openai/openapi.ts";
import { BREAKER_STATES, type Breaker } from "../../core/routing/breaker.ts";
import type { Catalog } from "../../core/routing/catalog.ts";

/** What one process says of itself. Faults are null while there is none; `loopDelay` is how late the event loop has been since this was
 * last asked, in seconds, by quantile. */
export interface Report {
  readonly draining: boolean;
  readonly inFlight: number;
  readonly loopDelay: { readonly [quantile: string]: number };
  readonly samples: Samples;
  readonly models: readonly {
    readonly model: string;
    readonly provider: string;
    readonly upstream_model: string;
    readonly breaker: ReturnType<Breaker["status"]>;
  }[];
  readonly ranking: Catalog["ranking"];
  readonly books: ReturnType<Books["status"]>;
  readonly limitsFault: string | null;
  readonly loadedAt: string;
}

export type Status = ReturnType<typeof statusOf>;
/** What GET /status says. Of several processes: in flight are those of all, a breaker is as open as the one that is most, a fault is that of any. */
function statusOf(config: Config, all: readonly Report[]) {
  const [first] = all;
  if (!first) throw new ApiError("server_overloaded", "No process serves at the moment.");
  const openness = ({ breaker }: Report["models"][number]) => BREAKER_STATES.indexOf(breaker.state);
  const worst = new Map(
    all
      .flatMap(({ models }) => models)
      .sort((a, b) => openness(a) - openness(b))
      .map((each) => [each.model, each]),
  ); // of a name the last one stays
  const models = first.models.map(({ model }) => worst.get(model)!);
  const fault = (of: (report: Report) => string | null) =>
    all.map(of).find((each) => each !== null) ?? null;
  return {
    status: all.some(({ draining }) => draining) ? "draining" : "serving",
    config_loaded_at: first.loadedAt,
    demo_key: hasDemoKey(config),
    workers: all.length,
    in_flight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
    event_loop_delay: Object.fromEntries(
      Object.keys(first.loopDelay).map((quantile) => [
        quantile,
        Math.max(...all.map(({ loopDelay }) => loopDelay[quantile]!)),
      ]),
    ),
    models: models.map(
      ({ breaker: { state, failures, retryMs, lastFault, lastAnswer }, ...model }) => ({
        ...model,
        breaker: {
          state,
          failures,
          retry_ms: Math.ceil(retryMs),
          last_fault: lastFault,
          last_answer: lastAnswer,
        },
      }),
    ),
    aliases: [...first.ranking].map(([alias, candidates]) => ({
      alias,
      enabled: config.aliases.get(alias)?.enabled ?? false,
      candidates: candidates.map(({ model, rank, why }) => ({
        rank,
        model,
        why,
        breaker: worst.get(model)?.breaker.state,
      })),
    })),
    limits: {
      store: config.limits.store === "memory" ? "memory" : "redis",
      fault: fault(({ limitsFault }) => limitsFault),
    },
    spend: { fault: fault(({ books }) => books.spendFault) },
    usage: {
      store: config.usage.store === "file" ? "file" : "postgres",
      fault: fault(({ books }) => books.syncFault),
      lag_seconds: Math.min(...all.map(({ books }) => books.lagMs)) / 1000,
    },
  };
}

/** `config` is read at start; `current` is in force. `reports` are of all processes that serve; `accounts` all that there are, with their
 * limits, of which `used` is the limiter's. */
export function createAdmin(
  config: Config,
  {
    current,
    reports,
    accounts,
    used,
    diagnose,
  }: {
    readonly current: () => Config;
    readonly reports: () => readonly Report[] | Promise<readonly Report[]>;
    readonly accounts: Keyring["accounts"];
    readonly used: Limiter["used"];
    readonly diagnose: Diagnose;
  },
) {
  /** The event loop's delay is that since the last look, be it for whom it may: for the metrics the longest of all since they were last asked for. */
  let delays: Report["loopDelay"] = {};
  async function look() {
    const all = await reports();
    const status = statusOf(current(), all);
    delays = Object.fromEntries(
      Object.entries(status.event_loop_delay).map(([quantile, seconds]) => [
        quantile,
        Math.max(seconds, delays[quantile] ?? 0),
      ]),
    );
    return { status, samples: merge(all.map(({ samples }) => samples)) };
  }
  let publicAddress = "";
  const ledger = ledgerOf(config, Date.now, diagnose);
  const live = createLive(look, () => publicAddress);
  const options = {
    receive_ms: config.server.receive_ms,
    send_ms: config.server.send_ms,
    host: "127.0.0.1",
    port: 8081,
    ...config.admin,
    tls: config.admin?.tls && readTls(config.admin.tls, "admin"),
  };
  const routes: Routes = {
    "/": {
      GET: ({ res }) => {
        res.writeHead(200, page.headers).end(page.text);
      },
    },
    "/events": { GET: live.open },
    "/try": { POST: tryRoute(() => publicAddress) },
    ...costRoutes(ledger),
    ...manualRoutes,
    "/openapi.json": { GET: ({ res }) => sendJson(res, 200, openapiText) },
    "/status": {
      async GET({ res }) {
        const { status } = await look();
        const all = [...accounts()].map(([account, rpm]) => ({
          account,
          rpm,
          used: used(`account ${account}`),
        }));
        sendJson(
          res,
          200,
          { ...status, limits: { ...status.limits, accounts: all } },
          { "Cache-Control": "no-store" },
        );
      },
    },
    "/metrics": {
      async GET({ res }) {
        const { samples, status } = await look();
        res
          .setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
          .end(render(samples, { ...status, event_loop_delay: delays }));
        delays = {};
      },
    },
  };
  const server = createServer(routes, options, {
    now: Date.now,
    access: () => undefined,
    failed: failing(diagnose),
    guard: createGuard(options),
  });
  let address: string | undefined;
  return {
    /** `at`: where the public listener is. Rejects if its own address is taken, unless that is the one that nobody asked for. */
    async listen(at: string): Promise<void> {
      publicAddress = at;
      address = await server.listen().catch((error: NodeJS.ErrnoException) => {
        if (config.admin || error.code !== "EADDRINUSE") throw error;
        diagnose({
          event: "admin_port_taken",
          level: "warn",
          detail: "127.0.0.1:8081 is taken: there is no admin listener; set admin.port",
        });
        return undefined;
      });
    },
    /** Undefined if its default port was taken. */
    address: () => address,
    async close(): Promise<void> {
      live.close();
      await server.close(0);
      await ledger.store.close();
    },
  };
}
