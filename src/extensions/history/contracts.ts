// What a process tells of its requests, and what is kept of a single one. All of it is data that
// can be sent to another process. Nothing of it holds content of prompts or replies.
import type { AttemptRecord } from "../../core/ledger/ledger.ts";
import type { Outcome } from "./figures.ts";

/** What a client asked for, as far as it is no content. */
export interface Asked {
  readonly messages: number;
  readonly tools: number;
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
  readonly path: string | null;
  readonly account: string | null;
  readonly key: string | null;
  /** The model or alias that the client named. */
  readonly asked_model: string | null;
  /** The model that served, or the last that was asked. */
  readonly model: string | null;
  readonly provider: string | null;
  readonly stream: boolean | null;
  /** The error code that the client got. */
  readonly code: string | null;
  /** The path of the request field that is to blame. */
  readonly param: string | null;
  readonly asked: Asked | null;
  readonly duration_ms: number | null;
  readonly first_token_ms: number | null;
  readonly finish_reason: string | null;
  readonly prompt_tokens: number | null;
  readonly cached_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly completion_tokens: number | null;
  readonly reasoning_tokens: number | null;
  /** "provider", "estimated" or "none". */
  readonly usage_source: string | null;
  /** An exact decimal number, in `currency`. */
  readonly cost: string | null;
  readonly currency: string | null;
  readonly attempts: readonly AttemptRecord[];
}

/** Requests of one key that were refused with one code, in one slice. */
export interface RefusalCount {
  /** Null: nobody was authenticated. */
  readonly account: string | null;
  readonly key: string | null;
  readonly status: number;
  readonly code: string;
  count: number;
  /** Milliseconds since 1970. */
  readonly first: number;
  last: number;
}

/** What one key did in one slice. */
export interface KeyCount {
  requests: number;
  /** Of the requests, those with a 4xx. */
  refused: number;
  cost: number;
  /** Milliseconds since 1970. */
  last: number;
}

/** The last time that a provider failed at a model. */
export interface ModelFault {
  readonly model: string;
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

/**
 * What happened in a process in a short stretch of time. It does not change once it is reported.
 */
export interface Slice {
  /** Counts the slices of a process, from 1. */
  readonly seq: number;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** By TOTAL. */
  readonly total: number[];
  /** By ACCOUNT. The name "" stands for requests of nobody who was authenticated. */
  readonly accounts: Map<string, number[]>;
  /** By MODEL. */
  readonly models: Map<string, number[]>;
  readonly refusals: Map<string, RefusalCount>;
  readonly keys: Map<string, KeyCount>;
  readonly faults: Map<string, ModelFault>;
  /** The last that ended, of each kind. */
  readonly ended: readonly RequestEntry[];
}

/** What a process reports each time that it is looked at. */
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
