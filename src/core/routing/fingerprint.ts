// system_fingerprint: which provider and which of its models answered, as a keyed hash. Without the key, a secret of this data_dir,
// nobody can guess names of providers and compare; with it the fingerprint of a model is the same after a restart and in every worker.
import { createHmac, randomBytes } from "node:crypto";
import { fingerprintSecretOf } from "../config/secret-file.ts";
import type { Diagnose } from "../diagnose.ts";

const DIGITS = 12; // of the hash: 48 bits, enough to tell backends apart

/** The fingerprint of whatever the parts say: `fp_` and hex digits. */
export type Fingerprint = (parts: readonly (string | number)[]) => string;

/** The secret is read, and made if it is not there, when the first fingerprint is needed: by then the books have made the folder. */
export function createFingerprint(dataDir: string, diagnose: Diagnose): Fingerprint {
  let key: string | undefined;

  /** Where the secret cannot be had, a random one stands in for the life of this process: never a hash without a key. */
  function secret(): string {
    try {
      return fingerprintSecretOf(dataDir);
    } catch (error) {
      const detail = `system_fingerprint will change at the next start: ${(error as Error).message}`;
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
