// Runs a script on a Redis or Valkey server: the connection, timeouts, failure and recovery.
// Commands of one turn of the event loop are sent in one packet, and run in order.
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { defineSetting } from "../../../config/setting.ts";
import type { Config } from "../../../core/config.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { fail, literal } from "../../../core/schema/checker.ts";
import { embeddedText } from "../../../embedded.ts";
import { lookup } from "../../bounds/lookups/index.ts";
import { loadPeer } from "../stores/index.ts";

/** Milliseconds of a tick. Timeouts count ticks: while this process is blocked, only one passes. */
const TICK_MS = 10;
/** The timeout of a command, in ticks. */
const TIMEOUT_TICKS = 5;
/** Milliseconds between two attempts to use, or to connect to, a store that failed. */
const RETRY_MS = 250;
/** How long start() waits for the connection, in milliseconds. */
const START_MS = 2_000;
/** The timeout of connecting, in milliseconds. */
const CONNECT_MS = 5_000;
/** Milliseconds without any answer after which the connection is replaced. */
const SILENCE_MS = 2_000;

/** The most unusable keys that are logged. */
const MAX_UNUSABLE = 100;
/** Errors about a key whose value is unusable. The store itself works. */
const KEY_ERROR = /^WRONGTYPE|^ERR user_script|@user_script:\d+: (WRONGTYPE|user_script)/;

/** The part of a client of the package `redis` that is used here. */
interface Client {
  on(event: "error" | "ready", listener: (error: Error) => void): void;
  /** Whether the client is connected, and not reconnecting. */
  readonly isReady: boolean;
  connect(): Promise<unknown>;
  sendCommand(words: readonly string[]): Promise<unknown>;
  destroy(): void;
}

/** The part of the package `redis` that is used. */
interface RedisPackage {
  /** Creates a client that is not connected yet. */
  createClient(options: object): Client;
}

/** The behaviour while Redis cannot be reached: each gateway limits by itself, or refuses. */
export type OnError = "local" | "refuse";

export const onError = defineSetting("limits.on_error", "local", () => literal("local", "refuse"), {
  fixed: true,
});

/** A script that the store runs atomically. */
export interface StoredScript {
  /**
   * Runs the script. `words`: the number of its keys, the keys, and further arguments. Resolves
   * with read(answer), or with undefined if the store fails or `read` throws. The script may have
   * run even then.
   */
  run<T>(words: readonly string[], read: (answer: unknown) => T): Promise<T | undefined>;
  /** Why the store cannot be reached. Null: it can. */
  fault(): string | null;
  /** Connects. Resolves after START_MS at the latest, even if there is no connection. */
  start(): Promise<void>;
  /** Ends the connection at once. */
  close(): void;
}

export const isRedis = ({ limits }: Config): boolean => limits.store !== "memory";

/** Throws a ValidationError if the package is missing or too old. */
export function loadRedis(): RedisPackage {
  const loaded = loadPeer<RedisPackage>("redis", "limits.store");
  // Before version 5, clients lack destroy().
  if (!("createCluster" in loaded) || "createClientPool" in loaded) return loaded;
  const command = "npm install --save-optional redis@latest";
  const fault = `needs version 5 or later of the package 'redis': run '${command}'`;
  return fail("unsupported_value", fault, ["limits", "store"]);
}

/**
 * Opens a script on the server of `limits.store`. `path`: its Lua file, relative to src. Logs each
 * failure and recovery of the store, as an event of `subject`. Undefined: the configuration names
 * no server. Throws as loadRedis().
 */
export function openStoredScript(
  config: Config,
  subject: "limits" | "budgets",
  path: string,
  diagnose: Diagnose,
): StoredScript | undefined {
  if (!isRedis(config)) return undefined;
  const script = embeddedText(path);
  const send = createSender(script);
  const consequence =
    onError.of(config) === "local" ? "each gateway decides by itself" : "requests are refused";
  const { createClient } = loadRedis();
  let fault: string | null = null;
  let failedAt = 0;
  let retryAt = 0;
  /** Whether the client was replaced, and has neither connected nor failed since. */
  let isRenewed = false;
  let renewedAt = -Infinity;
  const logUnusableKey = createUnusableKeyLog(`${subject}_key_unusable`, diagnose);
  let client = open();

  function open(): Client {
    const opened = createClient({
      url: config.limits.store,
      disableOfflineQueue: true,
      // All servers and proxies support this version. With the next one, the package also prepares
      // for notifications of Redis Enterprise, which fails at IPv6 addresses.
      RESP: 2,
      socket: { connectTimeout: CONNECT_MS, reconnectStrategy: () => RETRY_MS, lookup },
    });
    opened.on("error", (error) => {
      isRenewed = false;
      failed(error, opened);
    });
    // Without requests, only this detects the recovery.
    opened.on("ready", () => {
      if (!isRenewed) recovered();
      isRenewed = false;
    });
    return opened;
  }

  /** Ignores errors of a replaced client: replacing it ends the commands under way. */
  function failed({ message }: Error, of: Client): void {
    if (of !== client) return;
    const now = performance.now();
    const detail = `${consequence} until the store can be reached: ${message}`;
    if (fault === null) {
      diagnose({ event: `${subject}_store_failed`, level: "error", detail });
      failedAt = now;
    }
    fault = message;
    retryAt = now + RETRY_MS;
    const since = message.includes("READONLY") ? renewedAt : Math.max(failedAt, renewedAt);
    // Before the client is ready, connecting has its own timeout.
    const timeoutMs = client.isReady ? SILENCE_MS : CONNECT_MS + SILENCE_MS;
    if (now - since >= timeoutMs) renew(now);
  }

  /** Replaces the client, because the address may lead to another server by now. */
  function renew(now: number): void {
    isRenewed = true;
    renewedAt = now;
    client.destroy();
    client = open();
    connect(client, failed);
  }

  function recovered(): void {
    if (fault !== null) diagnose({ event: `${subject}_store_recovered`, level: "info" });
    fault = null;
  }

  return {
    async run(words, read) {
      if (fault !== null && performance.now() < retryAt) return undefined;
      // Only one request in each RETRY_MS tries a store that failed.
      if (fault !== null) retryAt = performance.now() + RETRY_MS;
      const asked = client;
      try {
        const answer = read(await withTimeout(send(asked, words)));
        recovered();
        return answer;
      } catch (error) {
        const { message } = error as Error;
        if (!KEY_ERROR.test(message)) failed(error as Error, asked);
        else {
          recovered(); // an error is an answer, too
          logUnusableKey(String(words[1]), message);
        }
        return undefined;
      }
    },
    fault: () => fault,
    async start() {
      const connected = connect(client, failed);
      await Promise.race([connected, pause(START_MS, undefined, { ref: false })]);
    },
    close: () => client.destroy(),
  };
}

/** Connects. Never rejects: if connecting fails, calls `failed`, and then resolves. */
const connect = (client: Client, failed: (error: Error, of: Client) => void): Promise<unknown> =>
  client.connect().catch((error: Error) => failed(error, client));

/** Logs each key once, and at most MAX_UNUSABLE keys. */
function createUnusableKeyLog(event: string, diagnose: Diagnose) {
  const logged = new Set<string>();
  return (key: string, message: string): void => {
    if (logged.has(key) || logged.size >= MAX_UNUSABLE) return;
    logged.add(key);
    diagnose({ event, level: "error", detail: `${key}: ${message}` });
  };
}

/** Sends the script's digest or, if the server does not know it (after a restart), its text. */
function createSender(script: string) {
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

/** Rejects if there is no answer within TIMEOUT_TICKS. */
async function withTimeout<T>(answer: Promise<T>): Promise<T> {
  let isWaiting = true;
  const timeout = async (): Promise<never> => {
    for (let ticks = 0; isWaiting && ticks < TIMEOUT_TICKS; ticks += 1)
      await pause(TICK_MS, undefined, { ref: false });
    throw new Error(`no answer within ${TIMEOUT_TICKS * TICK_MS} ms`);
  };
  return await Promise.race([answer, timeout()]).finally(() => {
    isWaiting = false;
  });
}
