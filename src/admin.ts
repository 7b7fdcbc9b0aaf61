// The admin listener: what the gateway is doing, for its operator. On a loopback address of its own, without keys. Where several
// processes serve, each reports and the answers are of all.
import type { Books } from "./accounting/books.ts";
import { ledgerOf } from "./accounting/sync.ts";
import type { Keyring } from "./accounts/keys.ts";
import type { Limiter } from "./accounts/limiter.ts";
import { readTls } from "./config/load.ts";
import { hasDemoKey, type Config } from "./config/schema.ts";
import type { Diagnose } from "./http/log.ts";
import { createGuard } from "./console/access.ts";
import { costRoutes } from "./console/costs.ts";
import { createLive } from "./console/live.ts";
import { page } from "./console/page.ts";
import { tryRoute } from "./console/try.ts";
import { sendJson } from "./http/reply.ts";
import type { Exchange, Routes } from "./http/router.ts";
import { createServer } from "./http/server.ts";
import { merge, render, type Samples } from "./metrics.ts";
import { ApiError } from "./protocol/errors.ts";
import { BREAKER_STATES } from "./routing/breaker.ts";
import type { Catalog } from "./routing/catalog.ts";

/** For what it is asked how it is. Each has its own span of the event loop's delay; only "status" needs the accounts, of which there may be many. */
export const LOOKS = ["status", "metrics", "console"] as const;
export type LookFor = (typeof LOOKS)[number];
/** What one process says of itself. */
export interface Report { readonly look: LookFor; readonly status: ReturnType<typeof statusOf>; readonly samples: Samples }
/** Since when the configuration is in force, ISO 8601; faults, null while there is none; how late the event loop has been since this was
 * last asked, in seconds, by quantile. */
interface View {
  readonly look: LookFor;
  readonly config: Config; readonly catalog: Catalog; readonly keyring: Keyring; readonly loadedAt: string; readonly draining: boolean; readonly inFlight: number;
  readonly books: ReturnType<Books["status"]>; readonly limitsFault: string | null; readonly loopDelay: { readonly [quantile: string]: number };
}

/** Models with breakers, aliases with candidates and why, limits, books; what statusOfAll makes an answer of. */
export function statusOf({ look, config, catalog, keyring, limitsFault, books: { spendFault, syncFault, lagMs }, loadedAt, draining, inFlight, loopDelay }: View) {
  const models = [...catalog.models.values()].map(({ name, provider, upstreamModel, status }) => {
    const { state, failures, retryMs, lastFault } = status();
    return { model: name, provider: provider.name, upstream_model: upstreamModel, breaker: { state, failures, retry_ms: Math.ceil(retryMs), last_fault: lastFault } };
  });
  const aliases = [...catalog.ranking].map(([alias, candidates]) => ({ alias, enabled: config.aliases.get(alias)?.enabled ?? false, candidates }));
  const accounts = look === "status" ? [...keyring.accounts].map(([account, rpm]) => ({ account, rpm, used: 0 })) : [];
  return {
    status: draining ? "draining" : "serving", config_loaded_at: loadedAt, in_flight: inFlight, workers: 1, demo_key: hasDemoKey(config), event_loop_delay: loopDelay, models, aliases,
    limits: { store: config.limits.store === "memory" ? "memory" : "redis", fault: limitsFault, accounts },
    spend: { fault: spendFault }, usage: { store: config.usage.store === "file" ? "file" : "postgres", fault: syncFault, lag_seconds: lagMs / 1000 },
  };
}

/** Of several processes: in flight are those of all, a breaker is as open as the one that is most, a fault is that of any. */
function statusOfAll(reports: readonly Report[], used: Limiter["used"]) {
  const all = reports.map(({ status }) => status);
  const first = all[0]!;
  const openness = ({ breaker }: (typeof first.models)[number]) => BREAKER_STATES.indexOf(breaker.state);
  const byOpenness = all.flatMap(({ models }) => models).sort((a, b) => openness(a) - openness(b));
  const worst = new Map(byOpenness.map((each) => [each.model, each])); // of a name the last one stays
  const models = first.models.map(({ model }) => worst.get(model)!);
  const fault = (of: "limits" | "spend" | "usage") => all.find((each) => each[of].fault !== null)?.[of].fault ?? null;
  return {
    ...first, models, status: all.find((each) => each.status === "draining")?.status ?? "serving",
    in_flight: all.reduce((sum, each) => sum + each.in_flight, 0), workers: all.length,
    event_loop_delay: Object.fromEntries(Object.keys(first.event_loop_delay).map((quantile) => [quantile, Math.max(...all.map((each) => each.event_loop_delay[quantile]!))])),
    aliases: first.aliases.map((alias) => ({ ...alias, candidates: alias.candidates.map(({ model, rank, why }) => ({ rank, model, why, breaker: worst.get(model)?.breaker.state })) })),
    limits: { ...first.limits, fault: fault("limits"), accounts: first.limits.accounts.map((each) => ({ ...each, used: used(`account ${each.account}`) })) },
    spend: { fault: fault("spend") }, usage: { ...first.usage, fault: fault("usage"), lag_seconds: Math.min(...all.map(({ usage }) => usage.lag_seconds)) },
  };
}

/** `reports` are of all processes that serve; `used` is the limiter's; `publicAddress` where those listen. */
export interface AdminDeps {
  readonly reports: (look: LookFor) => readonly Report[] | Promise<readonly Report[]>; readonly used: Limiter["used"]; readonly publicAddress: () => string;
  readonly now: () => number; readonly diagnose: Diagnose; readonly failed: (exchange: Exchange, error: unknown) => void;
}

export function createAdmin(config: Config, { reports, used, publicAddress, now, diagnose, failed }: AdminDeps) {
  async function look(at: LookFor) {
    const all = await reports(at);
    if (all.length === 0) throw new ApiError("server_overloaded", "No process serves at the moment.");
    return { status: statusOfAll(all, used), samples: merge(all.map(({ samples }) => samples)) };
  }
  const ledger = ledgerOf(config, now, diagnose);
  const live = createLive(() => look("console"), publicAddress);
  const options = { receive_ms: config.server.receive_ms, host: "127.0.0.1", port: 8081, ...config.admin, tls: config.admin?.tls && readTls(config.admin.tls, "admin") };
  const guard = createGuard(options);
  const routes: Routes = {
    "/": { GET: ({ res }) => void res.writeHead(200, page.headers).end(page.text) },
    "/events": { GET: live.open },
    "/try": { POST: tryRoute(publicAddress) },
    ...costRoutes(ledger),
    "/status": { GET: async ({ res }) => sendJson(res, 200, (await look("status")).status, { "Cache-Control": "no-store" }) },
    "/metrics": {
      GET: async ({ res }) => {
        const { samples, status } = await look("metrics");
        res.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8").end(render(samples, status));
      },
    },
  };
  const server = createServer(routes, options, { now, access: () => undefined, failed, guard });
  let address: string | undefined;
  return {
    /** Rejects if its address is taken, unless that is the one that nobody asked for. */
    async listen(): Promise<void> {
      address = await server.listen().catch((error: NodeJS.ErrnoException) => {
        if (config.admin || error.code !== "EADDRINUSE") throw error;
        diagnose({ event: "admin_port_taken", level: "warn", detail: "127.0.0.1:8081 is taken: there is no admin listener; set admin.port" });
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
