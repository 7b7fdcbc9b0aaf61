// What receipts say of records beside their columns (`details`), where no head has the bytes: the
// leaf of a record has its columns only, so details are compared with the lines of the spend log,
// as long as these are there.
import {
  createLeafList,
  leafOf,
  recordLeaf,
  type SettledLine,
  wholeLeafOf,
} from "../seals/index.ts";

/** What proves the details of a record: a sealed line, nothing, or they are not as it has them. */
export type DetailsProof = "log" | "nothing" | "wrong";

/** The sealed lines that details are compared with. */
export interface SealedDetails {
  /** `line`: the record as it stands in the file of its month. */
  judge(line: string): DetailsProof;
}

/** The same while segments are read. */
export interface DetailsCollection {
  take(settled: SettledLine): void;
  sorted(): Promise<SealedDetails>;
}

/** Collects records by what `isNeeded` says of the day on which they ended: it takes memory. */
export function collectDetails(isNeeded: (day: string) => boolean): DetailsCollection {
  const columns = createLeafList();
  const whole = createLeafList();
  return {
    take({ record, isSealed }) {
      if (!isSealed || !isNeeded(record.ended_at.slice(0, 10))) return;
      columns.add(record.usage_id, recordLeaf(record));
      whole.add(record.usage_id, wholeLeafOf(JSON.stringify(record)));
    },
    async sorted() {
      const known = await columns.sorted();
      const exact = await whole.sorted();
      return {
        judge(line) {
          if (exact.indexOf(wholeLeafOf(line)) >= 0) return "log";
          return known.indexOf(leafOf(line)) >= 0 ? "wrong" : "nothing";
        },
      };
    },
  };
}
