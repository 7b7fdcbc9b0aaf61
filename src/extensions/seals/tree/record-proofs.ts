// The proof of one record, for receipts.
import { existsSync, statSync } from "node:fs";
import type { UsageRecord } from "../../usage-records/index.ts";
import { proveLeaf, treeFile } from "./day-tree.ts";
import { headsFile, readHeads, sealsDir, type HeadLine } from "../heads/heads.ts";
import { recordLeaf } from "../heads/make-head.ts";

/** Proves that a record was in the books when the head of its day was signed. */
export interface HeadProof {
  readonly type: "head";
  /** The day on which the record ended. */
  readonly day: string;
  /** The SHA-256 of the line of the head. */
  readonly head: string;
  /** The number of records in the tree, and the place of this one. */
  readonly records: number;
  readonly index: number;
  /** The leaf of the record: the SHA-256 of a zero byte and its line. */
  readonly leaf: string;
  /** From the root down; see the page `seals` of the manual. */
  readonly hashes: readonly string[];
}

/** Finds proofs of records in a data_dir. */
export interface RecordProofs {
  /**
   * The proof of a record whose day has its head. Null: it has none, the record is not in it, or
   * head or tree cannot be read.
   */
  ofRecord(record: UsageRecord): HeadProof | null;
}

/** Finds proofs in the files of a data_dir. The heads are read again when their file is another. */
export function createRecordProofs(dataDir: string): RecordProofs {
  const dir = sealsDir(dataDir);
  let heads = new Map<string, HeadLine>();
  /** Changes when the file does. */
  let version = "";

  function headOf(day: string): HeadLine | undefined {
    const stat = statSync(headsFile(dir), { throwIfNoEntry: false });
    const found = stat ? `${stat.ino} ${stat.size} ${stat.mtimeMs}` : "";
    if (found !== version) heads = new Map(readHeads(dir).map((line) => [line.head.day, line]));
    version = found;
    return heads.get(day);
  }

  function proofOfLeaf({ head, hash }: HeadLine, leaf: Buffer): HeadProof | null {
    const { day } = head;
    const path = treeFile(dir, day);
    const records = head.records ?? 0;
    const proof = existsSync(path) ? proveLeaf(path, records, leaf) : undefined;
    return proof
      ? { type: "head", day, head: hash, records, leaf: leaf.toString("hex"), ...proof }
      : null;
  }

  return {
    ofRecord(record) {
      try {
        const line = headOf(record.ended_at.slice(0, 10));
        return line ? proofOfLeaf(line, recordLeaf(record)) : null;
      } catch {
        return null; // A receipt is worth more than its proof. `seal verify` says what is wrong.
      }
    },
  };
}
