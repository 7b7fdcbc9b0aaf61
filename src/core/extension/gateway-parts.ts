// The parts that extensions add to a gateway, as one: what takes the place of the core's own, and
// what is opened, reloaded and closed with it.
import type { Limiter } from "../accounts/limiter.ts";
import type { ClientApi } from "../chat/client-api.ts";
import type { Config } from "../config.ts";
import type { Routes } from "../http/exchange.ts";
import { noLedger, type Ledger } from "../ledger/ledger.ts";
import { joinObservers, type Observer } from "../observer.ts";
import type { DialectDefinition } from "../providers/dialect.ts";
import { chatRequest, type ChatRequest } from "../openai/request.ts";
import { openaiDialectDefinition } from "../providers/openai/index.ts";
import { completeWithFallback, type Complete } from "../routing/fallback.ts";
import type { Check } from "../schema/checker.ts";
import type { Transport } from "../upstream/transport.ts";
import type { Extension, GatewayContext, GatewayPart } from "./extension.ts";

/**
 * The wire formats by their names: the core's own, and those that extensions bring. One of the same
 * name takes the core's place.
 */
export const dialectsIn = (
  extensions: readonly Extension[],
): ReadonlyMap<string, DialectDefinition> =>
  new Map(
    [openaiDialectDefinition, ...extensions.flatMap(({ dialects = [] }) => dialects)].map(
      (definition) => [definition.name, definition],
    ),
  );

/** The check of a chat completions request, with what these extensions add to it. */
export const requestCheck = (extensions: readonly Extension[]): Check<ChatRequest> =>
  extensions.reduce<Check<ChatRequest>>(
    (check, { extendRequest }) => extendRequest?.(check) ?? check,
    chatRequest,
  );

/**
 * What the one of these brings that has this member. Undefined: none has. Throws a TypeError that
 * names two if two have it: a place that one may take is never taken in silence.
 */
export function soleOf<T extends { readonly name: string }, K extends keyof T>(
  extensions: readonly T[],
  member: K,
): T[K] | undefined {
  const [one, other] = extensions.filter((extension) => extension[member] !== undefined);
  if (one && other)
    throw new TypeError(
      `the extensions ${one.name} and ${other.name} both bring ${String(member)}`,
    );
  return one?.[member];
}

export interface Parts {
  /** An extension's, else the one that keeps nothing. */
  readonly ledger: Ledger;
  /** An extension's, else that of the context. */
  readonly limiter: Limiter;
  /** Undefined: no extension brings one. */
  readonly transport: Transport | undefined;
  /** Undefined: no extension traces. */
  readonly trace: GatewayPart["trace"] | undefined;
  /** Undefined: no extension has budgets. */
  readonly hold: GatewayPart["hold"];
  /** As GatewayPart.apis, of all. */
  readonly apis: readonly ClientApi[];
  /** Completes a request, with what the parts put around it. */
  readonly complete: Complete;
  /** As GatewayPart.routes, of all. Of the same path the last part's counts. */
  readonly routes: Routes;
  /** By the names of the extensions: data that can be sent to another process. */
  report(): Readonly<Record<string, unknown>>;
  /** Opens the parts in their order, one after the other. Rejects if one cannot start. */
  open(): Promise<void>;
  /** As GatewayPart.reload, for all. */
  reload(config: Config): () => void;
  /** Closes the parts in the reverse of their order, one after the other. */
  close(): Promise<void>;
}

/** Starts the parts of all extensions, in their order. */
export function startParts(context: GatewayContext): Parts {
  const parts = context.extensions.flatMap(({ name, start }) =>
    start ? [{ ...start(context), name }] : [],
  );
  return {
    ledger: soleOf(parts, "ledger") ?? noLedger,
    limiter: soleOf(parts, "limiter") ?? context.limiter,
    transport: soleOf(parts, "transport"),
    trace: soleOf(parts, "trace"),
    hold: soleOf(parts, "hold"),
    apis: parts.flatMap(({ apis = [] }) => apis),
    complete: parts.reduceRight<Complete>(
      (complete, { around }) => around?.(complete) ?? complete,
      completeWithFallback,
    ),
    routes: Object.assign({}, ...parts.map(({ routes }) => routes)),
    report: () =>
      Object.fromEntries(parts.flatMap(({ name, report }) => (report ? [[name, report()]] : []))),
    async open() {
      for (const part of parts) await part.open?.();
    },
    reload(config) {
      const prepared = parts.map((part) => part.reload?.(config));
      return () => {
        for (const apply of prepared) apply?.();
      };
    },
    async close() {
      for (const part of parts.toReversed()) await part.close?.();
    },
  };
}

export interface Observations {
  /** All observers as one. */
  readonly observer: Observer;
  /** By the names of the extensions. */
  report(): Readonly<Record<string, unknown>>;
}

/** Starts the observers of all extensions. */
export function startObservations(extensions: readonly Extension[]): Observations {
  const named = extensions.flatMap(({ name, observe }) =>
    observe ? [{ name, observation: observe() }] : [],
  );
  return {
    observer: joinObservers(named.map(({ observation }) => observation.observer)),
    report: () =>
      Object.fromEntries(named.map(({ name, observation }) => [name, observation.report()])),
  };
}
