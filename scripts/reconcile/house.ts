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
const emptyEstate = () => ({
  /** spend/*.jsonl. */
  segments: [] as LinesFile[],
  /** days.jsonl. */
  days: [] as Line[],
  /** usage/YYYY-MM-DD.jsonl; none with PostgreSQL. */
  usageFiles: [] as LinesFile[],
  /** `audit --json`. */
  audit: {} as Line,
  /** `seal verify --json` of the files and of heads that were taken, by the public key. */
  verify: {} as Line,
  /** /status of the running gateway at rest: its budgets. */
  live: [] as Line[],
});

/** An answer to GET /v1/requests/ID, when the days of the run were closed. */
export interface ReceiptAnswer {
  /** The gateway that was asked. */
  readonly gateway: number;
  readonly account: string;
  readonly id: string;
  status: number;
  readonly body: Line;
}

export interface Statement {
  /** The gateway whose command printed it. */
  readonly gateway: number;
  readonly account: string;
  readonly month: string;
  /** The command. */
  readonly args: readonly string[];
  readonly json: Line;
  csv: string;
  /** The sealed statement, and `seal verify --json` of it. Absent: nothing is sealed. */
  sealed?: { readonly text: Line; readonly verdict: Line };
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

/** Which of TABLES is in force: for some requests from `from` on, and for all from `until` on. */
export interface PriceChange extends Trouble {
  readonly table: number;
}

export type House = ReturnType<typeof emptyHouse>;

/** `calls`: the provider's ledger, by the serial numbers of requests. */
export const emptyHouse = (phase: Phase, calls: Map<number, readonly Call[]>) => ({
  phase: phase.name,
  /** As Phase.isReference. */
  isReference: phase.isReference === true,
  asked: [] as Asked[],
  calls,
  disturbances: [] as Disturbance[],
  /** The first is the start. */
  changes: [{ table: 0, from: 0, until: 0 }] as PriceChange[],
  /** Undefined: something happened after which more may be spent, as the manual says. */
  purse: purseOf(phase) as string | undefined,
  /** Whether all gateways have the same records, so that each states the bills of all. */
  isShared: phase.postgres !== undefined,
  /** One a gateway. */
  estates: Array.from({ length: phase.gateways }, emptyEstate),
  /** Rows of usage_records, as the files have lines. Undefined: the files are the records. */
  rows: undefined as Line[] | undefined,
  statements: [] as Statement[],
  receipts: [] as ReceiptAnswer[],
  /** What `budget show --json` says of an account, and the gateway whose command it was. */
  budgets: [] as { readonly gateway: number; readonly shown: Line }[],
  /** What is wrong so far: exit codes, lines on stderr, lines of files that are no JSON. */
  complaints: [] as string[],
});

/** Reads the files of this machine, or of a simulated one. What is not there is empty. */
const thisMachine = {
  namesIn: (folder: string): readonly string[] =>
    existsSync(folder) ? readdirSync(folder).sort() : [],
  textOf: (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : ""),
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
  function lineOf(text: string, path: string): Line {
    try {
      const line = JSON.parse(text) as Line;
      if (textOf(line) === text) return line;
    } catch {
      // It is a complaint like any other text that no line has.
    }
    complaints.push(`${path}: torn, or no line of JSON: ${text}`);
    return {};
  }
  function linesIn(path: string): Line[] {
    const texts = reader.textOf(join(dataDir, path)).split(/(?<=\n)/);
    return texts.filter(Boolean).map((text) => lineOf(text, path));
  }
  const filesIn = (folder: string): LinesFile[] =>
    reader
      .namesIn(join(dataDir, folder))
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => ({ name, lines: linesIn(join(folder, name)) }));
  const estate = estates[number]!;
  estate.segments = filesIn("spend");
  estate.usageFiles = filesIn("usage");
  estate.days = linesIn("days.jsonl");
}
