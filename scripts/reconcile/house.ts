// Everything that is known of one phase when it is over: what the provider and the clients saw,
// what the gateway's files hold, and what its commands and paths answer. Plain data, so that the
// self-test can spoil a copy of it.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Asked } from "./client.ts";
import { type Phase, purseOf } from "./plan.ts";
import type { Call } from "./provider.ts";

export type Line = Record<string, any>;

/** A file with a JSON object on each line. */
export interface LinesFile {
  name: string;
  readonly lines: Line[];
}

/** What one gateway of the phase left behind, and what its commands print. */
export interface Estate {
  /** spend/*.jsonl. */
  readonly segments: LinesFile[];
  /** days.jsonl. */
  days: Line[];
  /** usage/YYYY-MM-DD.jsonl; none with PostgreSQL. */
  readonly usageFiles: LinesFile[];
  /** `audit --json`. */
  audit: Line;
  /** `seal verify --json` of the files and of heads that were taken, by the public key. */
  verify: Line;
  /** /status of the running gateway at rest: its budgets. */
  live: Line[];
}

const emptyEstate = (): Estate => ({
  segments: [],
  days: [],
  usageFiles: [],
  audit: {},
  verify: {},
  live: [],
});

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
  /** The gateway whose command printed it. */
  readonly gateway: number;
  readonly account: string;
  readonly month: string;
  readonly json: Line;
  csv: string;
  /** The sealed statement, and `seal verify --json` of it. Absent: nothing is sealed. */
  readonly sealed?: { readonly text: Line; readonly verdict: Line };
}

/** When something failed, in milliseconds of the wall clock. */
export interface Trouble {
  readonly from: number;
  readonly until: number;
}

/** A failure of the world around the gateway. */
export interface Disturbance extends Trouble {
  /**
   * "kill", "kill worker": a gateway or one of its workers was killed. The others happen in a
   * simulation. "power": the machine lost its power, and may have lost what was written in the
   * second before. "provider": a connection to the provider was reset, or stood still. "stop": the
   * gateway was told to stop, and closed connections on which nothing had arrived. "freeze": the
   * gateway stood still, so that everything was late. "store lost": the store of limits and budgets
   * started again without what it kept, or with an older state of it.
   */
  readonly kind: "kill" | "kill worker" | "power" | "provider" | "stop" | "freeze" | "store lost";
  /** Which gateway it met. Absent: all. */
  readonly gateway?: number;
}

export interface House {
  readonly phase: string;
  /** As Phase.isReference. */
  readonly isReference: boolean;
  readonly asked: Asked[];
  /** The provider's ledger, by serial number. */
  readonly calls: Map<number, Call[]>;
  readonly disturbances: Disturbance[];
  /**
   * Changes of prices: `table` is in force for some requests from `from` on and for all from
   * `until` on. The first is the start.
   */
  readonly changes: { readonly table: number; readonly from: number; readonly until: number }[];
  /** Undefined: something happened after which more may be spent, as the manual says. */
  purse: string | undefined;
  /** Whether all gateways have the same records, so that each states the bills of all. */
  readonly isShared: boolean;
  /** One a gateway. */
  readonly estates: Estate[];
  /** Rows of usage_records, as the files have lines. Absent: the files are the records. */
  rows?: Line[];
  readonly statements: Statement[];
  readonly receipts: ReceiptAnswer[];
  /** What `budget show --json` says of an account, and the gateway whose command it was. */
  readonly budgets: { readonly gateway: number; readonly shown: Line }[];
  /** What is wrong so far: exit codes, lines on stderr, lines of files that are no JSON. */
  readonly complaints: string[];
}

export const emptyHouse = (phase: Phase): House => ({
  phase: phase.name,
  isReference: phase.isReference === true,
  asked: [],
  calls: new Map(),
  disturbances: [],
  changes: [],
  purse: purseOf(phase),
  isShared: phase.postgres !== undefined,
  estates: Array.from({ length: phase.gateways }, emptyEstate),
  statements: [],
  receipts: [],
  budgets: [],
  complaints: [],
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

/** What a line of a file must be when it is written again. */
export const textOf = (line: Line): string => `${JSON.stringify(line)}\n`;

/** The files of gateway `number`. */
export function readFiles(
  { estates, complaints }: House,
  number: number,
  dataDir: string,
  reader = thisMachine,
): void {
  function linesIn(path: string): Line[] {
    const texts = reader.textOf(join(dataDir, path)).split(/(?<=\n)/);
    return texts.filter(Boolean).map((text, index) => {
      try {
        const line = JSON.parse(text) as Line;
        if (textOf(line) === text) return line;
      } catch {
        // It is a complaint like any other text that no line has.
      }
      complaints.push(`${path}, line ${index + 1}: torn, or no line of JSON: ${text}`);
      return {};
    });
  }
  const filesIn = (folder: string): LinesFile[] =>
    reader
      .namesIn(join(dataDir, folder))
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => ({ name, lines: linesIn(join(folder, name)) }));
  const estate = estates[number]!;
  estate.segments.push(...filesIn("spend"));
  estate.usageFiles.push(...filesIn("usage"));
  estate.days = linesIn("days.jsonl");
}
