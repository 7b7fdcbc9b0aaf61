// The usage store in PostgreSQL. What it yields is what the file store yields, to the letter: the
// lines of days have hashes of it.
import { resolve } from "node:path";
import type { LogCursor, UsageRecord, UsageStore, UsageStoreOptions } from "../records/index.ts";
import { clonedFault, COPIED_ELSEWHERE, CURSOR, NOTE_PLACE } from "./places.ts";
import { openDatabase } from "./pool.ts";
import {
  DAYS,
  filterValues,
  FIND,
  OPEN_DAY,
  openCursor,
  parseSum,
  sumsBy,
  usageIdPattern,
} from "./select.ts";
import { ADD, replaceDay, rowsOf, SET_CURSOR } from "./write.ts";

/**
 * Creates the store. It connects when it is first used. Throws a ValidationError if `pg` is not
 * installed.
 */
export function createPostgresStore(options: UsageStoreOptions): UsageStore {
  const { address, dataDir, gatewayInstanceId, place } = options;
  const { run, alone, batches, close } = openDatabase(address);
  const ownIds = (): string => usageIdPattern(gatewayInstanceId());

  return {
    async cursor() {
      const { rows } = await run(CURSOR, gatewayInstanceId(), place());
      const [row] = rows;
      if (row?.["is_of_copy"] === true) throw new Error(COPIED_ELSEWHERE);
      return (row?.["cursor"] ?? {}) as LogCursor;
    },
    async inspect() {
      const { rows } = await run(NOTE_PLACE, gatewayInstanceId(), place(), resolve(dataDir));
      return rows.slice(0, 1).map((row) => clonedFault(String(row["data_dir"])));
    },
    async add(records, cursor) {
      const text = JSON.stringify(cursor);
      await run(ADD, gatewayInstanceId(), place(), text, rowsOf(records));
    },
    async days() {
      const { rows } = await run(DAYS, ownIds());
      return rows.map(({ day }) => String(day));
    },
    async *linesOf(day) {
      for await (const rows of batches(OPEN_DAY, [ownIds(), day]))
        yield rows.map((row) => {
          const record = row["record"] as UsageRecord;
          return { text: JSON.stringify(record), record };
        });
    },
    // PostgreSQL keeps its indexes itself, and a record has its place in the log.
    finish: async () => undefined,
    replaceDay: (day, read) =>
      alone((client) => replaceDay(client, { day, ownIds: ownIds(), read })),
    async setCursor(cursor) {
      await run(SET_CURSOR, gatewayInstanceId(), place(), JSON.stringify(cursor));
    },
    async *records(filter) {
      const values = filterValues(filter, gatewayInstanceId);
      for await (const rows of batches(openCursor(filter.skip ?? 0), values)) {
        if (filter.cancel?.aborted) throw filter.cancel.reason;
        yield rows.map(({ record }) => record as UsageRecord);
      }
    },
    async find({ requestId, account, limit }) {
      const { rows } = await run(FIND, requestId, account ?? null, limit);
      return rows.map(({ record }) => record as UsageRecord).reverse();
    },
    async sums(filter, by) {
      const { rows } = await run(sumsBy(by), ...filterValues(filter, gatewayInstanceId));
      return rows.map(parseSum<(typeof by)[number]>);
    },
    close,
  };
}
