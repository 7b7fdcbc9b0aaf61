// Base64 text, read in part: an image of megabytes is looked at in a few places only.

/** The number of bytes that a base64 text stands for. */
export function byteLength(base64: string): number {
  const unpadded = base64.slice(-2).replaceAll("=", "").length - 2;
  return Math.max(0, Math.floor(((base64.length + unpadded) * 3) / 4));
}

/**
 * Decodes `length` bytes at `offset`, or fewer at the end. Decodes no more of the text than these
 * need.
 */
export function bytesAt(base64: string, offset: number, length: number): Buffer {
  const start = Math.floor(offset / 3) * 4;
  const end = start + Math.ceil((length + 2) / 3) * 4;
  const skipped = offset % 3;
  return Buffer.from(base64.slice(start, end), "base64").subarray(skipped, skipped + length);
}
