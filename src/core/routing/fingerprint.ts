// system_fingerprint: which provider and which of its models answered, as a keyed hash. Without the
// key nobody can guess names of providers and compare. With it the fingerprint of a model is the
// same after a restart and in every worker.
import { createHmac, randomBytes } from "node:crypto";
import type { Diagnose } from "../diagnose.ts";

/** Hexadecimal digits of the hash: 48 bits, enough to tell backends apart. */
const DIGITS = 12;

/** The fingerprint of these parts: `fp_` and hexadecimal digits. */
export type Fingerprint = (parts: readonly (string | number)[]) => string;

/**
 * `readSecret` returns the key in hexadecimal digits, and throws an Error if it cannot be had. It
 * is called when the first fingerprint is needed. If it throws, a random key stands in for the life
 * of this process: there is never a hash without a key.
 */
export function createFingerprint(readSecret: () => string, diagnose: Diagnose): Fingerprint {
  let key: string | undefined;

  function secret(): string {
    try {
      return readSecret();
    } catch (error) {
      const { message } = error as Error;
      const detail = `system_fingerprint will change at the next start: ${message}`;
      diagnose({ event: "fingerprint_secret_unavailable", level: "warn", detail });
      return randomBytes(32).toString("hex");
    }
  }

  return (parts) => {
    key ??= secret();
    const hash = createHmac("sha256", Buffer.from(key, "hex")).update(JSON.stringify(parts));
    return `fp_${hash.digest("hex").slice(0, DIGITS)}`;
  };
}
