// The sliding windows in Redis or Valkey: one script a request, carried out by the server's clock,
// in one round trip. A window is a list of admission times under a key that expires with the last
// of them.
import { decide, WINDOW_MS, type AdmissionDecision } from "../../../core/accounts/limiter.ts";
import { embeddedText } from "../../../embedded.ts";
import {
  createStoredScript,
  type RedisPackage,
  type StoredScript,
  type StoreEvents,
} from "./store.ts";

/** A limit that is not unlimited. */
export interface FiniteLimit {
  /** As Limit.name. */
  readonly name: string;
  /** Requests per minute; 0: none. */
  readonly rpm: number;
}

export interface SharedWindows extends Pick<StoredScript, "fault" | "start" | "close"> {
  /** Admits a request under all limits or none; undefined while the store cannot be asked. */
  admit(account: string, limits: readonly FiniteLimit[]): Promise<AdmissionDecision | undefined>;
}

/** `address`: `redis://...`; it may hold a password. */
export function createSharedWindows(
  redis: RedisPackage,
  address: string,
  events: StoreEvents,
): SharedWindows {
  const script = embeddedText("extensions/scale/redis/script.lua");
  const { run, fault, start, close } = createStoredScript(redis, address, script, events);
  return {
    fault,
    start,
    close,
    async admit(account, limits) {
      // All windows of one account are on one node of a cluster: that of the tag in braces.
      const keys = limits.map(({ name }) => `chat-gateway:{account ${account}}:${name}`);
      const values = [keys.length, ...keys, WINDOW_MS, ...limits.map(({ rpm }) => rpm)];
      const answer = await run(values.map(String));
      if (answer === undefined) return undefined;
      const [admitted, figures] = answer as [number, [count: number, resetMs: number][]];
      const windows = limits.map(({ rpm }, at) => {
        const [count, resetMs] = figures[at]!;
        return { rpm, count, resetMs };
      });
      return decide(admitted === 1, windows);
    },
  };
}
