// The same exact windows, shared by any number of gateways through Redis or Valkey and the optional peer package `redis`: one script a
// request, carried out as one, by the server's clock, in one round trip; what is asked in one turn of the event loop travels together.
// A window is a list of admission times under a key that expires with the last of them. While the store is down, or slow, `on_error`
// decides: each gateway's own windows, which have seen all that it admitted, or a refusal. Places in flight are each gateway's own.
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { loadPeer } from "../../core/config/peer.ts";
import type { Config } from "../../core/config/schema.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import {
  decide,
  WINDOW_MS,
  type AdmissionRequest,
  type AdmissionDecision,
  type Limiter,
} from "../../core/accounts/limiter.ts";
import script from "./script.json" with { type: "json" };

/** A store that has not answered after so many ticks is too slow. A tick is time in which this process could have heard the answer: where
 * it is itself at work for longer, that counts as one. */
const TICK_MS = 10;
const PATIENCE_TICKS = 5;
/** How often a store that failed is tried again, by one request, and one that is not there called; and how long a start waits for it. */
const RETRY_MS = 250;
const START_MS = 2_000;

const SCRIPT = script.join("\n");
const DIGEST = createHash("sha1").update(SCRIPT).digest("hex");

/** What is used of `redis`. */
interface Client {
  on(event: "error" | "ready", listener: (error: Error) => void): void;
  connect(): Promise<unknown>;
  sendCommand(words: readonly string[]): Promise<unknown>;
  destroy(): void;
}

/** `local` has the places, and the windows of a store that fails. Throws a ValidationError if the package is not installed. */
export function createRedisLimiter(
  { store, on_error }: Config["limits"],
  local: Limiter,
  diagnose: Diagnose,
) {
  const { createClient } = loadPeer<{ createClient: (options: object) => Client }>(
    "redis",
    "limits.store",
  );
  const client = createClient({
    url: store,
    disableOfflineQueue: true,
    socket: { connectTimeout: 5_000, reconnectStrategy: () => RETRY_MS },
  });
  let fault: string | null = null;
  let retryAt = 0;
  client.on("error", failed);
  client.on("ready", recovered); // where no request comes to find out

  function failed({ message }: Error): undefined {
    const detail = `${on_error === "local" ? "each gateway limits by itself" : "requests are refused"} until it can be asked: ${message}`;
    if (fault === null) diagnose({ event: "limits_store_failed", level: "error", detail });
    [fault, retryAt] = [message, performance.now() + RETRY_MS];
  }
  function recovered<T>(decision: T): T {
    if (fault !== null) diagnose({ event: "limits_store_recovered", level: "info" });
    fault = null;
    return decision;
  }

  async function inTime<T>(answer: Promise<T>): Promise<T> {
    let waiting = true;
    const late = async (): Promise<never> => {
      for (let ticks = 0; waiting && ticks < PATIENCE_TICKS; ticks += 1)
        await pause(TICK_MS, undefined, { ref: false });
      throw new Error(`no answer within ${PATIENCE_TICKS * TICK_MS} ms`);
    };
    return await Promise.race([answer, late()]).finally(() => (waiting = false));
  }

  async function ask(
    account: string,
    limits: readonly { readonly name: string; readonly rpm: number }[],
  ): Promise<AdmissionDecision> {
    if (fault !== null) retryAt = performance.now() + RETRY_MS; // the others wait for what this one finds
    // All windows of one account are on one node of a cluster: that of the tag in braces.
    const keys = limits.map(({ name }) => `chat-gateway:{account ${account}}:${name}`);
    const words = [keys.length, ...keys, WINDOW_MS, ...limits.map(({ rpm }) => rpm)].map(String);
    const answer = client
      .sendCommand(["EVALSHA", DIGEST, ...words])
      .catch((error: Error) =>
        error.message.startsWith("NOSCRIPT")
          ? client.sendCommand(["EVAL", SCRIPT, ...words])
          : Promise.reject(error),
      );
    const [admitted, figures] = (await inTime(answer)) as [
      admitted: number,
      figures: [count: number, resetMs: number][],
    ];
    return decide(
      admitted === 1,
      limits.map(({ rpm }, at) => ({ rpm, count: figures[at]![0], resetMs: figures[at]![1] })),
    );
  }

  return {
    async admit(asked: AdmissionRequest): Promise<AdmissionDecision> {
      const place = await local.admit({ ...asked, limits: [] });
      const limits = asked.limits.flatMap(({ name, rpm }) => (rpm === null ? [] : [{ name, rpm }]));
      if (!place.admitted || limits.length === 0) return place;
      const alone = () => local.admit({ ...asked, maxInFlight: null });
      const shared =
        fault !== null && performance.now() < retryAt
          ? undefined
          : await ask(asked.account, limits).then(recovered, failed);
      // The windows here must have seen it if they are to decide, also what they had no room for.
      if (shared?.admitted)
        local.admit({
          ...asked,
          maxInFlight: null,
          limits: limits.map(({ name }) => ({ name, rpm: Infinity })),
        });
      const decision =
        shared ??
        (on_error === "local"
          ? await alone()
          : { ...decide(false, []), rejectedBy: "store" as const });
      if (!decision.admitted) local.release(asked);
      return decision;
    },
    release: local.release,
    /** Of this gateway's own windows. */
    used: local.used,
    /** What keeps the store from being asked; null: nothing. */
    fault: () => fault,
    /** Resolves when the store answers, or has not for START_MS. */
    start: () =>
      Promise.race([client.connect().catch(failed), pause(START_MS, undefined, { ref: false })]),
    close: () => client.destroy(),
  };
}
