// A snapshot of a running gateway: its status and its metrics.
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import type { Status } from "../../scale/installation/index.ts";
import type { AdminClient } from "./admin-client.ts";
import { samplesIn, type Sample } from "./metrics-text.ts";

export interface AccountUse {
  /** The account's name. Only accounts that have a key are listed. */
  readonly account: string;
  /** Requests per minute; null: unlimited. */
  readonly rpm: number | null;
  /** Requests of the last 60 seconds. */
  readonly used: number;
}

/** What GET /status says. */
export interface ShownStatus extends Status {
  /** With what each account has used of its limit. */
  readonly limits: Status["limits"] & { readonly accounts: readonly AccountUse[] };
}

export interface Snapshot {
  /** When it was taken, in milliseconds of the monotonic clock. */
  readonly at: number;
  /** What GET /status answered. */
  readonly status: ShownStatus;
  /** What GET /metrics answered. Empty: there are no metrics. */
  readonly samples: readonly Sample[];
}

/** Rejects with an Error that says for the operator why there is no status. */
export async function statusOf(client: AdminClient): Promise<ShownStatus> {
  const status = parseJson(await client.get("/status"));
  const { models, limits } = asObject(status);
  if (!Array.isArray(models) || !Array.isArray(asObject(limits)["accounts"]))
    throw new Error(`what answers at ${client.address} is no chat-gateway`);
  return status as ShownStatus;
}

/** Rejects as statusOf. Without metrics nothing was counted. */
export async function lookAt(client: AdminClient): Promise<Snapshot> {
  const status = await statusOf(client);
  const text = await client.get("/metrics").catch(() => "");
  return { at: performance.now(), status, samples: samplesIn(text) };
}
