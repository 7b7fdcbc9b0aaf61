// The width and height of an image, read from the header of its PNG, JPEG, GIF or WebP.
import { bytesAt } from "./base64.ts";

export interface ImageSize {
  /** In pixels. */
  readonly width: number;
  /** In pixels. */
  readonly height: number;
}

/** The reads of headers that the images of one request may still take together. */
export interface ReadsLeft {
  /** Counted down to 0. */
  left: number;
}

/** The size that the header of an image states. Undefined: another format, or no read is left. */
export function imageSize(base64: string, reads: ReadsLeft): ImageSize | undefined {
  if (reads.left === 0) return undefined;
  reads.left -= 1;
  const head = bytesAt(base64, 0, 30);
  if (head.length < 10) return undefined;
  const ascii = head.toString("latin1");
  if (ascii.startsWith("\x89PNG") && head.length >= 24)
    return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
  if (ascii.startsWith("GIF8"))
    return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
  if (ascii.startsWith("RIFF") && ascii.startsWith("WEBP", 8) && head.length >= 30)
    return webpSize(head, ascii);
  return ascii.startsWith("\xff\xd8") ? jpegSize(base64, reads) : undefined;
}

/** WebP has three forms: lossy, lossless and extended. Each has the size in a different place. */
function webpSize(head: Buffer, ascii: string): ImageSize | undefined {
  const form = ascii.slice(12, 16);
  if (form === "VP8 ")
    return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
  if (form === "VP8X")
    return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
  if (form !== "VP8L") return undefined;
  const bits = head.readUInt32LE(21);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

/** Goes from segment to segment of a JPEG to the one that begins a frame, which states the size. */
function jpegSize(base64: string, reads: ReadsLeft): ImageSize | undefined {
  let offset = 2;
  for (; reads.left > 0; reads.left -= 1) {
    const segment = bytesAt(base64, offset, 9);
    if (segment.length < 9 || segment[0] !== 0xff) return undefined;
    const marker = segment[1]!;
    if (beginsFrame(marker))
      return { width: segment.readUInt16BE(7), height: segment.readUInt16BE(5) };
    // A padding byte stands alone. Any other segment states its own length.
    offset += marker === 0xff ? 1 : 2 + segment.readUInt16BE(2);
  }
  return undefined;
}

/** Markers C0 to CF begin a frame, except the tables DHT (C4), JPG (C8) and DAC (CC). */
const beginsFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
