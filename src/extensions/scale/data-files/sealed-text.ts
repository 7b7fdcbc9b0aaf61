// Texts that only one installation can read: they are given to clients, who bring them back, so
// that nothing has to be stored. The key is derived from a secret that data_dir keeps for good.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

export interface Seal {
  /**
   * Returns ASCII that can stand in JSON and in a header. The same text gets another one each time.
   */
  seal(text: string): string;
  /** Undefined: another installation sealed it, or it was changed. */
  open(sealed: string): string | undefined;
}

/** Names the format of what follows it. */
const PREFIX = "sealed1.";
const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * `purpose`: a text that was sealed for another purpose cannot be opened. `secret` is called when
 * the first text is sealed or opened.
 */
export function createSeal(purpose: string, secret: () => Buffer): Seal {
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
      // The decoder passes over other characters, and over what follows the padding.
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
