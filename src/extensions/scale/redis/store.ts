// A Redis or Valkey server that carries out scripts: the connection, patience, failure and
// recovery. Questions of one turn of the event loop travel in one packet, and are carried out in
// their order.
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { defineSetting } from "../../../config/setting.ts";
import type { Config } from "../../../core/config.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { literal } from "../../../core/schema/checker.ts";
import { embeddedText } from "../../../embedded.ts";
import { loadPeer } from "../stores/index.ts";

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
/** How long a connection may take. */
const CONNECT_MS = 5_000;
/** A connection on which nothing is answered for so long is given up for another one. */
const SILENCE_MS = 2_000;

/** The most keys that the operator is told of. */
const MAX_UNUSABLE = 100;
/** What is wrong with a key of one account: whoever asks about others is answered. */
const OF_ONE_KEY = /^WRONGTYPE|^ERR user_script|@user_script:\d+: (WRONGTYPE|user_script)/;

/** The part of a client of the package `redis` that is used. */
interface Client {
  on(event: "error" | "ready", listener: (error: Error) => void): void;
  /** Whether it is connected, and not about to be again. */
  readonly isReady: boolean;
  connect(): Promise<unknown>;
  sendCommand(words: readonly string[]): Promise<unknown>;
  destroy(): void;
}

/** The part of the package `redis` that is used. */
interface RedisPackage {
  /** Makes a client that is not connected yet. */
  createClient(options: object): Client;
}

/** The behaviour while Redis cannot be reached: each gateway limits by itself, or refuses. */
export type OnError = "local" | "refuse";

export const onError = defineSetting("limits.on_error", "local", () => literal("local", "refuse"), {
  fixed: true,
});

/** A script that the store carries out at once, with nothing in between. */
export interface StoredScript {
  /**
   * Carries it out: the number of its keys, the keys, and further words. Resolves with what `read`
   * returns for the answer, or with undefined while the store cannot be asked, or gives an answer
   * for which `read` throws; it may have been carried out all the same.
   */
  run<T>(words: readonly string[], read: (answer: unknown) => T): Promise<T | undefined>;
  /** The reason why the store cannot be reached; null: it can. */
  fault(): string | null;
  /** Resolves when the store answers, or has not for two seconds. */
  start(): Promise<void>;
  /** Ends the connection at once. */
  close(): void;
}

export const isRedis = ({ limits }: Config): boolean => limits.store !== "memory";

/** Throws a ValidationError if the package is missing. */
export const loadRedis = (): RedisPackage => loadPeer("redis", "limits.store");

/**
 * A script at the server of the limits. `path`: of its text in Lua, relative to src. The operator
 * is told once each time that the store of `subject` fails or is back. Undefined: the configuration
 * names no server. Throws a ValidationError if the package is missing.
 */
export function openStoredScript(
  config: Config,
  subject: "limits" | "budgets",
  path: string,
  diagnose: Diagnose,
): StoredScript | undefined {
  if (!isRedis(config)) return undefined;
  const script = embeddedText(path);
  const send = sender(script);
  const fate =
    onError.of(config) === "local" ? "each gateway decides by itself" : "requests are refused";
  const { createClient } = loadRedis();
  let fault: string | null = null;
  let failedAt = 0;
  let retryAt = 0;
  /** Whether the connection is another one, on which nothing was answered yet. */
  let isRenewed = false;
  let renewedAt = -Infinity;
  const tellOfKey = createKeyTeller(`${subject}_key_unusable`, diagnose);
  let client = open();

  function open(): Client {
    const opened = createClient({
      url: config.limits.store,
      disableOfflineQueue: true,
      socket: { connectTimeout: CONNECT_MS, reconnectStrategy: () => RETRY_MS },
    });
    opened.on("error", (error) => {
      isRenewed = false;
      failed(error);
    });
    // Without requests nothing else would notice that the store is back.
    opened.on("ready", () => {
      if (!isRenewed) recovered();
      isRenewed = false;
    });
    return opened;
  }

  function failed({ message }: Error): void {
    const now = performance.now();
    const detail = `${fate} until the store can be asked: ${message}`;
    if (fault === null) {
      diagnose({ event: `${subject}_store_failed`, level: "error", detail });
      failedAt = now;
    }
    fault = message;
    retryAt = now + RETRY_MS;
    const since = message.startsWith("READONLY") ? renewedAt : Math.max(failedAt, renewedAt);
    // It may also be silent from the beginning.
    const patience = client.isReady ? SILENCE_MS : CONNECT_MS + SILENCE_MS;
    if (now - since >= patience) renew(now);
  }

  /** The address may lead to another server by now. */
  function renew(now: number): void {
    isRenewed = true;
    renewedAt = now;
    client.destroy();
    client = open();
    client.connect().catch(failed);
  }

  function recovered(): void {
    if (fault !== null) diagnose({ event: `${subject}_store_recovered`, level: "info" });
    fault = null;
  }

  return {
    async run(words, read) {
      if (fault !== null && performance.now() < retryAt) return undefined;
      // The other requests wait for what this one finds out.
      if (fault !== null) retryAt = performance.now() + RETRY_MS;
      try {
        const answer = read(await inTime(send(client, words)));
        recovered();
        return answer;
      } catch (error) {
        const { message } = error as Error;
        if (!OF_ONE_KEY.test(message)) failed(error as Error);
        else {
          recovered(); // it has answered all the same
          tellOfKey(String(words[1]), message);
        }
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

/** Tells of each key once, and of the first ones only. */
function createKeyTeller(event: string, diagnose: Diagnose) {
  const told = new Set<string>();
  return (key: string, message: string): void => {
    if (told.has(key) || told.size >= MAX_UNUSABLE) return;
    told.add(key);
    diagnose({ event, level: "error", detail: `${key}: ${message}` });
  };
}

/** The server forgets scripts when it restarts; then it is sent once more as a whole. */
function sender(script: string) {
  const digest = createHash("sha1").update(script).digest("hex");
  return async (client: Client, words: readonly string[]): Promise<unknown> => {
    try {
      return await client.sendCommand(["EVALSHA", digest, ...words]);
    } catch (error) {
      if (!(error as Error).message.startsWith("NOSCRIPT")) throw error;
      return await client.sendCommand(["EVAL", script, ...words]);
    }
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
