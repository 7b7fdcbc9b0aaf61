// system_fingerprint: which provider and which of its models answered, as a keyed hash. Without the
// key, names of providers cannot be guessed and compared.
import { createHmac, randomBytes } from "node:crypto";

/** Hexadecimal digits of the hash: 48 bits, enough to tell backends apart. */
const DIGITS = 12;

/** The fingerprint of these parts: `fp_` and hexadecimal digits. */
export type Fingerprint = (parts: readonly (string | number)[]) => string;

/**
 * `readKey` returns the key, and is called when the first fingerprint is needed. Without it the key
 * is random.
 */
export function createFingerprint(readKey: () => Buffer = () => randomBytes(32)): Fingerprint {
  let key: Buffer | undefined;
  /** By the parts as text: they are those of the models that were ever configured. */
  const known = new Map<string, string>();
  return (parts) => {
    key ??= readKey();
    const text = JSON.stringify(parts);
    const hash = known.get(text) ?? createHmac("sha256", key).update(text).digest("hex");
    known.set(text, hash);
    return `fp_${hash.slice(0, DIGITS)}`;
  };
}
