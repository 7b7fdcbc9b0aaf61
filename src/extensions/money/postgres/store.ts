// The usage store in PostgreSQL. It yields exactly what the file store yields, because the lines of
// closed days have hashes of the records.
import { resolve } from "node:path";
import { gatewayInstanceId, placeOf } from "../../scale/data-files/index.ts";
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

/** Enough to put a day of a hundred million records in place. */
const LONG_MS = 3_600_000;

/**
 * Creates the store. It connects when it is first used. Throws a ValidationError if `pg` is not
 * installed.
 */
export function createPostgresStore(address: string, dataDir: string): UsageStore {
  const database = openDatabase(address);
  const { run, close } = database;
  const source = (): string => gatewayInstanceId(dataDir);
  const place = (): string => placeOf(dataDir);
  const ownIds = (): string => sql.usageIdPattern(source());
  const where = (filter: UsageFilter): sql.Condition => sql.conditionOf(filter, source);
  /** The cursor as it was read or set last. */
  let before = "{}";

  /** `rows`: of records that are added. */
  async function move(statement: string, cursor: LogCursor, ...rows: string[]): Promise<void> {
    const text = JSON.stringify(cursor);
    const moved = await run(statement, source(), place(), text, before, ...rows);
    if (moved.length === 0) throw new StoreError(MOVED);
    before = text;
  }

  return {
    async cursor() {
      const [known] = await run<Known>(sql.CURSOR, source(), place());
      const { cursor = {}, is_of_copy = false } = known ?? {};
      before = JSON.stringify(cursor);
      if (is_of_copy) throw new CopiedElsewhere(COPIED_ELSEWHERE);
      return cursor;
    },
    async inspect() {
      const others = await run<string>(sql.NOTE_PLACE, source(), place(), resolve(dataDir));
      return others.slice(0, 1).map(clonedFault);
    },
    async add(records, cursor) {
      await move(sql.ADD, cursor, sql.rowsOf(records)).catch((error: StoreError) => {
        const { code } = Object(error.cause) as { readonly code?: unknown };
        throw code === UNIQUE_VIOLATION ? new StoreError(CURSOR_LOST, { cause: error }) : error;
      });
    },
    days: async () => run<string>(sql.DAYS, ownIds()),
    async *linesOf(day) {
      const own = where({ day, ownOnly: true });
      let line = 1;
      for await (const records of readRecords(database.connect, WHOLE_RECORD, own)) {
        const lines = records.map((record) => ({ text: JSON.stringify(record), record }));
        yield { lines, first: line };
        line += lines.length;
      }
    },
    // PostgreSQL maintains its indexes, and linesOf() sorts records by their place in the log.
    async finish(day) {
      const [count] = await run<DayCount>(sql.COUNT_DAY, source(), day, ownIds());
      if (count && count.found < count.stated) throw new BooksFault(lostRecords(day, count));
    },
    replaceDay: async (day, records) =>
      replaceDay(database, { source: source(), day, ownIds: ownIds() }, records),
    // Only the files of a day have to be as its line says before others are written.
    giveUp: async () => undefined,
    setCursor: (cursor) => move(sql.SET_CURSOR, cursor),
    async *records(filter, skip = 0) {
      const connect = () => database.connect("reader");
      yield* readRecords(connect, RECORD, where(filter), skip);
    },
    async find({ requestId, account, limit }) {
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

/** What CURSOR finds. */
interface Known {
  readonly cursor: LogCursor;
  /** Whether it says how far the spend log of a copy was copied. */
  readonly is_of_copy: boolean;
}

/** What COUNT_DAY finds. */
interface DayCount {
  readonly stated: number;
  readonly found: number;
}

const lostRecords = (day: string, { stated, found }: DayCount): string =>
  `the table usage_records has ${found} records of ${day}, and ${stated} were written: stop the ` +
  "gateway, run 'books rebuild' and start again";

/** The code of PostgreSQL for a row that is there already. */
const UNIQUE_VIOLATION = "23505";

/** The error for the operator if records are there that the cursor of this gateway-id lacks. */
const CURSOR_LOST =
  "records of this spend log are in the database already: if the table usage_cursors has them " +
  "under another source than the file gateway-id of data_dir, restore that file; if the row of " +
  "this source is gone or old, run 'books rebuild'";

/** The error for the operator if a statement came after a later one: the next pass goes on. */
const MOVED = "usage.store: the table usage_cursors has moved on: the next pass looks at it again";

/** The error for the operator if a copy of the data_dir has moved the cursor. */
const COPIED_ELSEWHERE =
  "a copy of this data_dir has written into the same database with the same gateway-id: stop the " +
  "copy, run 'books rebuild' where the original is, and read \"chat-gateway help backup\" before " +
  "the copy runs again";

/** The fault of a data_dir whose copy is at work too. `dataDir` is that of the copy. */
const clonedFault = (dataDir: string): StoreFault => ({
  event: "gateway_cloned",
  detail:
    `another copy of this data_dir (it calls itself ${dataDir}) writes into the same database ` +
    "with the same gateway-id: stop the copy, and read " +
    '"chat-gateway help backup" before it runs again',
});

/**
 * Yields all rows but the first `skip` in batches, day by day in the order of the log. `record`: a
 * row's record as SQL.
 */
async function* readRecords(
  connect: () => ReturnType<Database["connect"]>,
  record: string,
  where: sql.Condition,
  skip = 0,
): AsyncGenerator<readonly UsageRecord[]> {
  const client = await connect();
  try {
    await client.query("BEGIN READ ONLY");
    await client.query(sql.openCursor(record, where.text, skip), where.values);
    for (;;) {
      const { rows } = await client.query("FETCH 2000 FROM usage");
      if (rows.length === 0) return;
      yield rows.map(({ value }) => value as UsageRecord);
    }
  } finally {
    client.release(true);
  }
}

/** Puts records in the place of all those of a day whose usage_ids match `ownIds`: all or none. */
async function replaceDay(
  database: Database,
  own: { readonly source: string; readonly day: string; readonly ownIds: string },
  records: AsyncIterable<readonly UsageRecord[]>,
): Promise<void> {
  const { source, day, ownIds } = own;
  const client = await database.connect();
  const run = (text: string, ...values: unknown[]): Promise<unknown> =>
    client.query({ text, query_timeout: LONG_MS }, values);
  try {
    await run("BEGIN");
    await run(sql.DELETE_DAY, day, ownIds);
    for await (const batch of records) await run(sql.PUT, sql.rowsOf(batch));
    await run(sql.SET_DAY, source, day, ownIds);
    await run("COMMIT");
  } finally {
    // Without a COMMIT nothing has changed.
    client.release(true);
  }
}
