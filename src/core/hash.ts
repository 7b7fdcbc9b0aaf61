// The hash that identifies keys and texts.
import { hash } from "node:crypto";

/** The SHA-256 of a text (its UTF-8 bytes) or of bytes, in 64 lower-case hexadecimal digits. */
export const sha256 = (text: string | Uint8Array): string => hash("sha256", text);
