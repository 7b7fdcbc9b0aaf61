// Keeps system_fingerprint the same after a restart and in every worker: its key is a secret file
// in data_dir. Without this extension the key is random, and lives as long as the process.
import type { Diagnose } from "../../../core/diagnose.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { installationSecret } from "../../scale/data-files/index.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.fingerprintKey, fingerprintKey);
}

export const fingerprintKey = (dataDir: string, diagnose: Diagnose): Buffer =>
  installationSecret(dataDir, (reason) => {
    const detail = `system_fingerprint will change at the next start: ${reason}`;
    diagnose({ event: "fingerprint_secret_unavailable", level: "warn", detail });
  });
