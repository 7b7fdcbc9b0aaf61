// A simulated network: TCP and Unix sockets between processes. Bytes arrive in order, but delayed
// and in random portions. When a process ends, its sockets are closed, as a kernel does.

import type net from "node:net";
import { Duplex } from "node:stream";
import { setImmediate as realImmediate } from "node:timers";
import type { Period } from "../reconcile/evidence.ts";
import { systemError } from "./disk.ts";
import { countOpen, type Pending, type SimProcess, type Simulator } from "./simulator.ts";

/** A server that listens at `place`, an address or the name of a Unix socket. */
interface Listener {
  readonly owner: SimProcess;
  readonly accept: (socket: SimSocket) => void;
  readonly place: string;
}

/** The faults of connections. */
const noFaults = () => ({
  /** Called when a connection that `client` has opened is reset or stalls. */
  onInterruption(_client: SimProcess, _period: Period): void {},
  /** The share of connections that are reset at a random byte. */
  resets: 0,
  /** The share of connections that stall for some seconds at a random byte. */
  stalls: 0,
});

/** One end of a connection, with the members of net.Socket that Node's HTTP code uses. */
export class SimSocket extends Duplex {
  readonly remoteAddress = "127.0.0.1";
  connecting = false;
  bytesWritten = 0;
  timeout = 0;
  readonly owner: SimProcess;
  readonly #sim: Simulator;
  #peer: SimSocket | undefined;
  /** The latest arrival at the other end, which later bytes must not overtake. */
  #arrival = 0;
  #timer: Pending | undefined;
  /** The connection is reset when this end has written so many bytes. */
  #resetAt = Infinity;
  /** The connection stalls when this end has written so many bytes. */
  #stallAt = Infinity;
  /** When the connection was reset or stalled. Both ends share the list. */
  interruptions: Period[] = [];
  #onInterruption: (period: Period) => void = () => undefined;
  /** Whether this end is closed. Bytes that arrive then are answered by a reset. */
  #closed = false;

  constructor(sim: Simulator, owner: SimProcess, options: Partial<net.TcpNetConnectOpts> = {}) {
    super({ allowHalfOpen: options.allowHalfOpen ?? false });
    this.#sim = sim;
    this.owner = owner;
    const { onread } = options;
    if (onread) this.on("data", (bytes: Buffer) => copyInto(bytes, onread));
    countOpen(owner, "socket", 1);
    owner.atEnd.add(this.#ownerEnded);
  }

  static join(client: SimSocket, server: SimSocket, faults: Network["faults"]): void {
    const { random, between } = client.#sim.random;
    server.interruptions = client.interruptions;
    client.#onInterruption = (period) => {
      client.interruptions.push(period);
      faults.onInterruption(client.owner, period);
    };
    server.#onInterruption = client.#onInterruption;
    client.#peer = server;
    server.#peer = client;
    const end = random() < 0.5 ? client : server;
    if (random() < faults.resets) end.#resetAt = between(1, 3_000);
    if (random() < faults.stalls) end.#stallAt = between(1, 3_000);
  }

  opened(): void {
    this.connecting = false;
    this.emit("connect");
    this.emit("ready");
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const bytes = Buffer.from(chunk);
    this.#whenOpen(() => this.#send(bytes), done);
  }

  override _final(done: () => void): void {
    this.#whenOpen(() => this.#sendEnd(), done);
  }

  #whenOpen(act: () => void, done: () => void): void {
    const both = (): void => {
      act();
      done();
    };
    if (this.connecting) this.once("ready", both);
    else both();
  }

  override _read(): void {
    // Received data is pushed at once.
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.setTimeout(0);
    this.#close(this.readableLength > 0);
    this.#sim.immediate(this.owner, "socket closed", () => done(error));
  }

  resetAndDestroy(): this {
    this.#close(true);
    return this.destroy();
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  setTimeout(ms: number, listener?: () => void): this {
    if (listener) this.once("timeout", listener);
    this.timeout = ms;
    this.#refresh();
    return this;
  }

  setNoDelay = (): this => this;
  setKeepAlive = (): this => this;
  ref = (): this => this;
  unref = (): this => this;

  #refresh(): void {
    if (this.#timer) this.#timer.isCancelled = true;
    this.#timer = undefined;
    if (this.timeout > 0 && !this.destroyed)
      this.#timer = this.#sim.after(this.timeout, this.owner, "socket is idle", () =>
        this.emit("timeout"),
      );
  }

  /** Sends bytes in one or two portions, after the faults that are due. */
  #send(bytes: Buffer): void {
    const { random, between } = this.#sim.random;
    const from = this.bytesWritten;
    this.bytesWritten += bytes.length;
    this.#refresh();
    if (this.bytesWritten >= this.#resetAt) {
      const kept = bytes.subarray(0, Math.max(0, this.#resetAt - from));
      this.#resetAt = Infinity;
      if (kept.length > 0) this.#portion(kept);
      this.#sim.note("the network resets a connection");
      this.#interrupt(0);
      this.#sendReset();
      this.#sim.after(1, this.owner, "a reset", () => this.#reset());
      return;
    }
    if (this.bytesWritten >= this.#stallAt) {
      this.#stallAt = Infinity;
      const ms = between(1_000, 90_000);
      this.#arrival = this.#sim.time() + ms;
      this.#sim.note("the network stalls a connection");
      this.#interrupt(ms);
    }
    const cut = random() < 0.3 && bytes.length > 1 ? between(1, bytes.length - 1) : bytes.length;
    this.#portion(bytes.subarray(0, cut));
    if (cut < bytes.length) this.#portion(bytes.subarray(cut));
  }

  #interrupt(ms: number): void {
    const from = this.#sim.wallClock();
    this.#onInterruption({ from, until: from + ms });
  }

  #portion(bytes: Buffer): void {
    this.#toPeer(`${bytes.length} bytes`, (peer) => peer.#receive(bytes));
  }

  /** Lets something happen at the other end, after everything that was sent before. */
  #toPeer(what: string, act: (peer: SimSocket) => void): void {
    const peer = this.#peer;
    if (!peer) return;
    const { random } = this.#sim.random;
    const latency = random() < 0.02 ? 5 + 40 * random() : 0.05 + 0.5 * random();
    this.#arrival = Math.max(this.#arrival, this.#sim.time() + latency);
    this.#sim.at(this.#arrival, peer.owner, `socket: ${what}`, () => act(peer));
  }

  #receive(bytes: Buffer): void {
    if (this.#closed) {
      this.#sendReset();
      return;
    }
    this.#refresh();
    this.push(bytes);
  }

  #reset(): void {
    if (this.#closed) return;
    this.#release();
    this.destroy(systemError("ECONNRESET", "read"));
  }

  /** Closes this end, and sends an end or a reset to the other one. */
  #close(isReset: boolean): void {
    if (this.#closed) return;
    this.#release();
    if (isReset) this.#sendReset();
    else if (!this.writableFinished) this.#sendEnd();
  }

  #sendEnd(): void {
    this.#toPeer("the end", (peer) => {
      if (!peer.destroyed) peer.push(null);
    });
  }

  #sendReset(): void {
    this.#toPeer("a reset", (peer) => peer.#reset());
  }

  #release(): void {
    this.#closed = true;
    this.owner.atEnd.delete(this.#ownerEnded);
    countOpen(this.owner, "socket", -1);
  }

  /** Called when the process ends. Nothing of the process may run then. */
  readonly #ownerEnded = (): void => {
    this.#close(this.readableLength > 0);
    // Node's HTTP parser keeps the whole simulation in memory until it is closed. It may be at work
    // in this turn of the event loop.
    realImmediate(() => {
      const { parser } = this as { parser?: { remove: () => void; close: () => void } | null };
      parser?.remove();
      parser?.close();
    });
  };
}

/** Passes bytes to a reader that has a buffer of its own (the option `onread`). */
function copyInto(bytes: Buffer, { buffer, callback }: net.OnReadOpts): void {
  const memory = buffer as Buffer;
  for (let at = 0; at < bytes.length; at += memory.length)
    callback(bytes.copy(memory, 0, at, at + memory.length), memory);
}

/** The network of a simulation. */
export type Network = ReturnType<typeof createNetwork>;

/** Creates a network without servers. */
export function createNetwork(sim: Simulator) {
  /** Several workers may listen at one place, and take turns. */
  const listeners = new Map<string, Listener[]>();
  const faults = noFaults();
  /** The port that the workers of a primary process share, by the name of the primary. */
  const shared = new Map<string, number>();
  let port = 20_000;

  function next(place: string): Listener | undefined {
    const [first, ...others] = listeners.get(place) ?? [];
    if (first) listeners.set(place, [...others, first]);
    return first;
  }

  return {
    faults,
    /** Listens until the returned function is called or the owner ends. */
    listen(listener: Listener): () => void {
      const { place, owner } = listener;
      listeners.set(place, [...(listeners.get(place) ?? []), listener]);
      const stop = (): void => {
        owner.atEnd.delete(stop);
        listeners.set(
          place,
          listeners.get(place)!.filter((other) => other !== listener),
        );
      };
      owner.atEnd.add(stop);
      return stop;
    },
    /** The number of processes that listen at a place. */
    listeners: (place: string): number => listeners.get(place)?.length ?? 0,
    /** A free port. All workers of one primary process get the same one. */
    portOf({ name }: SimProcess): number {
      const [first, worker] = name.split(", worker");
      const known = worker === undefined ? undefined : shared.get(first!);
      if (known !== undefined) return known;
      port += 1;
      if (worker !== undefined) shared.set(first!, port);
      return port;
    },
    /** `options`: those of net.connect(). `refusal`: the error code if nobody listens there. */
    connect(owner: SimProcess, place: string, refusal: string, options: object): SimSocket {
      const client = new SimSocket(sim, owner, options);
      client.connecting = true;
      sim.after(0.05 + 0.2 * sim.random.random(), owner, `connects to ${place}`, () => {
        if (client.destroyed) return;
        const listener = next(place);
        if (!listener) {
          client.connecting = false;
          client.destroy(systemError(refusal, "connect"));
          return;
        }
        const server = new SimSocket(sim, listener.owner, { allowHalfOpen: true });
        // Unix sockets have no faults.
        SimSocket.join(client, server, place.startsWith("/") ? noFaults() : faults);
        sim.immediate(listener.owner, "accepts a connection", () => listener.accept(server));
        client.opened();
      });
      return client;
    },
  };
}
