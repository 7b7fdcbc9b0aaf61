// Reads the line of a usage record strictly. A record counts as proved only if its line is exactly
// the text that a gateway writes: any other text may mean something else to another reader, such as
// a member that is there twice.
import { parseUsageLine } from "../books/index.ts";
import { USAGE_COLUMNS } from "../usage-records/index.ts";
import { asObject, parseJson } from "../../core/schema/untrusted-json.ts";

/** What a line says. */
export interface RecordLineContent {
  /** The day on which the record ended: `YYYY-MM-DD`, in UTC. */
  readonly day: string;
  /** Whether it says more than its columns. */
  readonly hasDetails: boolean;
  /** What is wrong with the line. Absent: nothing. */
  readonly fault?: string;
}

type Json = Readonly<Record<string, unknown>>;

/** Columns that records of all versions have, and the one that later versions added. */
const BASE_COLUMNS = USAGE_COLUMNS.slice(0, -1);
const LAST_COLUMN = USAGE_COLUMNS.at(-1)!;

/** Reads a line without its end. */
export function readRecordLine(line: string): RecordLineContent {
  // parseUsageLine() adds columns to what it returns, so the line is parsed a second time.
  const json = asObject(parseJson(line));
  const record = parseUsageLine(line);
  if (!record) return { day: "", hasDetails: false, fault: "is no usage record" };
  const hasDetails = json["details"] !== undefined;
  const content = { day: record.ended_at.slice(0, 10), hasDetails };
  const isExact =
    JSON.stringify(json) === line &&
    hasColumnsInOrder(json) &&
    (typeof json["provider"] === "string" || json["provider"] === null) &&
    (!hasDetails || isDetails(asObject(json["details"])));
  return isExact ? content : { ...content, fault: NOT_EXACT };
}

const NOT_EXACT = "is not what a gateway writes: it was changed or inserted";

/** The columns in their order, then what receipts say, and nothing else. */
function hasColumnsInOrder(json: Json): boolean {
  const expected: string[] = [...BASE_COLUMNS];
  if (LAST_COLUMN in json) expected.push(LAST_COLUMN);
  if ("details" in json) expected.push("details");
  return Object.keys(json).join() === expected.join();
}

type ValueCheck = (value: unknown) => boolean;

const isText: ValueCheck = (value) => typeof value === "string";
const isNumber: ValueCheck = (value) => typeof value === "number";
const isListOf =
  (check: ValueCheck): ValueCheck =>
  (value) =>
    Array.isArray(value) && value.every(check);
/** Whether a value is an object of numbers, such as prices and token counts. */
const isNumbers: ValueCheck = (value) =>
  isPlainObject(value) && Object.values(asObject(value)).every(isNumber);
const isPlainObject: ValueCheck = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The members of RequestDetails. Each may be missing: earlier versions left some of them out. */
const DETAILS: ReadonlyMap<string, ValueCheck> = new Map([
  ["model_requested", isText],
  ["error_code", isText],
  ["finish_reason", isText],
  ["first_token_ms", isNumber],
  ["usage_source", isText],
  ["cache_write_1h_tokens", isNumber],
  ["attempts", isListOf(isAttempt)],
  ["prices", isNumbers],
  ["notes", isListOf(isText)],
]);

const isDetails = (details: Json): boolean =>
  isPlainObject(details) &&
  Object.entries(details).every(([name, value]) => DETAILS.get(name)?.(value) === true);

/** As AttemptDetails. A duration that is not known is null. */
function isAttempt(value: unknown): boolean {
  if (!Array.isArray(value) || value.length < 3 || value.length > 4) return false;
  const [model, outcome, duration, charge] = value as unknown[];
  const isTimed = isNumber(duration) || duration === null;
  return isText(model) && isText(outcome) && isTimed && (value.length === 3 || isCharge(charge));
}

/** As AttemptCharge. */
function isCharge(value: unknown): boolean {
  const { usage, cost, prices, ...others } = asObject(value);
  const isCost = cost === undefined || isText(cost);
  const isPriced = prices === undefined || isNumbers(prices);
  const isExact = isPlainObject(value) && Object.keys(others).length === 0;
  return isExact && isNumbers(usage) && isCost && isPriced;
}
