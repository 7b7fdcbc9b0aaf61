// A simulated PostgreSQL: a model of the statements about usage records that gateways send, and the
// part of the package `pg` that they use. A statement is atomic. Its connection may break after it
// has run, and then the gateway cannot know whether it has.

import { isDeepStrictEqual } from "node:util";
import * as sql from "../../src/extensions/money/postgres/queries.ts";
import { MIGRATE, WHOLE_RECORD } from "../../src/extensions/money/postgres/tables.ts";
import {
  createSummer,
  type Dimension,
  type UsageRecord,
} from "../../src/extensions/money/records/index.ts";
import { formatMoney } from "../../src/core/ledger/price.ts";
import type { JsonObject } from "../reconcile/evidence.ts";
import { systemError } from "./disk.ts";
import type { SimProcess, Simulator } from "./simulator.ts";

/** The result of a statement: one value a row. */
type Found = readonly unknown[];
/** The parameters of a statement: `$1` and so on. */
type Values = readonly string[];

/** Converts a row that a gateway inserts to the record that it reads later. */
function recordOf({
  log_segment: segment,
  log_line: line,
  log_sha256: sha256,
  ...row
}: JsonObject) {
  return { ...row, log: { segment, line, sha256 } } as JsonObject;
}

const MONTH = /day >= (\$\d)::date AND day < \$\d::date \+ interval '1 month'/;
const STARTS = /^left\(usage_id, length\(\$(\d)\)\) = \$\d$/;
const COMPARES = /^(?:coalesce\()?(\w+)(?:, ''\))? (=|>=|<=) \$(\d)$/;

/** Whether a record meets one condition of a WHERE clause. */
function isMet(test: string, values: Values, record: JsonObject): boolean {
  const sent = (place: string | undefined): string => values[Number(place) - 1]!;
  const [, start] = STARTS.exec(test) ?? [];
  if (start !== undefined) return record["usage_id"].startsWith(sent(start));
  const [, column, operator, place] = COMPARES.exec(test) ?? [];
  if (column === undefined) throw new Error(`the model does not know this test: ${test}`);
  const [actual, wanted] = [record[column] ?? "", sent(place)];
  if (column === "month") return record["day"].slice(0, 7) === wanted.slice(0, 7);
  if (operator === "=") return actual === wanted;
  return operator === ">=" ? actual >= wanted : actual <= wanted;
}

/** The sums of a statement by sumsBy(). */
function sumsIn(text: string, records: readonly UsageRecord[]): Found {
  const by = /GROUP BY (.*) HAVING/.exec(text)![1]!.match(/\w+/g) ?? [];
  const summer = createSummer([...by] as Dimension[]);
  for (const record of records) summer.addRecord(record);
  return summer.sums().map((sum) => ({ ...sum, cost: formatMoney(sum.cost) }));
}

/** The tables. Exported for the test that compares them with a real server. */
export function createTables() {
  /** By their usage_id. */
  const records = new Map<string, JsonObject>();
  /** By source. */
  const cursors = new Map<string, unknown>();
  function matching(where: string, values: Values): JsonObject[] {
    const tests = where.replace(MONTH, "month = $1").split(" AND ");
    const isMatch = (record: JsonObject) =>
      tests.every((test) => test === "true" || isMet(test, values, record));
    return [...records.values()].filter(isMatch);
  }

  /** Sets a cursor, and inserts rows if there are any. */
  function add([source, _place, cursor, before, rows = "[]"]: Values): Found {
    const stored = cursors.get(source!);
    if (stored !== undefined && !isDeepStrictEqual(stored, JSON.parse(before!))) return [];
    const added = (JSON.parse(rows) as JsonObject[]).map(recordOf);
    const ids = new Set(added.map(({ usage_id }) => usage_id));
    if (ids.size < added.length || [...ids].some((id) => records.has(id)))
      throw Object.assign(new Error("duplicate key"), { code: "23505" });
    cursors.set(source!, JSON.parse(cursor!));
    for (const record of added) records.set(record["usage_id"], record);
    return [1];
  }

  /** `account`: null for all. */
  function find([id, account, limit]: Values): Found {
    const key = ({ ended_at, usage_id }: JsonObject): string => `${ended_at} ${usage_id}`;
    return matching("gateway_request_id = $1", [id!])
      .filter((record) => account === null || record["account"] === account)
      .sort((one, other) => (key(one) > key(other) ? -1 : 1))
      .slice(0, Number(limit));
  }

  /** The sums are those of the records: statements that change records change both. */
  function countDay(values: Values): Found {
    const found = matching("day = $1 AND left(usage_id, length($2)) = $2", values).length;
    return [{ stated: found, found }];
  }

  function daysOf(values: Values): Found {
    const own = matching("left(usage_id, length($1)) = $1", values);
    return [...new Set(own.map(({ day }) => day))].sort();
  }

  function cursorOf([source]: Values): Found {
    const cursor = cursors.get(source!);
    return cursor === undefined ? [] : [{ cursor, is_of_copy: false }];
  }

  const statements = new Map<string, (values: Values) => Found>([
    [MIGRATE, () => []],
    // No simulation copies a data_dir.
    [sql.NOTE_PLACE, () => []],
    [sql.CURSOR, cursorOf],
    [sql.SET_CURSOR, add],
    [sql.ADD, add],
    [sql.FIND, find],
    [sql.COUNT_DAY, countDay],
    [sql.SET_SUMS, () => []],
    [sql.DAYS, daysOf],
  ]);

  /** The records of a cursor, in the order of the log. */
  function ordered(text: string, values: Values): JsonObject[] {
    const key = ({ day, log, usage_id }: JsonObject) =>
      `${day} ${log.segment} ${String(log.line).padStart(9, "0")} ${usage_id}`;
    return matching(/WHERE (.*) ORDER BY/s.exec(text)![1]!, values)
      .sort((one, other) => (key(one) < key(other) ? -1 : 1))
      .map(({ details, log, ...record }) =>
        text.includes(WHOLE_RECORD) ? { ...record, details, log } : record,
      );
  }

  function run(text: string, values: Values): Found {
    const statement = statements.get(text);
    if (statement) return statement(values);
    const [, where] = /WHERE (.*?)\s+GROUP BY/s.exec(text) ?? [];
    if (where === undefined) throw new Error(`the model does not know this statement: ${text}`);
    return sumsIn(text, matching(where, values) as unknown as UsageRecord[]);
  }

  return { run, ordered, all: () => [...records.values()] };
}

/** Runs a statement. An error without a code is one of the model, and fails the simulation. */
function outcomeOf<T>(run: () => T): { readonly found?: T; readonly error?: unknown } {
  try {
    return { found: run() };
  } catch (error) {
    if (!("code" in Object(error))) throw error;
    return { error };
  }
}

/** The server. */
export type Postgres = ReturnType<typeof createPostgres>;

/** Starts the server. */
export function createPostgres(sim: Simulator) {
  const server = sim.createProcess("postgres");
  const tables = createTables();
  /** `slowMs` delays all answers. Increasing `connections` breaks all connections opened before. */
  const faults = { isDown: false, slowMs: 0, connections: 0 };
  const latency = (): number => 0.1 + 0.8 * sim.random.random();

  /** Runs something on the server. `sentOver`: the value of faults.connections when it was sent. */
  function ask<T>(owner: SimProcess, run: () => T, sentOver = faults.connections): Promise<T> {
    return new Promise((resolve, reject) => {
      const broken = (): void => reject(new Error("Connection terminated unexpectedly"));
      function answer(act: () => void): void {
        sim.after(latency() + faults.slowMs, owner, "an answer of postgres", act);
      }
      sim.after(latency(), server, "a statement", () => {
        if (faults.isDown) return answer(() => reject(systemError("ECONNREFUSED", "connect")));
        if (faults.connections !== sentOver) return answer(broken);
        const { found, error } = outcomeOf(run);
        return answer(() => {
          if (faults.connections !== sentOver) broken();
          else if (error) reject(error);
          else resolve(found as T);
        });
      });
    });
  }

  const rowsOf = (found: Found) => ({ rows: structuredClone(found).map((value) => ({ value })) });

  /** A connection with a cursor. */
  function createClient(owner: SimProcess) {
    const opened = faults.connections;
    let waiting: Found = [];
    function step(text: string, values: Values): Found {
      const found = waiting;
      waiting = text.startsWith("DECLARE") ? tables.ordered(text, values) : [];
      return text.startsWith("FETCH") ? found : [];
    }
    return {
      on: () => undefined,
      release: () => undefined,
      query: (text: string, values: Values = []) =>
        ask(owner, () => rowsOf(step(text, values)), opened),
    };
  }

  return {
    faults,
    records: tables.all,
    /** The package `pg` of a process. */
    packageFor: (owner: SimProcess) => ({
      Pool: class {
        on = () => undefined;
        end = async () => undefined;
        connect = () => ask(owner, () => createClient(owner));
        query = (text: string, values: Values = []) =>
          ask(owner, () => rowsOf(tables.run(text, values)));
      },
    }),
  };
}
