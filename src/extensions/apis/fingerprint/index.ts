// A system_fingerprint that stays the same after a restart and in every worker: its key is a secret
// of data_dir. Without this extension the key is random, and lives as long as the process.
import { randomBytes } from "node:crypto";
import type { Diagnose } from "../../../core/diagnose.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { fingerprintSecretOf } from "../../scale/data-files/index.ts";

export const extension: Extension = {
  name: "fingerprint",
  install: (gateway) => gateway.fill(slots.fingerprintKey, fingerprintKey),
};

/** If the secret cannot be had, a random key stands in: there is never a hash without a key. */
export function fingerprintKey(dataDir: string, diagnose: Diagnose): Buffer {
  try {
    return Buffer.from(fingerprintSecretOf(dataDir), "hex");
  } catch (error) {
    const { message } = error as Error;
    const detail = `system_fingerprint will change at the next start: ${message}`;
    diagnose({ event: "fingerprint_secret_unavailable", level: "warn", detail });
    return randomBytes(32);
  }
}
