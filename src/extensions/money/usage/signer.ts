// The interface of an extension that signs the lines of days. Without such an extension they are
// not signed.
import type { Config } from "../../../core/config.ts";
import { slot } from "../../../core/extension/installer.ts";

/** Signs for one data_dir. */
export interface Signer {
  /** The public key, 64 hex digits. Reading it makes the key if there is none. */
  readonly publicHex: string;
  /** Adds the last member `signature` to the text of a JSON object with at least one member. */
  sign(json: string): string;
  /** Signs the SHA-256 of the text of a JSON object. Returns 128 hex digits. */
  signatureOf(digest: Buffer): string;
}

/**
 * Opens the signer of a data_dir. Undefined: the configuration disables it. Changes nothing on the
 * disk. Empty: nothing is signed.
 */
export const signerSlot = slot<(config: Config, dataDir: string) => Signer | undefined>("signer");
