// The entries of the index by request ids: for each usage record of a month's file a hash of its
// request id, a hash of its account, and where its line begins. Entries are compared as bytes, so
// all numbers are big-endian.
import { hash } from "node:crypto";

/** Bytes of the hash of a request id. */
export const ID_BYTES = 8;
/** Bytes of the hashes of a request id and an account. */
export const KEY_BYTES = 12;
/** Bytes of an entry: a key, and the offset of the line. */
export const ENTRY_BYTES = 18;

/** The first bytes of a key that a number holds exactly. */
export const VALUE_BYTES = 6;

const NEWLINE = 10;

/** Which entries to look for: those of an account, or of every account that has the id. */
export interface EntryRange {
  /** The first key of the range. */
  readonly first: Buffer;
  /** The last key of the range. */
  readonly last: Buffer;
}

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

/** The entries of a request id. `account` undefined: of all accounts. */
export function rangeOf(requestId: string, account: string | undefined): EntryRange {
  const id = digest(JSON.stringify(requestId)).subarray(0, ID_BYTES);
  const accounts = KEY_BYTES - ID_BYTES;
  if (account === undefined)
    return {
      first: Buffer.concat([id, Buffer.alloc(accounts, 0)]),
      last: Buffer.concat([id, Buffer.alloc(accounts, 0xff)]),
    };
  const key = Buffer.concat([id, digest(JSON.stringify(account)).subarray(0, accounts)]);
  return { first: key, last: key };
}

/** Where the line of an entry begins. */
export const offsetIn = (entries: Buffer, at: number): number =>
  entries.readUIntBE(at * ENTRY_BYTES + KEY_BYTES, ENTRY_BYTES - KEY_BYTES);

/** An entry that is to be sorted. */
export interface Entry {
  /** ENTRY_BYTES of them: the hashes of id and account, then the offset of the line. */
  readonly bytes: Buffer;
  /** Its first bytes. Numbers are compared faster than bytes. */
  readonly value: number;
}

/** The bytes of entries in their order. */
export const sortedBytes = (entries: readonly Entry[]): Buffer =>
  Buffer.concat(
    [...entries]
      .sort((a, b) => a.value - b.value || a.bytes.compare(b.bytes))
      .map(({ bytes }) => bytes),
  );

/**
 * The entries of whole lines that begin at byte `from` of their file. Lines that are no records
 * have none.
 */
export function entriesOf(lines: Buffer, from: number): Entry[] {
  const accounts = new Map<string, Buffer>();
  const entries: Entry[] = [];
  for (let start = 0; start < lines.length; ) {
    const found = lines.indexOf(NEWLINE, start);
    const end = found < 0 ? lines.length : found;
    const bytes = entryOf(lines.toString("utf8", start, end), from + start, accounts);
    if (bytes) entries.push({ bytes, value: bytes.readUIntBE(0, VALUE_BYTES) });
    start = end + 1;
  }
  return entries;
}

/** `accounts`: the hashes of accounts by their JSON texts, as far as they are known. */
function entryOf(line: string, offset: number, accounts: Map<string, Buffer>): Buffer | undefined {
  const id = jsonTextIn(line, '"gateway_request_id":');
  const account = jsonTextIn(line, '"account":');
  if (id === undefined || account === undefined) return undefined;
  const owner = accounts.get(account) ?? digest(account);
  accounts.set(account, owner);
  const entry = Buffer.allocUnsafe(ENTRY_BYTES);
  digest(id).copy(entry, 0, 0, ID_BYTES);
  owner.copy(entry, ID_BYTES, 0, KEY_BYTES - ID_BYTES);
  entry.writeUIntBE(offset, KEY_BYTES, ENTRY_BYTES - KEY_BYTES);
  return entry;
}

/**
 * The text of a member as the line has it, without parsing the line. Inside of texts quotes are
 * escaped, so the name of a member is not found in one.
 */
export function jsonTextIn(line: string, name: string): string | undefined {
  const at = line.indexOf(name);
  const start = at + name.length;
  if (at < 0 || line[start] !== '"') return undefined;
  let end = line.indexOf('"', start + 1);
  while (end > 0 && isEscaped(line, end)) end = line.indexOf('"', end + 1);
  return end < 0 ? undefined : line.slice(start, end + 1);
}

function isEscaped(line: string, at: number): boolean {
  let backslashes = 0;
  while (line[at - 1 - backslashes] === "\\") backslashes += 1;
  return backslashes % 2 === 1;
}
