// The width and height of an image, read from the header of its PNG, JPEG, GIF or WebP. Decodes
// only a few places of its base64 text, which may have megabytes.

/** In pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** The remaining reads of headers for all images of one request. */
export interface ReadsLeft {
  /** Counted down to 0. */
  left: number;
}

/** The most reads in one request: a JPEG can have any number of segments before its size. */
export const MAX_READS = 20_000;
/** No vendor takes larger images, and a header may claim anything. */
const MAX_SIDE = 8_192;
/** The side of an image whose size is unknown. */
const USUAL_SIDE = 1_024;

/** Decodes `length` bytes at `offset`, or fewer at the end, and no more of the text than needed. */
export function bytesAt(base64: string, offset: number, length: number): Buffer {
  const start = Math.floor(offset / 3) * 4;
  const end = start + Math.ceil((length + 2) / 3) * 4;
  const skipped = offset % 3;
  return Buffer.from(base64.slice(start, end), "base64").subarray(skipped, skipped + length);
}

/** The size that the header of an image states, or 1024 x 1024. */
export function imageSize(base64: string, reads: ReadsLeft): ImageSize {
  const { width, height } = statedSize(base64, reads) ?? { width: 0, height: 0 };
  if (width === 0 || height === 0) return { width: USUAL_SIDE, height: USUAL_SIDE };
  return { width: Math.min(width, MAX_SIDE), height: Math.min(height, MAX_SIDE) };
}

/** Undefined: an unknown format, or no read is left. */
function statedSize(base64: string, reads: ReadsLeft): ImageSize | undefined {
  reads.left -= 1;
  if (reads.left < 0) return undefined;
  const head = Buffer.alloc(30);
  bytesAt(base64, 0, 30).copy(head);
  const ascii = head.toString("latin1");
  if (ascii.startsWith("\xff\xd8")) return jpegSize(base64, reads);
  if (ascii.startsWith("\x89PNG"))
    return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
  if (ascii.startsWith("GIF8"))
    return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
  // WebP has three forms: lossy, extended and lossless. Each has the size in a different place.
  switch (ascii.startsWith("RIFF") ? ascii.slice(8, 16) : "") {
    case "WEBPVP8 ":
      return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
    case "WEBPVP8X":
      return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
    case "WEBPVP8L": {
      const bits = head.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    default:
      return undefined;
  }
}

/** Walks the segments of a JPEG to the one that begins a frame, which states the size. */
function jpegSize(base64: string, reads: ReadsLeft): ImageSize | undefined {
  let offset = 2;
  for (; reads.left > 0; reads.left -= 1) {
    const segment = bytesAt(base64, offset, 9);
    if (segment.length < 9 || segment[0] !== 0xff) return undefined;
    const marker = segment[1]!;
    // Markers C0 to CF begin a frame, except the tables DHT (C4), JPG (C8) and DAC (CC).
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return { width: segment.readUInt16BE(7), height: segment.readUInt16BE(5) };
    // A padding byte stands alone. Any other segment states its own length.
    offset += marker === 0xff ? 1 : 2 + segment.readUInt16BE(2);
  }
  return undefined;
}
