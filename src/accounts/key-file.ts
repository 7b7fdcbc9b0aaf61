// keys.json under data_dir: the keys that `keys create` made. It holds their SHA-256 only. DESIGN.md "Files under data_dir".
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { readJson, replaceFile } from "../accounting/files.ts";
import { sha256 } from "../config/schema.ts";
import { array, fail, nonEmpty, nullable, number, object, refine, string, type Infer } from "../protocol/checker.ts";
import { keyIdOf } from "./keys.ts";

const time = refine(nonEmpty, (given) => (Number.isNaN(Date.parse(given)) ? fail("invalid_value", "expected a time in ISO 8601") : given));
/** `rpm`: requests per minute of this key alone; null: only its account's limit. `models` null: all. Other nulls: no name, never, not. */
const storedKeys = array(object({
  key_id: nonEmpty, account: nonEmpty, name: nullable(string()), sha256: string({ pattern: /^[0-9a-f]{64}$/, secret: true }),
  rpm: nullable(number({ min: 0, integer: true })), models: nullable(array(nonEmpty)),
  created: time, expires: nullable(time), revoked: nullable(time),
}));
export type StoredKey = Infer<typeof storedKeys>[number];
export const keyFile = (dataDir: string): string => join(dataDir, "keys.json");
/** Throws a CheckError if there is something else in the file than this program writes; an absent file holds no keys. */
export const readKeys = (file: string): StoredKey[] => storedKeys(readJson(file, [], ["ENOENT", "ENOTDIR"]), true);
const writeKeys = (file: string, keys: readonly StoredKey[]) => replaceFile(file, `${JSON.stringify(keys, null, 2)}\n`);

type NewKey = Pick<StoredKey, "account" | "name" | "rpm" | "models" | "expires">;
/** Makes a key and stores what is known of it; the key itself is in the result and nowhere else. The caller holds the keys. */
export async function createKey(file: string, { account, name, rpm, models, expires }: NewKey, now: number) {
  const key = `sk-${randomBytes(24).toString("base64url")}`;
  const digest = sha256(key);
  const stored = { key_id: keyIdOf(digest), account, name, sha256: digest, rpm, models, created: new Date(now).toISOString(), expires, revoked: null };
  await writeKeys(file, [...readKeys(file), stored]);
  return { key, stored };
}

/** Revokes a key for good; undefined if there is none of this id. The caller holds the keys. */
export async function revokeKey(file: string, keyId: string, now: number): Promise<StoredKey | undefined> {
  const keys = readKeys(file);
  const key = keys.find(({ key_id }) => key_id === keyId);
  if (!key) return undefined;
  key.revoked ??= new Date(now).toISOString();
  await writeKeys(file, keys);
  return key;
}
