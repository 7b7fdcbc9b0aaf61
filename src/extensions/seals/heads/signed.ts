// A signed JSON object. Its last member is `signature`: the Ed25519 signature of the SHA-256 of the
// body, which is the text without that member and without the comma before it.
import { sha256 } from "../../../core/hash.ts";
import { isSignedBy, type SealKey } from "./seal-key.ts";

const SIGNATURE_AT = ',"signature":"';
const SIGNED = /,"signature":"([0-9a-f]{128})"\}$/;

/** The end of a signed text, from the comma on. `digest`: the SHA-256 of its body. */
export const signatureEnd = (digest: string, key: SealKey): string =>
  `${SIGNATURE_AT}${key.sign(digest)}"}`;

/** A body, which is a JSON object with a member at least, with its signature. */
export const signedText = (body: string, key: SealKey): string =>
  `${body.slice(0, -1)}${signatureEnd(sha256(body), key)}`;

/** Whether a text without a line end is signed by a public key, 64 hexadecimal digits. */
export function hasSignature(text: string, publicHex: string): boolean {
  const found = SIGNED.exec(text.slice(-(SIGNATURE_AT.length + 130)));
  if (!found) return false;
  const body = `${text.slice(0, -found[0].length)}}`;
  return isSignedBy(publicHex, sha256(body), found[1] ?? "");
}
