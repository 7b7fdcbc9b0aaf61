// The usage store in PostgreSQL. It yields exactly what the file store yields, because the lines of
// closed days have hashes of the records.
import { resolve } from "node:path";
import { gatewayInstanceId, dataDirFingerprint } from "../../scale/data-files/index.ts";
import {
  CopiedElsewhere,
  parseMoney,
  type Dimension,
  type LogCursor,
  type SumBy,
  StoreError,
  type StoreFault,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "../records/index.ts";
import { BooksFault } from "../days/index.ts";
import { openDatabase, type Database } from "./database.ts";
import * as sql from "./queries.ts";
import { RECORD, WHOLE_RECORD } from "./tables.ts";

/** The time limit of replaceDay(): enough for a hundred million records. */
const LONG_MS = 3_600_000;

/** Creates the store. The first query connects. Throws a ValidationError if `pg` is missing. */
export function createPostgresStore(address: string, dataDir: string): UsageStore {
  const database = openDatabase(address);
  const { run, close } = database;
  const source = (): string => gatewayInstanceId(dataDir);
  const place = (): string => dataDirFingerprint(dataDir);
  const ownIds = (): string => sql.usageIdStart(source());
  const where = (filter: UsageFilter): sql.Condition => sql.conditionOf(filter, source);
  /** The cursor that was last read or set. */
  let before = "{}";

  /** Runs SET_CURSOR, or ADD with `rows`. */
  async function moveCursor(sqlText: string, cursor: LogCursor, ...rows: string[]): Promise<void> {
    const text = JSON.stringify(cursor);
    const moved = await run(sqlText, source(), place(), text, before, ...rows);
    if (moved.length === 0) throw new StoreError(CURSOR_MOVED);
    before = text;
  }

  /** Makes the sums of a day anew from its records. */
  async function makeSums(day: string): Promise<void> {
    await run(sql.SET_SUMS, day, ownIds());
  }

  return {
    async cursor() {
      const [row] = await run<CursorRow>(sql.CURSOR, source(), place());
      const { cursor = {}, is_of_copy = false } = row ?? {};
      before = JSON.stringify(cursor);
      if (is_of_copy) throw new CopiedElsewhere(COPIED_ELSEWHERE);
      return cursor;
    },
    async inspect() {
      const others = await run<string>(sql.NOTE_PLACE, source(), place(), resolve(dataDir));
      return others.slice(0, 1).map(clonedFault);
    },
    async add(records, cursor) {
      await moveCursor(sql.ADD, cursor, sql.rowsOf(records)).catch((error: StoreError) => {
        const { code } = Object(error.cause) as { readonly code?: unknown };
        throw code === UNIQUE_VIOLATION ? new StoreError(CURSOR_LOST, { cause: error }) : error;
      });
    },
    days: async () => run<string>(sql.DAYS, ownIds()),
    async *linesOf(day) {
      const own = where({ day, ownOnly: true });
      let number = 0;
      for await (const records of readRecords(database.connect, WHOLE_RECORD, own)) {
        const lines = records.map((record) => {
          number += 1;
          return { text: JSON.stringify(record), record, number };
        });
        yield { lines };
      }
    },
    // PostgreSQL maintains its indexes, and linesOf() sorts records by their place in the log.
    async finish(day) {
      const [count] = await run<DayCount>(sql.COUNT_DAY, day, ownIds());
      if (count!.found < count!.stated) throw new BooksFault(lostRecords(day, count!));
      await makeSums(day);
    },
    replaceDay: async (day, records) => replaceDay(database, [day, ownIds()], records),
    // A damaged closed day does not prevent writing into a database. Its sums are read.
    acceptDamage: makeSums,
    setCursor: (cursor) => moveCursor(sql.SET_CURSOR, cursor),
    records: (filter) => readRecords(() => database.connect("reader"), RECORD, where(filter)),
    async find({ requestId, account, limit }) {
      if (requestId.includes("\0")) return []; // PostgreSQL has no such texts
      const found = await run<UsageRecord>(sql.FIND, requestId, account ?? null, limit);
      return [...found].reverse();
    },
    isOwn: ({ usage_id }) => usage_id.startsWith(sql.usageIdStart(source())),
    async sums<D extends Dimension>(filter: UsageFilter, by: readonly D[]) {
      const { text, values } = where(filter);
      const sums = await run<SumBy<D> & { cost: string }>(sql.sumsBy(by, text), ...values);
      return sums.map((sum) => ({ ...sum, cost: parseMoney(sum.cost) }));
    },
    close,
  };
}

/** The result of CURSOR. */
interface CursorRow {
  readonly cursor: LogCursor;
  /** Whether it is the cursor of a copy of the spend log. */
  readonly is_of_copy: boolean;
}

/** The result of COUNT_DAY. */
interface DayCount {
  readonly stated: number;
  readonly found: number;
}

const lostRecords = (day: string, { stated, found }: DayCount): string =>
  `the table usage_records has ${found} records of ${day}, and ${stated} were written: stop the ` +
  "gateway, run 'books rebuild' and start again";

/** PostgreSQL's error code for a row that exists already. */
const UNIQUE_VIOLATION = "23505";

/** The error for the operator if the database has records that the cursor does not count. */
const CURSOR_LOST =
  "records of this spend log are in the database already: if the table usage_cursors has them " +
  "under another source than the file gateway-id of data_dir, restore that file; if the row of " +
  "this source is gone or old, run 'books rebuild'";

/** The error for the operator if another statement has moved the cursor: the next pass retries. */
const CURSOR_MOVED =
  "usage.store: the table usage_cursors has moved on: the next pass looks at it again";

/** The error for the operator if a copy of the data_dir has moved the cursor. */
const COPIED_ELSEWHERE =
  "a copy of this data_dir has written into the same database with the same gateway-id: stop the " +
  "copy, run 'books rebuild' where the original is, and read \"chat-gateway help backup\" before " +
  "the copy runs again";

/** The fault of a data_dir whose copy is active too. `dataDir` is that of the copy. */
const clonedFault = (dataDir: string): StoreFault => ({
  event: "gateway_cloned",
  detail:
    `another copy of this data_dir (it calls itself ${dataDir}) writes into the same database ` +
    "with the same gateway-id: stop the copy, and read " +
    '"chat-gateway help backup" before it runs again',
});

/**
 * Yields records in batches, day by day in the order of the log. `record` is the SQL that makes a
 * record from a row.
 */
async function* readRecords(
  connect: () => ReturnType<Database["connect"]>,
  record: string,
  where: sql.Condition,
): AsyncGenerator<readonly UsageRecord[]> {
  const client = await connect();
  try {
    await client.query("BEGIN READ ONLY");
    await client.query(sql.openCursor(record, where.text), where.values);
    for (;;) {
      const { rows } = await client.query("FETCH 2000 FROM usage");
      if (rows.length === 0) return;
      yield rows.map(({ value }) => value as UsageRecord);
    }
  } finally {
    client.release(true);
  }
}

/** Replaces the records of a day: all of them or none. `own`: the parameters of DELETE_DAY. */
async function replaceDay(
  database: Database,
  own: readonly [day: string, usageIdStart: string],
  records: AsyncIterable<readonly UsageRecord[]>,
): Promise<void> {
  const client = await database.connect();
  const run = (text: string, ...values: unknown[]): Promise<unknown> =>
    client.query({ text, query_timeout: LONG_MS }, values);
  try {
    await run("BEGIN");
    await run(sql.DELETE_DAY, ...own);
    for await (const batch of records) await run(sql.PUT, sql.rowsOf(batch));
    await run(sql.SET_SUMS, ...own);
    await run("COMMIT");
  } finally {
    // Without a COMMIT nothing has changed.
    client.release(true);
  }
}
