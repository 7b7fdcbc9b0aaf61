// The admin listener's answers: what the gateway is doing, for its operator. On a loopback address of its own, without keys.

import type { Limiter } from "./accounts/limiter.ts";
import type { Config } from "./config/schema.ts";
import { sendJson } from "./http/reply.ts";
import type { Routes } from "./http/router.ts";
import type { Catalog } from "./routing/catalog.ts";

export interface AdminView {
  readonly config: Config;
  readonly catalog: Catalog;
  readonly limiter: Limiter;
  /** When this configuration came into force, ISO 8601. */
  readonly loadedAt: string;
  readonly draining: boolean;
  readonly inFlight: number;
}

/** GET /status: models with their breakers, aliases with their candidates in order and why, requests in flight, limits. */
export function adminRoutes(view: () => AdminView): Routes {
  return {
    "/status": { GET: ({ res }) => sendJson(res, 200, status(view()), { "Cache-Control": "no-store" }) },
  };
}

function status({ config, catalog, limiter, loadedAt, draining, inFlight }: AdminView): object {
  const models = [...catalog.models.values()].map(({ name, provider, upstreamModel, status }) => {
    const { state, failures, retryMs, lastFault } = status();
    return { model: name, provider: provider.name, upstream_model: upstreamModel, breaker: { state, failures, retry_ms: Math.ceil(retryMs), last_fault: lastFault } };
  });
  const aliases = [...catalog.ranking].map(([alias, ranked]) => ({
    alias,
    enabled: config.aliases.get(alias)?.enabled ?? false,
    candidates: ranked.map(({ model, rank, why }) => ({ rank, model, why, breaker: catalog.models.get(model)?.status().state })),
  }));
  const used = limiter.used();
  const accounts = [...new Set(config.keys.map(({ account }) => account))].map((account) => {
    const own = config.accounts.get(account)?.rpm;
    return { account, rpm: own === undefined ? config.limits.rpm : own, used: used.get(`account ${account}`) ?? 0 };
  });
  return { status: draining ? "draining" : "serving", config_loaded_at: loadedAt, in_flight: inFlight, models, aliases, limits: { accounts } };
}
