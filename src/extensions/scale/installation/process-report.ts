// The report of one process that serves, as this extension makes it: data that can be sent to
// another process.
import type { BreakerStatus } from "../../../core/routing/breaker.ts";
import type { RankedModel } from "../../../core/routing/model.ts";
import type { Snapshot } from "../../../core/chat/context.ts";
import type { Delays } from "./loop-delay.ts";

export interface ProcessReport {
  /** How late the event loop was since the report before. */
  readonly delays: Delays;
  /** All of the configuration in force, in its order. */
  readonly models: readonly ModelReport[];
  /** By alias, enabled or not: its models with their ranks. */
  readonly ranking: ReadonlyMap<string, readonly RankedModel[]>;
  /** When the configuration in force was loaded, in ISO 8601. */
  readonly loadedAt: string;
}

export interface ModelReport {
  /** Its canonical name. */
  readonly model: string;
  /** The name of the provider in the configuration. */
  readonly provider: string;
  /** The provider's name for the model. */
  readonly upstream_model: string;
  /** As it is in this process. Each process has its own. */
  readonly breaker: BreakerStatus;
}

export function processReport(
  { catalog, config, loadedAt }: Snapshot,
  delays: Delays,
): ProcessReport {
  const models = [...catalog.models.values()].map(({ name, provider, upstreamModel, status }) => ({
    model: name,
    provider: provider.name,
    upstream_model: upstreamModel,
    breaker: status(),
  }));
  const ranking = [...config.aliases].map(([name, alias]) => [name, alias.ranking] as const);
  return { delays, models, ranking: new Map(ranking), loadedAt };
}
