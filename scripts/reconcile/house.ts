// Everything that is known of one phase when it is over: what the provider and the clients saw,
// what the gateway's files hold, and what its commands and paths answer. Plain data, so that the
// self-test can spoil a copy of it.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Asked } from "./client.ts";
import type { Call } from "./provider.ts";

export type Line = Record<string, any>;

/** A text file. */
export interface TextFile {
  readonly name: string;
  text: string;
}

/** What one gateway of the phase left behind, and what its commands print. */
export interface Estate {
  /** spend/*.jsonl. */
  readonly segments: TextFile[];
  /** days.jsonl. */
  readonly days: TextFile;
  /** usage/YYYY-MM-DD.jsonl; none with PostgreSQL. */
  readonly usageFiles: TextFile[];
  /** `audit --json`. */
  audit: Line;
  /** `seal verify --json`, with the heads that were taken. */
  verify: Line;
  /** `seal head`: one taken in the middle, one at the end of the day, one on the next day. */
  readonly heads: string[];
  /** `seal public-key`, in PEM. */
  publicKey: string;
  /** /status of the running gateway at rest: its budgets. */
  live: Line[];
}

/** Nothing is known of it yet. */
export const emptyEstate = (): Estate => ({
  segments: [],
  days: { name: "days.jsonl", text: "" },
  usageFiles: [],
  audit: {},
  verify: {},
  heads: [],
  publicKey: "",
  live: [],
});

/** The files of lines in a folder, in the order of their names. */
const filesIn = (folder: string): TextFile[] =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => name.endsWith(".jsonl"))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));

/** Adds the files to an estate. */
export function readFiles(estate: Estate, dataDir: string): void {
  estate.segments.push(...filesIn(join(dataDir, "spend")));
  estate.usageFiles.push(...filesIn(join(dataDir, "usage")));
  const days = join(dataDir, "days.jsonl");
  if (existsSync(days)) estate.days.text = readFileSync(days, "utf8");
}

/** An answer to GET /v1/requests/ID. */
export interface ReceiptAnswer {
  /** The gateway that was asked. */
  readonly gateway: number;
  readonly account: string;
  readonly id: string;
  /** It was asked for when the days of the run were closed. */
  readonly isLate: boolean;
  status: number;
  body: Line;
}

export interface Statement {
  readonly account: string;
  readonly month: string;
  /** `--format json`. */
  json: Line;
  /** `--format csv`. */
  csv: string;
  /** The spend_ids of the gateway that sealed it begin so: it vouches for its own requests. */
  readonly sealedPrefix: string;
  /** The sealed statement, and `seal verify --json` of it. Absent: nothing is sealed. */
  sealed?: Line;
  verdict?: Line;
}

/** When something failed, in milliseconds of the wall clock. */
export interface Trouble {
  readonly from: number;
  readonly until: number;
}

/** A failure of the world around the gateway. */
export interface Disturbance extends Trouble {
  /**
   * "power": the machine lost its power, and may have lost what was written in the second before.
   * "provider": a connection to the provider was reset, or stood still. "stop": the gateway was
   * told to stop, and closed connections on which nothing had arrived. "freeze": the gateway stood
   * still, so that everything was late.
   */
  readonly kind: "power" | "provider" | "stop" | "freeze";
}

/** The books of a phase. */
export interface Books {
  /** One a gateway. */
  readonly estates: readonly Estate[];
  /** Rows of usage_records, as the files have lines. Absent: the files are the records. */
  rows?: Line[] | undefined;
}

export interface House extends Books {
  readonly phase: string;
  readonly gateways: number;
  /** As Phase.isReference. */
  readonly isReference: boolean;
  readonly asked: Asked[];
  /** The provider's ledger, by serial number. */
  readonly calls: Map<number, Call[]>;
  /** Kills of a gateway or of one of its workers. */
  readonly kills: { readonly gateway: number; readonly worker: boolean; readonly at: number }[];
  /** Times at which the world failed, in a simulation: what is certain otherwise is not then. */
  readonly disturbances: Disturbance[];
  /**
   * Changes of prices: `table` is in force for some requests from `from` on and for all from
   * `until` on. The first is the start.
   */
  readonly changes: { readonly table: number; readonly from: number; readonly until: number }[];
  readonly purse: string;
  readonly estates: Estate[];
  readonly statements: Statement[];
  readonly receipts: ReceiptAnswer[];
  /** `budget show --json` by account. */
  readonly budgets: Map<string, Line>;
  /** What is wrong so far: exit codes, lines on stderr. */
  readonly complaints: string[];
}
