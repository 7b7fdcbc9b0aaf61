// The interface of an extension, and the five verbs by which it adds to a gateway: fill, around,
// route, observe, on. The core knows extensions only through this file. places.ts has the slots and
// hooks of the core. The configuration and the command line define more of both
// (config/extension.ts, command-line/command.ts), and an extension may define its own for others.
import type { Limiter } from "../accounts/limiter.ts";
import type { Snapshot } from "../chat/context.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Diagnose } from "../diagnose.ts";
import type { Exchange, Handler } from "../http/exchange.ts";
import type { RequestObserver } from "../observer.ts";
import type { Complete } from "../routing/fallback.ts";

/** An optional part of the program, in a folder of its own under src/extensions. */
export interface Extension {
  /** Unique: the name of its folder. Its reports are found by it. */
  readonly name: string;
  /**
   * Adds to the gateway. Only registers: it opens nothing and starts nothing, and may be called
   * several times.
   */
  install(gateway: Installer): void;
}

/** The verbs of an extension. */
export interface Installer {
  /**
   * Takes a place that one extension can have. Throws a TypeError that names both if another
   * extension has it.
   */
  fill<T>(slot: Slot<T>, value: T): void;
  /** Wraps the work of completing each request. `create` is called once in each process. */
  around(create: (context: GatewayContext) => Around, order?: AroundOrder): void;
  /**
   * Serves a path of the public listener, in the form of a key of Routes. `create` is called once
   * in each process.
   */
  route(method: string, path: string, create: (context: GatewayContext) => Handler): void;
  /**
   * Watches requests. `create` is called once in each process, and may return undefined to watch
   * none.
   */
  observe(create: Create<Observe>): void;
  /** Adds a listener to a hook. Any number of extensions can listen to one. */
  on<F>(hook: Hook<F>, listener: F): void;
}

/** Makes a part of the gateway of one process. Undefined: there is none. */
export type Create<T> = (context: GatewayContext) => T | undefined;

/** Wraps the completion of requests, to choose among candidates, change attempts, or retry. */
export type Around = (complete: Complete) => Complete;

export interface AroundOrder {
  /** The names of extensions that it must wrap, if they are loaded. Absent: any order will do. */
  readonly outside?: readonly string[];
}

/**
 * Called when the head of a request was read. `exchange` undefined: it could not be parsed, so the
 * only event is `responded`. Returns the observer of this request; undefined: there is none.
 */
export type Observe = (exchange: Exchange | undefined) => RequestObserver | undefined;

/** A place that one extension can fill with a T. */
export interface Slot<T> {
  /** Unique. Messages name it. */
  readonly name: string;
  /** Whether its value is a Create, which is called in each process that serves. */
  readonly isCreated: boolean;
  /** Always absent: it gives the compiler the type of the value. */
  readonly holds?: (value: T) => T;
}

/** Defines a place. */
export const slot = <T>(name: string): Slot<T> => ({ name, isCreated: false });

/** Defines a place that is filled anew in each process that serves. */
export const createdSlot = <T>(name: string): Slot<Create<T>> => ({ name, isCreated: true });

/** Slots of one kind that are found by a name. */
export interface SlotFamily<T> {
  /** The slot of this name. */
  (name: string): Slot<T>;
  /** The beginning of the names of all its slots. */
  readonly prefix: string;
}

/** Defines slots of a kind, such as "command". `isCreated`: as in Slot. */
export function slotFamily<T>(kind: string, isCreated = false): SlotFamily<T> {
  const prefix = `${kind} `;
  const slotOf = (name: string): Slot<T> => ({ name: `${prefix}${name}`, isCreated });
  return Object.assign(slotOf, { prefix });
}

/** An event at which functions F of any number of extensions are called. */
export interface Hook<F> {
  /** Unique. */
  readonly name: string;
  /** Always absent: it gives the compiler the type of the listeners. */
  readonly calls?: (listener: F) => F;
}

/** Defines a hook. */
export const hook = <F>(name: string): Hook<F> => ({ name });

/** The start of a process that serves, when an extension's parts have been created. */
export const start = hook<(context: GatewayContext) => void>("start");

/** What extensions have installed. */
export interface Installed {
  /** What fills a slot. Undefined: nothing does. */
  filled<T>(slot: Slot<T>): T | undefined;
  /** What fills the slots of a family, by their names. */
  family<T>(family: SlotFamily<T>): ReadonlyMap<string, T>;
  /** The listeners of a hook, in the order of the extensions. */
  listeners<F>(hook: Hook<F>): readonly Listener<F>[];
  /** The extensions that wrap requests, from the outermost to the innermost. */
  aroundOrder(): readonly string[];
}

export interface Listener<F> {
  /** The name of the extension. */
  readonly extension: string;
  readonly call: F;
}

/** The events of one process, as listeners. */
export interface ProcessEvents {
  /** Before the gateway listens, one after the other. Rejects if the extension cannot start. */
  open(): Promise<void>;
  /**
   * Prepares for another configuration, or throws a ValidationError. The returned function puts it
   * in force, and must not fail.
   */
  reload(config: Config): () => void;
  /** Returns data for Report.extensions, which can be sent to another process. */
  report(): unknown;
  /** After the last request has ended, one after the other, the last opened first. */
  close(): void | Promise<void>;
}

/** The services from which an extension creates its parts of the gateway of one process. */
export interface GatewayContext {
  /** The configuration in force at the start. */
  readonly config: Config;
  /** The snapshot in force at this moment. Not to be called before the gateway listens. */
  current(): Snapshot;
  /** What all extensions have installed. */
  readonly installed: Installed;
  /** Use it instead of the system's clocks and timers. */
  readonly clock: Clock;
  /** Reports events to the operator, on standard error. */
  readonly diagnose: Diagnose;
  /** The limiter of this process. */
  readonly limiter: Limiter;
  /** Registers a listener for an event of this process. */
  on<E extends keyof ProcessEvents>(event: E, listener: ProcessEvents[E]): void;
}
