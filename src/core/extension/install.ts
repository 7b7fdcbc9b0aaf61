// Installs extensions: records what each adds, and refuses two that take the same place.
import {
  start,
  type Extension,
  type Installed,
  type Installer,
  type Listener,
  type Moment,
  type Slot,
  type SlotFamily,
} from "./installer.ts";

/** One thing that an extension makes in each process. */
export interface Step {
  /** The name of the extension. */
  readonly extension: string;
  /** What it is for: the name of a slot, `around NAME`, `route GET /path`, `observe`. */
  readonly place: string;
  /** A Create: called once in each process. */
  readonly create: unknown;
}

/** What is installed, with what is to be made in each process. */
export interface Installation extends Installed {
  /** In the order of the extensions. */
  readonly steps: readonly Step[];
}

/** Installs all of these. Throws a TypeError that names two extensions that collide. */
export function install(extensions: readonly Extension[]): Installation {
  const taken = new Map<string, { readonly extension: string; readonly value: unknown }>();
  const listeners = new Map<string, Listener<unknown>[]>();
  const steps: Step[] = [];

  function installerOf(extension: string): Installer {
    const step = (place: string, create: unknown) => steps.push({ extension, place, create });

    /** Takes a place that only one extension may have. */
    function take(place: string, value: unknown, isCreated: boolean): void {
      const owner = taken.get(place)?.extension;
      if (owner !== undefined)
        throw new TypeError(`the extensions ${owner} and ${extension} both take ${place}`);
      taken.set(place, { extension, value });
      if (isCreated) step(place, value);
    }

    return {
      fill: ({ name, isCreated }, value) => take(name, value, isCreated),
      around: (create) => take(`around ${extension}`, create, true),
      route: (method, path, create) => take(`route ${method} ${path}`, create, true),
      observe: (create) => step("observe", create),
      on<F>({ name }: Moment<F>, call: F) {
        if (name === start.name) step(name, call);
        listeners.set(name, [...(listeners.get(name) ?? []), { extension, call }]);
      },
    };
  }

  for (const extension of extensions) extension.install(installerOf(extension.name));
  const names = extensions.map(({ name }) => name);
  return {
    names,
    filled: <T>({ name }: Slot<T>) => taken.get(name)?.value as T | undefined,
    family: <T>({ prefix }: SlotFamily<T>) =>
      new Map(
        [...taken]
          .filter(([name]) => name.startsWith(prefix))
          .map(([name, { value }]) => [name.slice(prefix.length), value as T]),
      ),
    listeners: <F>({ name }: Moment<F>) => (listeners.get(name) ?? []) as Listener<F>[],
    aroundOrder: () => names.filter((name) => taken.has(`around ${name}`)),
    steps,
  };
}
