// Writes a keys.json with very many keys, as `keys create` does.

import { writeFileSync } from "node:fs";
import { keyIdOf } from "../../src/core/accounts/keyring.ts";
import { sha256 } from "../../src/core/hash.ts";

const texts = new Map<number, string>();

/** Writes the keys sk-0, sk-1 and so on, with about 300 bytes for each. */
export function writeManyKeys(file: string, count: number): void {
  const text = texts.get(count) ?? manyKeys(count);
  texts.set(count, text);
  writeFileSync(file, text);
}

function manyKeys(count: number): string {
  const keys = Array.from({ length: count }, (_, index) => {
    const digest = sha256(`sk-${index}`);
    return {
      key_id: keyIdOf(digest),
      account: `account-${index % 1_000}`,
      name: "laptop",
      sha256: digest,
      rpm: null,
      models: null,
      created: "2026-01-01T00:00:00.000Z",
      expires: null,
      revoked: null,
    };
  });
  return `${JSON.stringify(keys, null, 2)}\n`;
}
