// A simulated Redis that all gateways share, and the part of the package `redis` that they use. It
// runs one script at a time. Faults break connections and delay answers, and then a gateway cannot
// know whether its script has run.

import { createHash } from "node:crypto";
import { EventEmitter } from "node:events";
import { systemError } from "./disk.ts";
import { BUDGETS, emptyData, runScript, WINDOWS } from "./stored-scripts.ts";
import type { SimProcess, Simulator } from "./simulator.ts";

/** The scripts that the gateways send, by their SHA-1, which is Redis' name for them. */
const SCRIPTS = new Map(
  [WINDOWS, BUDGETS].map((text) => [createHash("sha1").update(text).digest("hex"), text]),
);

/** The server. */
export type Redis = ReturnType<typeof createRedis>;

/** The options of createClient() that matter here. */
export interface ClientOptions {
  readonly socket: { reconnectStrategy(): number };
}

/** Starts the server. */
export function createRedis(sim: Simulator) {
  const server = sim.createProcess("redis");
  /** For each connection, the function that breaks it, and the process of its client. */
  const connections = new Map<() => void, SimProcess>();
  const faults = {
    /** No process can reach the server. */
    isDown: false,
    /** Processes whose names start with this cannot reach the server. */
    cutOff: undefined as string | undefined,
    /** The delay of all answers, in milliseconds. */
    slowMs: 0,
  };
  const known = new Set<string>();
  let data = emptyData();
  const latency = (): number => 0.05 + 0.5 * sim.random.random();
  const isReachable = ({ name }: SimProcess): boolean =>
    !faults.isDown && !(faults.cutOff !== undefined && name.startsWith(faults.cutOff));

  /** Breaks the connections of processes that cannot reach the server any more. */
  function cut(): void {
    for (const [drop, owner] of connections)
      if (!isReachable(owner)) sim.immediate(owner, "a connection to redis breaks", drop);
  }

  /** Runs a command. An error thrown here is a fault of the model, and fails the simulation. */
  function run([command, script = "", ...words]: readonly string[]): {
    readonly error?: Error;
    readonly value?: unknown;
  } {
    const digest = command === "EVAL" ? createHash("sha1").update(script).digest("hex") : script;
    if (command === "EVAL") known.add(digest);
    if (!known.has(digest)) return { error: new Error("NOSCRIPT No matching script") };
    const text = SCRIPTS.get(digest);
    if (text === undefined) throw new Error("the model does not know this script");
    return { value: runScript(data, text, words, sim.wallClock()) };
  }

  /** A client as the package creates it. */
  function createClient(owner: SimProcess, { socket: { reconnectStrategy } }: ClientOptions) {
    const events = new EventEmitter();
    const pending = new Set<(error: Error) => void>();
    let [isReady, isClosed] = [false, false];
    let connection = 0;
    /** The latest arrivals, which later commands and answers must not overtake. */
    let [lastCommand, lastAnswer] = [0, 0];

    function leave(error: Error): void {
      isReady = false;
      connection += 1;
      connections.delete(drop);
      for (const reject of pending) reject(error);
      pending.clear();
    }
    function drop(): void {
      if (!isReady) return;
      leave(new Error("Socket closed unexpectedly"));
      events.emit("error", new Error("Socket closed unexpectedly"));
      connect(() => undefined);
    }
    function connect(opened: () => void): void {
      sim.after(latency(), owner, "connects to redis", () => {
        if (isClosed) return;
        if (!isReachable(owner)) {
          events.emit("error", systemError("ECONNREFUSED", "connect"));
          sim.after(reconnectStrategy(), owner, "tries redis again", () => connect(opened));
          return;
        }
        isReady = true;
        connections.set(drop, owner);
        opened();
        events.emit("ready");
      });
    }
    /** `answered` is called with the answer, unless the connection breaks before. */
    function command(
      words: readonly string[],
      answered: (error: Error | undefined, value: unknown) => void,
    ): void {
      const sentOver = connection;
      lastCommand = Math.max(lastCommand, sim.time() + latency());
      sim.at(lastCommand, server, "a script", () => {
        if (connection !== sentOver) return;
        const { error, value } = run(words);
        lastAnswer = Math.max(lastAnswer, sim.time() + latency() + faults.slowMs);
        sim.at(lastAnswer, owner, "an answer of redis", () => answered(error, value));
      });
    }
    return {
      on: events.on.bind(events),
      get isReady() {
        return isReady;
      },
      connect: () => new Promise<void>((resolve) => connect(resolve)),
      sendCommand: (words: readonly string[]) =>
        new Promise((resolve, reject) => {
          if (!isReady) return reject(new Error("The client is closed or offline"));
          pending.add(reject);
          return command(words, (error, value) => {
            if (!pending.delete(reject)) return;
            if (error) reject(error);
            else resolve(value);
          });
        }),
      destroy() {
        isClosed = true;
        leave(new Error("Disconnects client"));
      },
    };
  }

  return {
    faults,
    cut,
    createClient,
    /** A copy of the data, for restart(). */
    copy: () => structuredClone(data),
    /** Restarts the server with this data and without scripts. */
    restart(content = emptyData()): void {
      data = structuredClone(content);
      known.clear();
    },
  };
}
