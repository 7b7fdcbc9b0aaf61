// The admin listener: what the gateway is doing, for its operator. On a loopback address of its own, without keys. Where several
// processes serve, each reports and the answers are of all.
import type { Books } from "./accounting/books.ts";
import type { Keyring } from "./accounts/keys.ts";
import type { Limiter } from "./accounts/limiter.ts";
import type { Config } from "./config/schema.ts";
import type { Diagnose } from "./http/log.ts";
import { sendJson } from "./http/reply.ts";
import type { Exchange } from "./http/router.ts";
import { createServer } from "./http/server.ts";
import { render, type Samples } from "./metrics.ts";
import { BREAKER_STATES } from "./routing/breaker.ts";
import type { Catalog } from "./routing/catalog.ts";

/** What one process says of itself. */
export interface Report { readonly status: ReturnType<typeof statusOf>; readonly samples: Samples }
/** Since when the configuration is in force, ISO 8601; faults, null while there is none; how late the event loop has been since this was
 * last asked, in seconds, by quantile. */
interface View {
  readonly config: Config; readonly catalog: Catalog; readonly keyring: Keyring; readonly loadedAt: string; readonly draining: boolean; readonly inFlight: number;
  readonly books: ReturnType<Books["status"]>; readonly limitsFault: string | null; readonly loopDelay: { readonly [quantile: string]: number };
}

/** Models with breakers, aliases with candidates and why, limits, books; what statusOfAll makes an answer of. */
export function statusOf({ config, catalog, keyring, limitsFault, books: { spendFault, syncFault, lagMs }, loadedAt, draining, inFlight, loopDelay }: View) {
  const models = [...catalog.models.values()].map(({ name, provider, upstreamModel, status }) => {
    const { state, failures, retryMs, lastFault } = status();
    return { model: name, provider: provider.name, upstream_model: upstreamModel, breaker: { state, failures, retry_ms: Math.ceil(retryMs), last_fault: lastFault } };
  });
  const aliases = [...catalog.ranking].map(([alias, candidates]) => ({ alias, enabled: config.aliases.get(alias)?.enabled ?? false, candidates }));
  const accounts = [...keyring.accounts].map(([account, rpm]) => ({ account, rpm, used: 0 }));
  return {
    status: draining ? "draining" : "serving", config_loaded_at: loadedAt, in_flight: inFlight, workers: 1, event_loop_delay: loopDelay, models, aliases,
    limits: { store: config.limits.store === "memory" ? "memory" : "redis", fault: limitsFault, accounts },
    spend: { fault: spendFault }, usage: { store: config.usage.store === "file" ? "file" : "postgres", fault: syncFault, lag_seconds: lagMs / 1000 },
  };
}

/** `used` absent: nobody asks for the accounts, of which there may be many. Of several processes: in flight are those of all, a breaker is as open as the one that is most, a fault is that of any. */
function statusOfAll(reports: readonly Report[], used?: Limiter["used"]) {
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
    limits: { ...first.limits, fault: fault("limits"), accounts: used ? first.limits.accounts.map((each) => ({ ...each, used: used(`account ${each.account}`) })) : [] },
    spend: { fault: fault("spend") }, usage: { ...first.usage, fault: fault("usage"), lag_seconds: Math.min(...all.map(({ usage }) => usage.lag_seconds)) },
  };
}

/** `reports` are of all processes that serve, at least one; `used` is the limiter's. */
export function createAdmin(config: Config, reports: () => readonly Report[] | Promise<readonly Report[]>, used: Limiter["used"], diagnose: Diagnose, failed: (exchange: Exchange, error: unknown) => void) {
  async function metrics(): Promise<string> {
    const all = await reports();
    return render(all.map(({ samples }) => samples), statusOfAll(all));
  }
  const routes = {
    "/status": { GET: async ({ res }: Exchange) => sendJson(res, 200, statusOfAll(await reports(), used), { "Cache-Control": "no-store" }) },
    "/metrics": { GET: async ({ res }: Exchange) => void res.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8").end(await metrics()) },
  };
  const options = { receive_ms: config.server.receive_ms, host: "127.0.0.1", port: 8081, ...config.admin };
  const server = createServer(routes, options, { now: Date.now, access: () => undefined, failed });
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
    close: () => server.close(0),
  };
}
