// The usage records that a verification expects: those of closed days from their trees, those of
// days without a head from the sealed segments.
import { existsSync } from "node:fs";
import {
  createLeafList,
  hasDetails,
  type Head,
  type HeadLine,
  isWholeTree,
  leafOf,
  readLeaves,
  recordLeaf,
  type SettledLine,
  type SortedLeaves,
  treeFile,
  treeOf,
  wholeLeafOf,
} from "../seals/index.ts";
import type { Findings } from "./findings.ts";

/** The beginning of a record whose usage_id the entry of its leaf has. */
const SPEND_ID = /^\{"usage_id":"sp_[0-9a-f]{32}"/;
/** Trees that are held in memory at once. Records stand about in the order of their days. */
const MAX_TREES = 4;

/** What proves a usage record. */
export type RecordProof = "head" | "log" | "nothing" | "wrong" | "again";

/** The expected records. */
export interface ExpectedRecords {
  /** Whether a head has a record of a closed day, or cannot say, because its tree is damaged. */
  isSealed(leaf: Buffer, day: string): boolean;
  /** Says what proves a record. `line`: as it stands in a month's file. */
  judge(line: string, day: string): RecordProof;
  /**
   * Names each record that was expected, and that judge() was not asked about. Records for which
   * `isAwaited` says so are on their way, unless their day was closed before the last one.
   */
  missing(isAwaited: (usageId: string) => boolean, report: MissingRecord): void;
}

/** Gets a record that is missing. `by`: what has it. */
export type MissingRecord = (usageId: string, by: string) => void;

/** The records of segments whose days have no head yet. */
export interface OpenRecords {
  take(settled: SettledLine): void;
  sorted(): Promise<OpenLeaves>;
}

interface OpenLeaves {
  readonly sealed: SortedLeaves;
  /** Of the same records, with what receipts say of them. */
  readonly whole: SortedLeaves;
  readonly unsealed: SortedLeaves;
  /** The first day of a sealed record. Undefined: there is none. */
  readonly firstDay: string | undefined;
}

/** Collects records that ended after `lastDay`, the day of the last head. */
export function createOpenRecords(lastDay: string): OpenRecords {
  const sealed = createLeafList();
  const whole = createLeafList();
  const unsealed = createLeafList();
  let firstDay: string | undefined;
  return {
    take({ record, isSealed }) {
      const day = record.ended_at.slice(0, 10);
      if (day <= lastDay) return;
      if (isSealed && (firstDay === undefined || day < firstDay)) firstDay = day;
      (isSealed ? sealed : unsealed).add(record.usage_id, recordLeaf(record));
      if (isSealed) whole.add(record.usage_id, wholeLeafOf(JSON.stringify(record)));
    },
    sorted: async () => ({
      sealed: await sealed.sorted(),
      whole: await whole.sorted(),
      unsealed: await unsealed.sorted(),
      firstDay,
    }),
  };
}

/** A closed day whose tree is good. */
interface ProvedDay {
  readonly head: Head;
  /** One byte for each leaf: whether a record has it. */
  readonly met: Uint8Array;
}

/** Closed days, and where differences go. */
export interface DaySources {
  /** The folder of the seals. */
  readonly dir: string;
  readonly heads: readonly HeadLine[];
  readonly findings: Findings;
}

/** Verifies the trees of all heads, and brings together what is expected. */
export async function expectedRecords(
  sources: DaySources,
  open: OpenLeaves,
): Promise<ExpectedRecords> {
  const { dir, heads, findings } = sources;
  const days = await verifyTrees(sources);
  const late = createLate(heads);
  const openMet = new Uint8Array(open.sealed.count);
  const cache = createTreeCache(dir);
  const lastDay = heads.at(-1)?.head.day ?? "";
  const firstDay = heads[0]?.head.day ?? open.firstDay;
  const headDays = new Set(heads.map(({ head }) => head.day));

  /** A record of a day without a head. */
  function judgeOpen(line: string, day: string): RecordProof {
    const leaf = leafOf(line);
    const index = open.sealed.indexOf(leaf);
    if (index >= 0) {
      if (hasDetails(line) && open.whole.indexOf(wholeLeafOf(line)) < 0) return "wrong";
      const isFirst = openMet[index] === 0;
      openMet[index] = 1;
      return isFirst ? "log" : "again";
    }
    const isOlder = firstDay === undefined || day < firstDay;
    return isOlder || open.unsealed.indexOf(leaf) >= 0 ? "nothing" : "wrong";
  }

  return {
    isSealed(leaf, day) {
      const proved = days.get(day);
      return !proved || late.has(leaf.toString("hex")) || cache.get(proved.head).indexOf(leaf) >= 0;
    },
    judge(line, day) {
      const leaf = leafOf(line);
      if (day > lastDay || !headDays.has(day)) return judgeOpen(line, day);
      const proof = late.judge(leaf.toString("hex"));
      if (proof) return proof;
      const proved = days.get(day);
      if (!proved) return "nothing"; // Its tree is missing or damaged, which is a finding.
      const leaves = cache.get(proved.head);
      const index = leaves.indexOf(leaf);
      if (index < 0) return "wrong";
      if (!line.includes(leaves.idAt(index)) && SPEND_ID.test(line))
        findings.add(`seals/${day}.tree`, `names record ${index} wrongly: the file was changed`);
      const isFirst = proved.met[index] === 0;
      proved.met[index] = 1;
      return isFirst ? "head" : "again";
    },
    missing(isAwaited, report) {
      const reportAll = (found: readonly Unmet[], by: string, mayBeAwaited: boolean): void => {
        for (const { id } of found) if (!mayBeAwaited || !isAwaited(id)) report(id, by);
      };
      // A day is closed after everything was copied, but for what was settled during the copying.
      for (const [day, { head, met }] of days) {
        const found = unmet(cache.get(head), met).filter(({ leaf }) => !late.isReplaced(leaf));
        reportAll(found, `the head of ${day}`, day === lastDay);
      }
      reportAll(unmet(open.sealed, openMet), "the spend log", true);
      for (const found of late.unmet())
        reportAll([found], "the head of a later day", found.namedOn === lastDay);
    },
  };
}

/** A leaf that no record has. */
interface Unmet {
  readonly id: string;
  /** In hexadecimal digits. */
  readonly leaf: string;
}

function unmet(leaves: SortedLeaves, met: Uint8Array): Unmet[] {
  const found: Unmet[] = [];
  met.forEach((isMet, index) => {
    if (isMet === 1) return;
    found.push({ id: leaves.idAt(index), leaf: leaves.leafAt(index).toString("hex") });
  });
  return found;
}

/** The records that heads of later days than their own name. */
function createLate(heads: readonly HeadLine[]) {
  const replaced = new Set(heads.flatMap(({ head }) => head.replaced.map(({ leaf }) => leaf)));
  const expected = new Map(
    heads.flatMap(({ head }) =>
      head.late.map(({ leaf, usage_id: id }) => [leaf, { leaf, id, namedOn: head.day }] as const),
    ),
  );
  const met = new Set<string>();
  return {
    /** Undefined: no head of a later day names the record. */
    judge(leaf: string): RecordProof | undefined {
      if (!expected.has(leaf)) return undefined;
      const isFirst = !met.has(leaf);
      met.add(leaf);
      return isFirst ? "head" : "again";
    },
    has: (leaf: string): boolean => expected.has(leaf),
    isReplaced: (leaf: string): boolean => replaced.has(leaf),
    /** `namedOn`: the day of the head that names the record. */
    unmet: (): (Unmet & { readonly namedOn: string })[] =>
      [...expected.values()].filter(({ leaf }) => !met.has(leaf) && !replaced.has(leaf)),
  };
}

async function verifyTrees({
  dir,
  heads,
  findings,
}: DaySources): Promise<ReadonlyMap<string, ProvedDay>> {
  const days = new Map<string, ProvedDay>();
  for (const { head } of heads) {
    const path = treeFile(dir, head.day);
    const where = `seals/${head.day}.tree`;
    if (!existsSync(path)) {
      findings.add(where, "is not there: the usage records of that day cannot be proved");
      continue;
    }
    const leaves = readLeaves(path, head.records ?? 0);
    const tree = leaves && (await treeOf(leaves));
    if (!tree || tree.root !== head.root || !isWholeTree(path, tree)) {
      findings.add(where, "is not the tree that the head of that day has: it was changed or cut");
      if (tree?.root !== head.root) continue;
    }
    days.set(head.day, { head, met: new Uint8Array(leaves?.count ?? 0) });
  }
  return days;
}

/** Reads the leaves of days again when they are needed, and holds some of them. */
function createTreeCache(dir: string) {
  const held = new Map<string, SortedLeaves>();
  return {
    get({ day, records }: Head): SortedLeaves {
      const known = held.get(day) ?? readLeaves(treeFile(dir, day), records ?? 0)!;
      held.delete(day);
      held.set(day, known);
      const [oldest = day] = held.keys();
      if (held.size > MAX_TREES) held.delete(oldest);
      return known;
    },
  };
}
