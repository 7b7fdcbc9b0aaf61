// Creates, opens, reloads and closes the parts that extensions add to the gateway of one process.
import type { Config } from "../config.ts";
import type { Exchange, Routes } from "../http/exchange.ts";
import { noLedger } from "../ledger/ledger.ts";
import type { Observers } from "../observer.ts";
import { completeWithFallback, type Complete } from "../routing/fallback.ts";
import type { Installation, CreatedParts } from "./install.ts";
import type { Create, GatewayContext, Installed, ProcessEvents, Slot } from "./installer.ts";
import { slots } from "./places.ts";

/** The members that the contexts of all extensions share. */
type Services = Omit<GatewayContext, "on">;

/** The listeners of each event in their order, each after the name of its extension. */
type Listeners = {
  readonly [E in keyof ProcessEvents]: [extension: string, ProcessEvents[E]][];
};

/** Creates the parts of all extensions. */
export function startProcess(installation: Installation, services: Services) {
  const listeners: Listeners = { open: [], reload: [], report: [], close: [] };
  const created = createParts(installation.steps, services, listeners);
  const { observers, routes } = created;
  const started = new Set(installation.steps.map(({ extension }) => extension));
  let complete = wrapped(installation, created);

  const partIn = <T>({ name }: Slot<Create<T>>) => created.slots.get(name) as T | undefined;
  return {
    /** An extension's, else the one that keeps nothing. */
    ledger: partIn(slots.ledger) ?? noLedger,
    /** An extension's, else that of the context. */
    limiter: partIn(slots.limiter) ?? services.limiter,
    /** Undefined: no extension brings one. */
    transport: partIn(slots.transport),
    /** Undefined: no extension has budgets. */
    hold: partIn(slots.hold),
    /** Undefined: models have no breakers. */
    createBreaker: partIn(slots.breaker),
    /** The client APIs other than chat completions. */
    apis: [...installation.family(slots.clientApi).keys()].flatMap(
      (name) => partIn(slots.clientApi(name)) ?? [],
    ),
    /** Completes a request, with what extensions put around it. */
    complete: ((...request) => complete(...request)) as Complete,
    /** As Installer.route, of all. */
    routes: Object.fromEntries(routes) as Routes,
    /** The observers of an exchange; undefined: of a request that could not be parsed. */
    observe: (exchange: Exchange | undefined): Observers =>
      observers.flatMap((observe) => observe(exchange) ?? []),
    /** By the names of the extensions: data that can be sent to another process. */
    report: (): Readonly<Record<string, unknown>> =>
      Object.fromEntries(listeners.report.map(([name, report]) => [name, report()])),
    /** Opens the parts in their order, one after the other. Rejects if one cannot start. */
    async open(): Promise<void> {
      for (const [, open] of listeners.open) await open();
    },
    /**
     * As ProcessEvents.reload, for all extensions. Adds the wrappers and observers of newly loaded
     * extensions; their routes and slots wait for a restart.
     */
    reload(config: Config, loaded: Installation): () => void {
      const prepared = listeners.reload.map(([, reload]) => reload(config));
      const newSteps = loaded.steps.filter(({ extension }) => !started.has(extension));
      const added = createParts(newSteps, { ...services, config }, listeners);
      return () => {
        for (const apply of prepared) apply();
        for (const { extension } of newSteps) started.add(extension);
        for (const [extension, around] of added.arounds) created.arounds.set(extension, around);
        observers.push(...added.observers);
        complete = wrapped(loaded, created);
      };
    },
    /** Closes the parts in the reverse of their order, one after the other. */
    async close(): Promise<void> {
      for (const [, close] of listeners.close.toReversed()) await close();
    },
  };
}

function createParts(steps: Installation["steps"], services: Services, listeners: Listeners) {
  const parts: CreatedParts = {
    slots: new Map(),
    arounds: new Map(),
    routes: new Map(),
    observers: [],
  };
  for (const { extension, run } of steps) {
    const on: GatewayContext["on"] = (event, listener) =>
      listeners[event].push([extension, listener]);
    run({ ...services, on }, parts);
  }
  return parts;
}

/** The completion of a request, with what these extensions put around it. */
const wrapped = ({ aroundOrder }: Installed, { arounds }: CreatedParts): Complete =>
  aroundOrder().reduceRight<Complete>(
    (complete, extension) => arounds.get(extension)!(complete),
    completeWithFallback,
  );
