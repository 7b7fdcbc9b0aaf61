// JSON in files that an operator edits or restores: read up to a bound, with errors that never
// quote the file.
import { fail } from "../core/schema/checker.ts";
import {
  MAX_KEYS_BYTES,
  readRegularFile,
  whyUnreadable,
  type FileContent,
} from "./regular-file.ts";

/**
 * Reads a file and parses it as JSON. Returns `absent` if reading fails with one of `codes`, such
 * as ENOENT. Throws a ValidationError if reading fails otherwise, or the file is not JSON.
 */
export function readJson(path: string, absent: unknown, codes: readonly string[]): unknown {
  let content: FileContent;
  try {
    content = readRegularFile(path, MAX_KEYS_BYTES);
  } catch (error) {
    return codes.includes(whyUnreadable(error)) ? absent : failUnreadable(path, error);
  }
  return parseJsonFile(path, textIn(content.bytes));
}

/** Throws the ValidationError of a file that could not be read. */
export const failUnreadable = (path: string, error: unknown): never =>
  fail("invalid_value", `cannot read ${path}: ${whyUnreadable(error)}`);

/** Decodes a file's bytes as UTF-8, without a byte order mark. */
export const textIn = (bytes: Buffer): string => bytes.toString("utf8").replace(/^\ufeff/, "");

/** Parses the text of the file at `path`. Throws a ValidationError that says where the fault is. */
export function parseJsonFile(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const fault = describeFault(text, (error as Error).message);
    return fail("invalid_value", `${path} is not JSON: ${fault}`);
  }
}

/** Characters of a text in which an unexpected token is searched for: some 0.1 s. */
const MAX_SEARCHED = 1_000_000;

const TOKEN = /^Unexpected token '.'/su;

/**
 * Says where a text stops being JSON. V8's message quotes the text around the fault, which may be a
 * key, so only the place is repeated. For an unexpected token V8 states no place. It is searched
 * for; in a larger text the token's first character is repeated instead.
 */
function describeFault(text: string, message: string): string {
  const token = TOKEN.exec(message)?.[0];
  if (token !== undefined && text.length > MAX_SEARCHED) return token;
  const stated = Number(/position (\d+)/.exec(message)?.[1] ?? text.length);
  const position = token === undefined ? stated : unexpectedTokenIn(text);
  const lines = text.slice(0, position).split("\n");
  const column = (lines.at(-1)?.length ?? 0) + 1;
  return `the fault is at line ${lines.length}, column ${column}`;
}

/** The index of the token: it ends the shortest beginning of the text that has one. */
function unexpectedTokenIn(text: string): number {
  let without = 0;
  let having = text.length;
  while (having - without > 1) {
    const middle = Math.floor((without + having) / 2);
    if (hasUnexpectedToken(text.slice(0, middle))) having = middle;
    else without = middle;
  }
  return without;
}

function hasUnexpectedToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return TOKEN.test((error as Error).message);
  }
}
