// Installs extensions: records what each adds, and refuses two that take the same place.
import type { Handler } from "../http/exchange.ts";
import {
  start,
  type Around,
  type Create,
  type Extension,
  type GatewayContext,
  type Installed,
  type Installer,
  type Listener,
  type Hook,
  type Observe,
  type Slot,
  type SlotFamily,
} from "./installer.ts";

/** What extensions add to one process, while it is put together. */
export interface CreatedParts {
  /** What was created for slots, by their names. */
  readonly slots: Map<string, unknown>;
  /** By the names of the extensions. */
  readonly arounds: Map<string, Around>;
  /** Handlers by path, then by method. */
  readonly routes: Map<string, Record<string, Handler>>;
  readonly observers: Observe[];
}

/** One thing that an extension does in each process. */
export interface Step {
  /** The name of the extension. */
  readonly extension: string;
  /** Creates it, and adds it to the parts of the process. */
  run(context: GatewayContext, parts: CreatedParts): void;
}

/** What is installed, with what is to be done in each process. */
export interface Installation extends Installed {
  /** In the order of the extensions. */
  readonly steps: readonly Step[];
}

/** Installs all of these. Throws a TypeError that names two extensions that collide. */
export function install(extensions: readonly Extension[]): Installation {
  const owners = new Map<string, string>();
  const values = new Map<string, unknown>();
  const listeners = new Map<string, Listener<unknown>[]>();
  const outside = new Map<string, readonly string[]>();
  const steps: Step[] = [];

  /** Reserves a place for one extension. */
  function claim(place: string, extension: string): void {
    const owner = owners.get(place);
    if (owner !== undefined)
      throw new TypeError(`the extensions ${owner} and ${extension} both take ${place}`);
    owners.set(place, extension);
  }

  function installerOf(extension: string): Installer {
    const step = (run: Step["run"]): number => steps.push({ extension, run });
    return {
      fill<T>(slot: Slot<T>, value: T) {
        claim(slot.name, extension);
        values.set(slot.name, value);
        if (!slot.isCreated) return;
        const create = value as Create<unknown>;
        step((context, { slots }) => slots.set(slot.name, create(context)));
      },
      around(create, { outside: others = [] } = {}) {
        claim(`around of ${extension}`, extension);
        outside.set(extension, others);
        step((context, { arounds }) => arounds.set(extension, create(context)));
      },
      route(method, path, create) {
        claim(`${method} ${path}`, extension);
        step((context, { routes }) => {
          routes.set(path, { ...routes.get(path), [method]: create(context) });
        });
      },
      observe(create) {
        step((context, { observers }) => {
          const observe = create(context);
          if (observe) observers.push(observe);
        });
      },
      on<F>(hook: Hook<F>, call: F) {
        if (hook.name === start.name) step(call as Step["run"]);
        listeners.set(hook.name, [...(listeners.get(hook.name) ?? []), { extension, call }]);
      },
    };
  }

  for (const extension of extensions) extension.install(installerOf(extension.name));
  const order = outermostFirst(outside);
  return {
    filled: <T>({ name }: Slot<T>) => values.get(name) as T | undefined,
    family: <T>({ prefix }: SlotFamily<T>) =>
      new Map(
        [...values]
          .filter(([name]) => name.startsWith(prefix))
          .map(([name, value]) => [name.slice(prefix.length), value as T]),
      ),
    listeners: <F>({ name }: Hook<F>) => (listeners.get(name) ?? []) as Listener<F>[],
    aroundOrder: () => order,
    steps,
  };
}

/**
 * The order in which extensions wrap the completion of a request: their names, from the outermost
 * to the innermost. `outside`: by extension, the names of those that it must wrap, in the order of
 * src/extensions.ts. That order decides the rest. Throws a TypeError if there is a cycle.
 */
function outermostFirst(outside: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const unplaced = new Map(outside);
  const order: string[] = [];
  while (unplaced.size > 0) {
    const wrapped = new Set([...unplaced.values()].flat());
    const next = [...unplaced.keys()].find((name) => !wrapped.has(name));
    if (next === undefined)
      throw new TypeError(
        `each of these extensions must wrap another: ${[...unplaced.keys()].join(", ")}`,
      );
    unplaced.delete(next);
    order.push(next);
  }
  return order;
}
