// What extensions add to the gateway of one process: made in their order, and opened, reloaded and
// closed together.
import type { ClientApi } from "../chat/client-api.ts";
import type { Config } from "../config.ts";
import type { Exchange, Handler, Routes } from "../http/exchange.ts";
import { noLedger } from "../ledger/ledger.ts";
import type { Observers } from "../observer.ts";
import { completeWithFallback, type Complete } from "../routing/fallback.ts";
import type { Installation, Step } from "./install.ts";
import type {
  Around,
  Create,
  GatewayContext,
  Installed,
  Observe,
  ProcessEvents,
  Slot,
} from "./installer.ts";
import { slots } from "./places.ts";

/** What the contexts of all extensions have in common. */
type Services = Omit<GatewayContext, "on">;

/** What an extension has made for a place, as Step.place has it. */
interface Part {
  readonly place: string;
  readonly part: unknown;
}

/** A listener of an event of the process. */
interface Heard {
  readonly extension: string;
  readonly event: keyof ProcessEvents;
  readonly listener: unknown;
}

/** Creates the parts of all extensions. `services`: what they have in common. */
export function startProcess(installation: Installation, services: Services) {
  const heard: Heard[] = [];
  const parts = createParts(installation.steps, services, heard);
  const started = new Set(installation.names);
  let observers = partsBelow<Observe>("observe");
  let complete = wrapped(installation);

  /** The parts of the places whose names begin like this, after the rest of these names. */
  function partsBelow<T>(prefix: string): (readonly [name: string, part: T])[] {
    const found = parts.filter(({ place }) => place.startsWith(prefix));
    return found.map(({ place, part }) => [place.slice(prefix.length), part as T]);
  }
  const partIn = <T>({ name }: Slot<Create<T>>) =>
    parts.find(({ place }) => place === name)?.part as T | undefined;

  /** The completion of a request, with what these extensions put around it. */
  function wrapped({ aroundOrder }: Installed): Complete {
    const arounds = new Map(partsBelow<Around>("around "));
    return aroundOrder().reduceRight<Complete>(
      (inner, extension) => arounds.get(extension)!(inner),
      completeWithFallback,
    );
  }

  /** The listeners of one event, in the order in which they were added. */
  const listenersOf = <E extends keyof ProcessEvents>(wanted: E) =>
    heard
      .filter(({ event }) => event === wanted)
      .map(({ extension, listener }) => [extension, listener as ProcessEvents[E]] as const);

  return {
    /** An extension's, else the one that keeps nothing. */
    ledger: partIn(slots.ledger) ?? noLedger,
    /** An extension's, else that of the context. */
    limiter: partIn(slots.limiter) ?? services.limiter,
    /** Undefined: no extension brings one. */
    transport: partIn(slots.transport),
    /** Undefined: no extension has budgets. */
    hold: partIn(slots.hold),
    /** Formats of clients beside chat completions. */
    apis: partsBelow<ClientApi>(slots.clientApi.prefix).map(([, api]) => api),
    /** Completes a request, with what extensions put around it. */
    complete: ((...request) => complete(...request)) as Complete,
    /** As Installer.route, of all. */
    routes: routesOf(partsBelow("route ")),
    /** The observers of an exchange; undefined: of a request that could not be parsed. */
    observe: (exchange: Exchange | undefined): Observers =>
      observers.flatMap(([, observe]) => observe(exchange) ?? []),
    /** By the names of the extensions: data that can be sent to another process. */
    report: (): Readonly<Record<string, unknown>> =>
      Object.fromEntries(listenersOf("report").map(([name, report]) => [name, report()])),
    /** Opens the parts in their order, one after the other. Rejects if one cannot start. */
    async open(): Promise<void> {
      for (const [, open] of listenersOf("open")) await open();
    },
    /**
     * As ProcessEvents.reload, for all. What wraps or observes requests in extensions that another
     * configuration needs for the first time is added; their routes and slots wait for a restart.
     */
    reload(config: Config, loaded: Installation): () => void {
      const prepared = listenersOf("reload").map(([, reload]) => reload(config));
      const newSteps = loaded.steps.filter(({ extension }) => !started.has(extension));
      const added = createParts(newSteps, { ...services, config }, heard);
      return () => {
        for (const apply of prepared) apply();
        for (const { extension } of newSteps) started.add(extension);
        parts.push(...added);
        observers = partsBelow("observe");
        complete = wrapped(loaded);
      };
    },
    /** Closes the parts in the reverse of their order, one after the other. */
    async close(): Promise<void> {
      for (const [, close] of listenersOf("close").toReversed()) await close();
    },
  };
}

/** Makes what these steps make, in their order. Adds their listeners to `heard`. */
const createParts = (steps: readonly Step[], services: Services, heard: Heard[]): Part[] =>
  steps.flatMap(({ extension, place, create }) => {
    const on: GatewayContext["on"] = (event, listener) =>
      heard.push({ extension, event, listener });
    const part = (create as Create<unknown>)({ ...services, on });
    return part === undefined ? [] : [{ place, part }];
  });

/** Handlers by path, then by method. `handlers`: by both, as `GET /path`. */
function routesOf(handlers: readonly (readonly [name: string, handler: Handler])[]): Routes {
  const routes: Record<string, Record<string, Handler>> = {};
  for (const [name, handler] of handlers) {
    const [method = "", path = ""] = name.split(" ");
    routes[path] = { ...routes[path], [method]: handler };
  }
  return routes;
}
