// The admin listener's answers: what the gateway is doing, for its operator. On a loopback address of its own, without keys.
import type { Books } from "./accounting/books.ts";
import type { Keyring } from "./accounts/keys.ts";
import type { Limiter } from "./accounts/limiter.ts";
import type { Config } from "./config/schema.ts";
import { sendJson } from "./http/reply.ts";
import type { Routes } from "./http/router.ts";
import type { Catalog } from "./routing/catalog.ts";

export interface AdminView {
  readonly config: Config; readonly catalog: Catalog; readonly keyring: Keyring; readonly limiter: Limiter;
  readonly books: ReturnType<Books["status"]>; readonly draining: boolean; readonly inFlight: number;
  /** When this configuration came into force, ISO 8601. */
  readonly loadedAt: string;
}

/** GET /status: models with breakers, aliases with candidates and why, limits, books. GET /metrics: what an alarm is set on, for Prometheus. */
export const adminRoutes = (view: () => AdminView): Routes => ({
  "/status": { GET: ({ res }) => sendJson(res, 200, status(view()), { "Cache-Control": "no-store" }) },
  "/metrics": { GET: ({ res }) => void res.writeHead(200, { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" }).end(metrics(view())) },
});

function status({ config, catalog, keyring, limiter, books: { spendFault, syncFault, lagMs }, loadedAt, draining, inFlight }: AdminView): object {
  const models = [...catalog.models.values()].map(({ name, provider, upstreamModel, status }) => {
    const { state, failures, retryMs, lastFault } = status();
    return { model: name, provider: provider.name, upstream_model: upstreamModel, breaker: { state, failures, retry_ms: Math.ceil(retryMs), last_fault: lastFault } };
  });
  const aliases = [...catalog.ranking].map(([alias, ranked]) => ({
    alias,
    enabled: config.aliases.get(alias)?.enabled ?? false,
    candidates: ranked.map(({ model, rank, why }) => ({ rank, model, why, breaker: catalog.models.get(model)?.status().state })),
  }));
  const accounts = [...keyring.accounts].map(([account, rpm]) => ({ account, rpm, used: limiter.used(`account ${account}`) }));
  const state = { spend: { fault: spendFault }, usage: { store: config.usage.store === "file" ? "file" : "postgres", fault: syncFault, lag_seconds: lagMs / 1000 } };
  return { status: draining ? "draining" : "serving", config_loaded_at: loadedAt, in_flight: inFlight, models, aliases, limits: { accounts }, ...state };
}

/** Each with its help text, its type and its value. */
function metrics({ books, inFlight }: AdminView): string {
  const gauges: readonly (readonly [name: string, help: string, value: number])[] = [
    ["in_flight_requests", "Requests that have not had their whole answer.", inFlight],
    ["spend_log_writable", "1 if the spend log can be written; 0: requests are refused.", books.spendFault === null ? 1 : 0],
    ["usage_sync_lag_seconds", "All that was settled longer ago than this is in the usage records.", books.lagMs / 1000],
  ];
  return gauges.map(([name, help, value]) => `# HELP chat_gateway_${name} ${help}\n# TYPE chat_gateway_${name} gauge\nchat_gateway_${name} ${value === Infinity ? "+Inf" : value}\n`).join("");
}
