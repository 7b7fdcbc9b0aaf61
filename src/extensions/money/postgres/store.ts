// The usage store in PostgreSQL. What it yields is what the file store yields, to the letter: the
// lines of days have hashes of it.
import { resolve } from "node:path";
import type { LogCursor, UsageStore, UsageStoreOptions } from "../records/index.ts";
import { clonedFault, COPIED_ELSEWHERE, CURSOR, NOTE_PLACE } from "./places.ts";
import { openDatabase } from "./pool.ts";
import {
  conditionOf,
  DAYS,
  FIND,
  parseSum,
  readRecords,
  recordsIn,
  sumsBy,
  usageIdPattern,
} from "./select.ts";
import { RECORD, WHOLE_RECORD } from "./tables.ts";
import { ADD, replaceDay, rowsOf, SET_CURSOR } from "./write.ts";

/**
 * Creates the store. It connects when it is first used. Throws a ValidationError if `pg` is not
 * installed.
 */
export function createPostgresStore(options: UsageStoreOptions): UsageStore {
  const { address, dataDir, gatewayInstanceId, place } = options;
  const database = openDatabase(address);
  const { run, close } = database;
  const ownIds = (): string => usageIdPattern(gatewayInstanceId());

  return {
    async cursor() {
      const [row] = await run(CURSOR, gatewayInstanceId(), place());
      if (row?.["is_of_copy"] === true) throw new Error(COPIED_ELSEWHERE);
      return (row?.["cursor"] ?? {}) as LogCursor;
    },
    async inspect() {
      const rows = await run(NOTE_PLACE, gatewayInstanceId(), place(), resolve(dataDir));
      return rows.slice(0, 1).map((row) => clonedFault(String(row["data_dir"])));
    },
    async add(records, cursor) {
      await run(ADD, gatewayInstanceId(), place(), JSON.stringify(cursor), rowsOf(records));
    },
    days: async () => (await run(DAYS, ownIds())).map((row) => String(row["day"])),
    async *linesOf(day) {
      const where = conditionOf({ day, ownOnly: true }, gatewayInstanceId);
      for await (const records of readRecords(database, { record: WHOLE_RECORD, where, skip: 0 }))
        yield records.map((record) => ({ text: JSON.stringify(record), record }));
    },
    // PostgreSQL keeps its indexes itself, and a record has its place in the log.
    finish: async () => undefined,
    replaceDay: async (day, records) => replaceDay(database, day, ownIds(), records),
    async setCursor(cursor) {
      await run(SET_CURSOR, gatewayInstanceId(), place(), JSON.stringify(cursor));
    },
    async *records(filter, skip = 0) {
      const where = conditionOf(filter, gatewayInstanceId);
      yield* readRecords(database, { record: RECORD, where, skip });
    },
    async find({ requestId, account, limit }) {
      return recordsIn(await run(FIND, requestId, account ?? null, limit)).reverse();
    },
    async sums(filter, by) {
      const where = conditionOf(filter, gatewayInstanceId);
      const rows = await run(sumsBy(by, where), ...where.values);
      return rows.map(parseSum<(typeof by)[number]>);
    },
    close,
  };
}
