// The checked configuration of a gateway, with every default filled in. src/config makes it from
// gateway.json. Extensions keep their own settings beside these fields (src/config/setting.ts).
import type { AccountSettings } from "./accounts/keyring.ts";
import type { RoutingSettings } from "./routing/model.ts";

export interface Config extends RoutingSettings, AccountSettings {
  /** The public listener, and the bounds of requests and replies. */
  readonly server: ServerSettings;
  /** The folder for all files that the gateway writes, such as keys and books. */
  readonly data_dir: string;
  /** The default limits of accounts, and the store that counts requests. */
  readonly limits: LimitSettings;
  /** Deviations from the contract that clients of other gateways expect (wire.md "Tools"). */
  readonly compat: {
    /** The default of `tool_choice` in a request with tools. */
    readonly tool_choice_default: "none" | "auto";
  };
}

export interface ServerSettings {
  /** The address or name to listen on. */
  readonly host: string;
  /** The port to listen on; 0: any free one. */
  readonly port: number;
  /** The most bytes of a request's body. */
  readonly max_body_bytes: number;
  /** The most bytes of a provider's whole reply. */
  readonly max_reply_bytes: number;
  /** The most milliseconds that a request may take to arrive; its head: at most a minute. */
  readonly receive_ms: number;
  /** A response is cut after this many milliseconds in which the client reads nothing of it. */
  readonly send_ms: number;
  /** A silent stream gets a comment after this many milliseconds (wire.md "Framing"). */
  readonly keep_alive_ms: number;
  /** How long requests in flight may continue when the gateway stops, in milliseconds. */
  readonly drain_ms: number;
  /** The most chat requests that one process handles at once; it refuses further ones. */
  readonly max_in_flight: number;
}

export interface LimitSettings {
  /** Requests per minute of accounts that have no limit of their own; null: unlimited. */
  readonly rpm: number | null;
  /** "memory", or the address of an extension's store, which may contain a password. */
  readonly store: string;
}
