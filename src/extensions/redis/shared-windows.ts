// The sliding windows in Redis or Valkey: one script a request, carried out at once by the server's
// clock, in one round trip. What is asked in one turn of the event loop travels in one packet. A
// window is a list of admission times under a key that expires with the last of them.
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { decide, WINDOW_MS, type AdmissionDecision } from "../../core/accounts/limiter.ts";
import { embeddedText } from "../../embedded.ts";

/**
 * A tick is time in which this process could have heard the answer: where the process is itself at
 * work for longer, that counts as one.
 */
const TICK_MS = 10;
/** A store that has not answered after so many ticks is too slow. */
const PATIENCE_TICKS = 5;
/**
 * How often a store that failed is tried again by a request, and one that is not there is called.
 */
const RETRY_MS = 250;
/** How long a start waits for the store. */
const START_MS = 2_000;

const SCRIPT = embeddedText("extensions/redis/script.lua");
const DIGEST = createHash("sha1").update(SCRIPT).digest("hex");

/** What is used of a client of the package `redis`. */
interface Client {
  on(event: "error" | "ready", listener: (error: Error) => void): void;
  connect(): Promise<unknown>;
  sendCommand(words: readonly string[]): Promise<unknown>;
  destroy(): void;
}

/** What is used of the package `redis`. */
export interface RedisPackage {
  createClient(options: object): Client;
}

/** A limit that is not unlimited. */
export interface FiniteLimit {
  readonly name: string;
  readonly rpm: number;
}

/** Hears of the store's condition, once each time that it changes. */
export interface StoreEvents {
  failed(message: string): void;
  recovered(): void;
}

export interface SharedWindows {
  /** Admits a request under all limits or none; undefined while the store cannot be asked. */
  admit(account: string, limits: readonly FiniteLimit[]): Promise<AdmissionDecision | undefined>;
  /** What keeps the store from being asked; null: nothing. */
  fault(): string | null;
  /** Resolves when the store answers, or has not for two seconds. */
  start(): Promise<void>;
  close(): void;
}

/** `address`: `redis://...`; it may hold a password. */
export function createSharedWindows(
  { createClient }: RedisPackage,
  address: string,
  events: StoreEvents,
): SharedWindows {
  const client = createClient({
    url: address,
    disableOfflineQueue: true,
    socket: { connectTimeout: 5_000, reconnectStrategy: () => RETRY_MS },
  });
  let fault: string | null = null;
  let retryAt = 0;
  client.on("error", failed);
  // Without requests nothing else would notice that the store is back.
  client.on("ready", recovered);

  function failed({ message }: Error): void {
    if (fault === null) events.failed(message);
    fault = message;
    retryAt = performance.now() + RETRY_MS;
  }

  function recovered(): void {
    if (fault !== null) events.recovered();
    fault = null;
  }

  /**
   * Carries the script out. The server forgets scripts when it restarts; then it is sent once more
   * as a whole.
   */
  async function runScript(words: readonly string[]): Promise<unknown> {
    try {
      return await client.sendCommand(["EVALSHA", DIGEST, ...words]);
    } catch (error) {
      if (!(error as Error).message.startsWith("NOSCRIPT")) throw error;
      return await client.sendCommand(["EVAL", SCRIPT, ...words]);
    }
  }

  async function ask(account: string, limits: readonly FiniteLimit[]): Promise<AdmissionDecision> {
    // All windows of one account are on one node of a cluster: that of the tag in braces.
    const keys = limits.map(({ name }) => `chat-gateway:{account ${account}}:${name}`);
    const values = [keys.length, ...keys, WINDOW_MS, ...limits.map(({ rpm }) => rpm)];
    const answer = await inTime(runScript(values.map(String)));
    const [admitted, figures] = answer as [number, [count: number, resetMs: number][]];
    const windows = limits.map(({ rpm }, at) => {
      const [count, resetMs] = figures[at]!;
      return { rpm, count, resetMs };
    });
    return decide(admitted === 1, windows);
  }

  return {
    async admit(account, limits) {
      if (fault !== null && performance.now() < retryAt) return undefined;
      // The other requests wait for what this one finds out.
      if (fault !== null) retryAt = performance.now() + RETRY_MS;
      try {
        const decision = await ask(account, limits);
        recovered();
        return decision;
      } catch (error) {
        failed(error as Error);
        return undefined;
      }
    },
    fault: () => fault,
    async start() {
      const connected = client.connect().catch(failed);
      await Promise.race([connected, pause(START_MS, undefined, { ref: false })]);
    },
    close: () => client.destroy(),
  };
}

/** Rejects when an answer has not come after PATIENCE_TICKS. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  let isWaiting = true;
  const late = async (): Promise<never> => {
    for (let ticks = 0; isWaiting && ticks < PATIENCE_TICKS; ticks += 1)
      await pause(TICK_MS, undefined, { ref: false });
    throw new Error(`no answer within ${PATIENCE_TICKS * TICK_MS} ms`);
  };
  return await Promise.race([answer, late()]).finally(() => {
    isWaiting = false;
  });
}
