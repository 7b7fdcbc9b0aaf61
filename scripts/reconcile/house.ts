// Everything that is known of one phase when it is over: what the provider and the clients saw,
// what the gateway's files hold, and what its commands and paths answer. Plain data, so that the
// self-test can spoil a copy of it.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Asked } from "./client.ts";
import { type Phase, purseOf } from "./plan.ts";
import type { Call } from "./provider.ts";

export type Line = Record<string, any>;

export interface TextFile {
  name: string;
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

/** Reads the files of this machine, or of a simulated one. What is not there is empty. */
export interface Reader {
  namesIn(folder: string): readonly string[];
  textOf(file: string): string;
}

const thisMachine: Reader = {
  namesIn: (folder) => (existsSync(folder) ? readdirSync(folder).sort() : []),
  textOf: (file) => (existsSync(file) ? readFileSync(file, "utf8") : ""),
};

export function readFiles(estate: Estate, dataDir: string, reader = thisMachine): void {
  const filesIn = (folder: string): TextFile[] =>
    reader
      .namesIn(join(dataDir, folder))
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => ({ name, text: reader.textOf(join(dataDir, folder, name)) }));
  estate.segments.push(...filesIn("spend"));
  estate.usageFiles.push(...filesIn("usage"));
  estate.days.text = reader.textOf(join(dataDir, "days.jsonl"));
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
  json: Line;
  csv: string;
  /**
   * The sealed statement, `seal verify --json` of it, and how the spend_ids of the gateway that
   * sealed it begin. Absent: nothing is sealed.
   */
  sealed?: { readonly text: Line; readonly verdict: Line; readonly prefix: string };
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

export const emptyHouse = (phase: Phase): House => ({
  phase: phase.name,
  isReference: phase.isReference === true,
  asked: [],
  calls: new Map(),
  kills: [],
  disturbances: [],
  changes: [],
  purse: purseOf(phase),
  estates: [],
  statements: [],
  receipts: [],
  budgets: new Map(),
  complaints: [],
});
