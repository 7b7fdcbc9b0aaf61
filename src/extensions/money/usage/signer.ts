// What an extension that signs does for the books. The books know nothing of keys; without such an
// extension the lines of days are not signed.
import type { Config } from "../../../core/config.ts";
import { slot } from "../../../core/extension/installer.ts";

/** Signs for one data_dir. */
export interface Signer {
  /** The public key, 64 hex digits. Reading it makes the key if there is none. */
  readonly publicHex: string;
  /** A JSON object with at least one member, with a last member more: `signature`. */
  sign(json: string): string;
  /** The signature of a JSON object, 128 hex digits, by the SHA-256 of its text. */
  signatureOf(digest: Buffer): string;
}

/**
 * Opens the signer of a data_dir; undefined if the configuration does not want it. Changes nothing
 * on the disk. Empty: nothing is signed.
 */
export const signerSlot = slot<(config: Config, dataDir: string) => Signer | undefined>("signer");
