// Encrypts texts that clients keep for the gateway and send back, so that the gateway need not
// store them. Only the same installation can read them: the key is derived from a secret in
// data_dir.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

export interface Sealer {
  /** Returns ASCII that is safe in JSON and in a header. It differs each time for the same text. */
  seal(text: string): string;
  /** Returns the text. Undefined: another installation sealed it, or it was changed. */
  open(sealed: string): string | undefined;
}

/** Identifies the format of a sealed text. */
const PREFIX = "sealed1.";
const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * A text that was sealed for one `purpose` cannot be opened for another. `secret` is called when
 * the first text is sealed or opened.
 */
export function createSealer(purpose: string, secret: () => Buffer): Sealer {
  let derived: Buffer | undefined;

  function key(): Buffer {
    derived ??= Buffer.from(hkdfSync("sha256", secret(), "", `chat-gateway ${purpose}`, 32));
    return derived;
  }

  return {
    seal(text) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key(), nonce);
      const bytes = [nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
      return PREFIX + Buffer.concat(bytes).toString("base64url");
    },
    open(sealed) {
      if (!sealed.startsWith(PREFIX)) return undefined;
      const body = sealed.slice(PREFIX.length);
      const bytes = Buffer.from(body, "base64url");
      // Buffer.from() skips characters that are not base64url, and stops at padding.
      if (bytes.toString("base64url") !== body) return undefined;
      if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
      const end = bytes.length - TAG_BYTES;
      const decipher = createDecipheriv(CIPHER, key(), bytes.subarray(0, NONCE_BYTES));
      decipher.setAuthTag(bytes.subarray(end));
      try {
        const text = [decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()];
        return Buffer.concat(text).toString();
      } catch {
        return undefined; // the tag does not match: another key, or a changed text
      }
    },
  };
}
