// The settings of a gateway: the checked configuration, with every default filled in. Where it
// comes from is not the core's business; src/config makes it of gateway.json. Extensions keep their
// own settings beside these fields (src/config/setting.ts).
import type { AccountSettings } from "./accounts/keyring.ts";
import type { RoutingSettings } from "./routing/model.ts";

export interface Config extends RoutingSettings, AccountSettings {
  /** The public listener, and the bounds of requests and replies. */
  readonly server: ServerSettings;
  /** The folder of everything that is kept. */
  readonly data_dir: string;
  /** The limits of accounts without limits of their own, and where requests are counted. */
  readonly limits: LimitSettings;
  /**
   * Where clients of other gateways expect something else than the contract says (wire.md "Tools").
   */
  readonly compat: {
    /** The tool_choice of a request that has tools and does not state one. */
    readonly tool_choice_default: "none" | "auto";
  };
}

export interface ServerSettings {
  /** The address or name to listen on. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Bytes of a request's body. */
  readonly max_body_bytes: number;
  /** Bytes of a provider's whole reply. */
  readonly max_reply_bytes: number;
  /** Milliseconds until a request has arrived whole; its head has a minute at the most. */
  readonly receive_ms: number;
  /**
   * An answer is broken off after this many milliseconds in which the client took nothing of it.
   */
  readonly send_ms: number;
  /** After so many milliseconds of silence a comment is sent on a stream (wire.md "Framing"). */
  readonly keep_alive_ms: number;
  /** Milliseconds that requests in flight have when the gateway stops. */
  readonly drain_ms: number;
  /** Chat requests that a process has in progress at once; more are refused. */
  readonly max_in_flight: number;
}

export interface LimitSettings {
  /** Requests per minute of accounts that have no limit of their own; null: unlimited. */
  readonly rpm: number | null;
  /** "memory", or the address of a store that an extension offers. It may hold a password. */
  readonly store: string;
}
