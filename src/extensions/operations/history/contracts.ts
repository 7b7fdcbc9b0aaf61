// The reports of a process about its requests, and the record of a single one. All of it is data
// that can be sent to another process. Nothing of it holds content of prompts or replies.
import type { AttemptRecord } from "../../../core/ledger/ledger.ts";
import type { Outcome } from "./figures.ts";

/** The parameters of a request, without its content. */
export interface Asked {
  /** Number of messages. */
  readonly messages: number;
  /** Number of tools that the request declares. */
  readonly tools: number;
  /** Whether the model is to think, shown to the client or not. */
  readonly thinking: boolean;
  /** "json_object" or "json_schema". Null: text. */
  readonly format: string | null;
  /** The most tokens of the reply. Null: the client stated none. */
  readonly max_tokens: number | null;
  /** Null: the client stated none. */
  readonly temperature: number | null;
}

/** A request that runs or has ended. A null is something that is not known or does not exist. */
export interface RequestEntry {
  /** The request id. Several requests may have the same. */
  readonly id: string;
  /** When it began, in milliseconds since 1970. */
  readonly started: number;
  /** When it ended. Null: it runs. */
  readonly ended: number | null;
  /** Null: it runs. */
  readonly outcome: Outcome | null;
  /** The status of the answer. 499: the client left. Null: it runs. */
  readonly status: number | null;
  /** Of the URL, without the query. */
  readonly path: string | null;
  /** The account of the key. Null also where no key is known. */
  readonly account: string | null;
  /** As Caller.keyId. Null as above. */
  readonly key: string | null;
  /** The model or alias that the client named. */
  readonly asked_model: string | null;
  /** The model that served, or the last that was asked. */
  readonly model: string | null;
  /** The name of that model's provider. */
  readonly provider: string | null;
  /** Whether the client asked for a stream. */
  readonly stream: boolean | null;
  /** The error code that the client got. */
  readonly code: string | null;
  /** The path of the request field that is to blame. */
  readonly param: string | null;
  /** Null also where it was refused before it was opened in the books. */
  readonly asked: Asked | null;
  /** As in the access log. */
  readonly duration_ms: number | null;
  /** Milliseconds from its opening to the first text, reasoning or tool call. */
  readonly first_token_ms: number | null;
  /** As in the reply. Null also where the provider did not finish it. */
  readonly finish_reason: string | null;
  /** Includes the tokens from the provider's cache. */
  readonly prompt_tokens: number | null;
  /** Part of prompt_tokens: those from the provider's cache. */
  readonly cached_tokens: number | null;
  /** Part of prompt_tokens: those that the provider wrote to its cache. */
  readonly cache_write_tokens: number | null;
  /** Reasoning tokens included. */
  readonly completion_tokens: number | null;
  /** Part of completion_tokens. */
  readonly reasoning_tokens: number | null;
  /** "provider", "estimated" or "none". */
  readonly usage_source: string | null;
  /** An exact decimal number, in `currency`. */
  readonly cost: string | null;
  /** Three capital letters, such as USD. */
  readonly currency: string | null;
  /** In the order in which they were made. Empty: it runs, or no provider was asked. */
  readonly attempts: readonly AttemptRecord[];
}

/** Requests of one key that were refused with one code, in one slice. */
export interface RefusalCount {
  /** Null: the caller was not authenticated. */
  readonly account: string | null;
  /** As Caller.keyId. Null as above. */
  readonly key: string | null;
  /** The HTTP status of the first of them. Below 400: a stream that broke off. */
  readonly status: number;
  /** The error code that the client got; the status where there is none. */
  readonly code: string;
  /** Number of refusals in the slice. */
  count: number;
  /** Milliseconds since 1970. */
  readonly first: number;
  /** Milliseconds since 1970. */
  last: number;
}

/** The use of one key in one slice. */
export interface KeyCount {
  /** Those that were answered, whatever the answer was. */
  requests: number;
  /** Of the requests, those with a 4xx. */
  refused: number;
  /** In the currency of the configuration. It is rounded, and for looking at only. */
  cost: number;
  /** Milliseconds since 1970. */
  last: number;
}

/** The last time that a provider failed at a model. */
export interface ModelFault {
  /** Its canonical name. */
  readonly model: string;
  /** The name of its provider. */
  readonly provider: string;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** The gateway's error code. */
  readonly code: string;
  /** The HTTP status of the provider's answer. Null: there was no answer. */
  readonly status: number | null;
  /** The provider's own message, redacted; else the gateway's. Null: there is none. */
  readonly detail: string | null;
  /** The request that met it. */
  readonly request_id: string;
}

/** The events of a process in a short stretch of time. It does not change once it is reported. */
export interface Slice {
  /** Counts the slices of a process, from 1. */
  readonly seq: number;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** By TOTAL. */
  readonly total: number[];
  /** By ACCOUNT. The name "" stands for requests without an authenticated caller. */
  readonly accounts: Map<string, number[]>;
  /** By MODEL. */
  readonly models: Map<string, number[]>;
  /** By account, key and code. */
  readonly refusals: Map<string, RefusalCount>;
  /** By the ids of the keys. */
  readonly keys: Map<string, KeyCount>;
  /** By model: the last of each. */
  readonly faults: Map<string, ModelFault>;
  /** The last that ended, of each kind. */
  readonly ended: readonly RequestEntry[];
}

/** The report of a process at each snapshot. */
export interface ProcessReport {
  /** Tells processes apart, also from those of an earlier start. */
  readonly process: string;
  /** When its recording began, in milliseconds since 1970. */
  readonly since: number;
  /** The slices of the last seconds that are complete. Each is reported several times. */
  readonly slices: readonly Slice[];
  /** Requests that run, the oldest first. */
  readonly running: readonly RequestEntry[];
  /** How many run. `running` may have fewer. */
  readonly runningCount: number;
}
