// Fetches the state of a running gateway: its status, and its history of the last 15 minutes.
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import type { Status } from "../../scale/installation/index.ts";
import type { AdminClient } from "./admin-client.ts";

/** What GET /status says. */
export interface ShownStatus extends Status {
  readonly limits: Status["limits"] & {
    /**
     * The accounts that have a key. `rpm`: requests per minute; null: unlimited. `used`: the
     * requests of the last 60 seconds.
     */
    readonly accounts: readonly {
      readonly account: string;
      readonly rpm: number | null;
      readonly used: number;
    }[];
  };
}

/** Figures by their names. */
export type Row = Readonly<Record<string, number>>;

/** What GET /history says, as far as it is shown. */
export interface ShownHistory {
  /** Bins of 10 seconds, oldest first. Null: unknown. `seconds`: how many of them are complete. */
  readonly bins: readonly (Row | null)[];
  /** Requests by outcome. Times to the first token are in seconds; null: there was none. */
  readonly total: Row & { readonly first_token: Readonly<Record<"p50" | "p95", number | null>> };
  readonly accounts: readonly Row[];
  readonly models: readonly ({ readonly model: string } & Omit<Row, "model">)[];
  /**
   * How often requests ended with an error, the commonest first. `account` null: there was no valid
   * key. `code` null: all errors that have no row of their own.
   */
  readonly refused: readonly {
    readonly account: string | null;
    readonly code: string | null;
    readonly count: number;
  }[];
}

export interface GatewayState {
  readonly status: ShownStatus;
  /** Undefined: the gateway has no history. */
  readonly history: ShownHistory | undefined;
}

/** Rejects with an Error that says for the operator why there is no status. */
export async function fetchState(client: AdminClient): Promise<GatewayState> {
  const status = parseJson(await client.get("/status"));
  const { models, limits, event_loop_delay } = asObject(status);
  const isStatus = Array.isArray(models) && Array.isArray(asObject(limits)["accounts"]);
  if (!isStatus || !event_loop_delay)
    throw new Error(`the server at ${client.address} is not a chat-gateway`);
  const history = await client.get("/history?range=15m").then(parseJson, () => undefined);
  return { status: status as ShownStatus, history: history as ShownHistory | undefined };
}
