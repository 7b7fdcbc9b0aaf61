// system_fingerprint: a keyed hash of the provider and the model that answered. Without the key
// nobody can find the names by hashing guesses.
import { createHmac, randomBytes } from "node:crypto";

/** Hexadecimal digits of the hash: 48 bits, enough to tell backends apart. */
const DIGITS = 12;

/** The fingerprint of these parts: `fp_` and hexadecimal digits. */
export type Fingerprint = (parts: readonly (string | number)[]) => string;

/** `readKey` is called when the first fingerprint is needed. Absent: the key is random. */
export function createFingerprint(readKey: () => Buffer = () => randomBytes(32)): Fingerprint {
  let key: Buffer | undefined;
  /** Hashes by the parts as text. Bounded by the models that were ever configured. */
  const known = new Map<string, string>();
  return (parts) => {
    key ??= readKey();
    const text = JSON.stringify(parts);
    const hash = known.get(text) ?? createHmac("sha256", key).update(text).digest("hex");
    known.set(text, hash);
    return `fp_${hash.slice(0, DIGITS)}`;
  };
}
