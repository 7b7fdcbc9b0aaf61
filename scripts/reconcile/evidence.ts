// The evidence about one phase when it is over: what the provider and the clients recorded, what
// the gateways' files contain, and what their commands and HTTP paths answered. It is plain data,
// so that the self-test can corrupt a copy of it.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ClientRequest } from "./client.ts";
import { cappedBudgetOf, type Phase } from "./plan.ts";
import type { Call } from "./provider.ts";

/** A line of a file, or another document of the gateway. Nobody has checked what it contains. */
export type JsonObject = Record<string, any>;

/** A file with a JSON object on each line. */
export interface JsonLinesFile {
  name: string;
  readonly lines: JsonObject[];
}

/** What one gateway left behind, and what its commands print. */
const emptyGatewayEvidence = () => ({
  /** spend/*.jsonl. */
  segments: [] as JsonLinesFile[],
  /** days.jsonl. */
  days: [] as JsonObject[],
  /** usage/YYYY-MM-DD.jsonl; none with PostgreSQL. */
  usageFiles: [] as JsonLinesFile[],
  /** `audit --json`. */
  audit: {} as JsonObject,
  /** `seal verify --json` of the files and the heads taken earlier, with the public key. */
  verify: {} as JsonObject,
  /** The budgets in /status of the running gateway, when no request was in flight. */
  live: [] as JsonObject[],
});

/** An answer to GET /v1/requests/ID, after the days of the run were closed. */
export interface ReceiptAnswer {
  /** The gateway that answered. */
  readonly gateway: number;
  readonly account: string;
  readonly id: string;
  status: number;
  readonly body: JsonObject;
}

/** A monthly statement of one account. */
export interface Statement {
  /** The gateway whose command printed it. */
  readonly gateway: number;
  readonly account: string;
  readonly month: string;
  /** The arguments of the command, without its format. */
  readonly args: readonly string[];
  readonly json: JsonObject;
  csv: string;
  /** The sealed statement, and `seal verify --json` of it. Absent: nothing is sealed. */
  sealed?: { readonly text: JsonObject; readonly verification: JsonObject };
}

/** A span of time, in milliseconds of the wall clock. */
export interface Period {
  readonly from: number;
  readonly until: number;
}

/** A failure of the environment of a gateway. */
export interface Disturbance extends Period {
  /**
   * "kill" and "kill worker": a gateway or one of its workers was killed. The other kinds only
   * happen in a simulation. "power": the machine lost power, and may have lost what was written in
   * the last second. "provider": a connection to the provider was reset or stalled. "stop": the
   * gateway was told to stop, and closed connections on which no request had arrived. "freeze": the
   * gateway's process was suspended, so everything was late. "store lost": the shared store of
   * limits and budgets restarted empty or with an older state.
   */
  readonly kind: "kill" | "kill worker" | "power" | "provider" | "stop" | "freeze" | "store lost";
  /** The number of the gateway. Absent: it concerned all gateways. */
  readonly gateway?: number;
}

/** Another price table came into force: for some requests from `from` on, for all after `until`. */
export interface PriceChange extends Period {
  /** The index in TABLES. */
  readonly table: number;
}

/** The evidence about one phase. */
export type Evidence = ReturnType<typeof createEvidence>;

/** `calls`: the provider's ledger, by the serial numbers of the clients' requests. */
export const createEvidence = (phase: Phase, calls: Map<number, readonly Call[]>) => ({
  phase: phase.name,
  /** As Phase.isReference. */
  isReference: phase.isReference === true,
  /** What the clients recorded. */
  requests: [] as ClientRequest[],
  calls,
  disturbances: [] as Disturbance[],
  /** The first one is the start. */
  changes: [{ table: 0, from: 0, until: 0 }] as PriceChange[],
  /** The budget of the account CAPPED. Undefined: it may be overspent, as the manual says. */
  cappedBudget: cappedBudgetOf(phase) as string | undefined,
  /** Whether all gateways share their usage records, so that each states the bills of all. */
  isShared: phase.postgres !== undefined,
  /** By the gateways' numbers. */
  gateways: Array.from({ length: phase.gateways }, emptyGatewayEvidence),
  /** Rows of usage_records in the form of the files' lines. Undefined: the records are in files. */
  rows: undefined as JsonObject[] | undefined,
  statements: [] as Statement[],
  receipts: [] as ReceiptAnswer[],
  /** `budget show --json` of an account, and the gateway whose command printed it. */
  budgets: [] as { readonly gateway: number; readonly shown: JsonObject }[],
  /** Errors while collecting: exit codes, unexpected lines on stderr, lines that are no JSON. */
  complaints: [] as string[],
});

/** Reads the files of this machine. A missing folder or file counts as empty. */
const localReader = {
  namesIn: (folder: string): readonly string[] =>
    existsSync(folder) ? readdirSync(folder).sort() : [],
  textOf: (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : ""),
};

/** The text of a line in the gateway's files. */
export const textOf = (line: JsonObject): string => `${JSON.stringify(line)}\n`;

/** Adds the files of a gateway to the evidence. A simulation has a `reader` of its own. */
export function readFiles(
  { gateways, complaints }: Evidence,
  gateway: number,
  dataDir: string,
  reader = localReader,
): void {
  function parseLine(text: string, path: string): JsonObject {
    try {
      const line = JSON.parse(text) as JsonObject;
      if (textOf(line) === text) return line;
    } catch {
      // Reported below, like JSON that the gateway would write differently.
    }
    complaints.push(`${path}: torn, or no line of JSON: ${text}`);
    return {};
  }
  function linesIn(path: string): JsonObject[] {
    const texts = reader.textOf(join(dataDir, path)).split(/(?<=\n)/);
    return texts.filter(Boolean).map((text) => parseLine(text, path));
  }
  const filesIn = (folder: string): JsonLinesFile[] =>
    reader
      .namesIn(join(dataDir, folder))
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => ({ name, lines: linesIn(join(folder, name)) }));
  Object.assign(gateways[gateway]!, {
    segments: filesIn("spend"),
    usageFiles: filesIn("usage"),
    days: linesIn("days.jsonl"),
  });
}
