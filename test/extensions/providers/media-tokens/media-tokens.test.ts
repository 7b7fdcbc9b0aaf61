// The token estimates of images, audio and files in a prompt, by each vendor's rules.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import { mediaTokens } from "../../../../src/extensions/providers/media-tokens/index.ts";
import { startEffort } from "../../../support/effort.ts";

const chatOf = (content: unknown) =>
  chatRequest({ model: "m", messages: [{ role: "user", content }] }, true);

const png = (width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(40);
  bytes.write("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
};
const gif = (width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(20);
  bytes.write("GIF89a", "latin1");
  bytes.writeUInt16LE(width, 6);
  bytes.writeUInt16LE(height, 8);
  return bytes;
};
/** A JPEG whose size follows a segment of this length, as in photographs. */
const jpeg = (width: number, height: number, exif = 20_000): Buffer => {
  const bytes = Buffer.alloc(2 + 2 + exif + 19);
  bytes.writeUInt16BE(0xffd8, 0);
  bytes.writeUInt16BE(0xffe1, 2);
  bytes.writeUInt16BE(exif, 4);
  const frame = 4 + exif;
  bytes.writeUInt16BE(0xffc2, frame);
  bytes.writeUInt16BE(17, frame + 2);
  bytes.writeUInt8(8, frame + 4);
  bytes.writeUInt16BE(height, frame + 5);
  bytes.writeUInt16BE(width, frame + 7);
  return bytes;
};
const webp =
  (form: "VP8 " | "VP8L" | "VP8X") =>
  (width: number, height: number): Buffer => {
    const bytes = Buffer.alloc(40);
    bytes.write(`RIFF\0\0\0\0WEBP${form}`, "latin1");
    if (form === "VP8 ") {
      bytes.writeUInt16LE(width, 26);
      bytes.writeUInt16LE(height, 28);
    } else if (form === "VP8L") {
      bytes.writeUInt32LE(((height - 1) << 14) | (width - 1), 21);
    } else {
      bytes.writeUIntLE(width - 1, 24, 3);
      bytes.writeUIntLE(height - 1, 27, 3);
    }
    return bytes;
  };
const image = (bytes: Buffer, detail?: string) => ({
  type: "image_url",
  image_url: { url: `data:image/any;base64,${bytes.toString("base64")}`, detail },
});
const at = (url: string) => ({ type: "image_url", image_url: { url } });
const file = (mediaType: string, bytes: Buffer) => ({
  type: "file",
  file: { file_data: `data:${mediaType};base64,${bytes.toString("base64")}` },
});
const audio = (bytes: Buffer, format = "mp3") => ({
  type: "input_audio",
  input_audio: { data: bytes.toString("base64"), format },
});
const RULES = ["openai", "anthropic", "gemini"];
const counted = (...parts: object[]) =>
  RULES.map((rules) => mediaTokens(chatOf([{ type: "text", text: "x" }, ...parts]), rules));

describe("media in an estimate", () => {
  // Width and height, then the tokens by the rules of OpenAI, Anthropic and Gemini.
  for (const [width, height, ...expected] of [
    [512, 512, 255, 350, 258],
    [300, 384, 255, 154, 258],
    [1_024, 1_024, 765, 1_399, 1_032],
    [2_048, 4_096, 1_105, 1_600, 258 * 18],
    [1_568, 100, 765, 210, 258 * 3],
    [1, 1, 255, 1, 258],
  ] as const)
    it(`an image of ${width} x ${height}: ${expected.join(", ")} tokens`, () =>
      assert.deepEqual(counted(image(png(width, height))), expected));

  for (const [name, make] of [
    ["PNG", png],
    ["GIF", gif],
    ["JPEG", jpeg],
    ["WebP, lossy", webp("VP8 ")],
    ["WebP, lossless", webp("VP8L")],
    ["WebP, extended", webp("VP8X")],
  ] as const)
    it(`the size of an image is read from its bytes: ${name}`, () =>
      assert.deepEqual(counted(image(make(1_234, 567))), counted(image(png(1_234, 567)))));

  it("an image of low detail is 85 tokens for OpenAI, and unchanged for the others", () => {
    const [, ...others] = counted(image(png(2_000, 2_000)));
    assert.deepEqual(counted(image(png(2_000, 2_000), "low")), [85, ...others]);
  });

  it("an image that is only an address, or of unknown format, counts as 1024 x 1024", () => {
    const default_ = counted(image(png(1_024, 1_024)));
    const unknown = ["data:,", "data:image/png;base64,AAAA", "data:image/png;base64,!"];
    for (const url of ["https://example.com/a.png", ...unknown])
      assert.deepEqual(counted(at(url)), default_, url);
    assert.deepEqual(counted(image(jpeg(10, 10).subarray(0, 100))), default_);
    assert.deepEqual(counted(image(png(0, 0))), default_);
  });

  it("a header that claims more than any vendor accepts counts as 8192 pixels a side", () =>
    assert.deepEqual(counted(image(png(4e9, 4e9))), counted(image(png(8_192, 8_192)))));

  it("audio counts by its length: a WAV's from its header, otherwise at 128 kbit/s", () => {
    const wav = Buffer.alloc(32_000 * 5);
    wav.write("RIFF\0\0\0\0WAVEfmt ", "latin1");
    wav.writeUInt32LE(16_000, 24);
    wav.writeUInt32LE(32_000, 28);
    wav.writeUInt16LE(2, 32);
    assert.deepEqual(counted(audio(wav, "wav")), [50, 50, 160]);
    wav.writeUInt32LE(2_000_000, 28); // a decoder relies on the samples, not on this rate
    assert.deepEqual(counted(audio(wav, "wav")), [50, 50, 160]);
    wav.writeUInt32LE(16_000, 28);
    wav.writeUInt16LE(64, 32); // a block of compressed samples
    assert.deepEqual(counted(audio(wav, "wav")), [100, 100, 320]);
    assert.deepEqual(counted(audio(Buffer.alloc(16_000 * 10))), [100, 100, 320]);
  });

  it("a PDF counts by its size, a named file as ten pages, a text as its text, an image as an image", () => {
    const three = [3 * 765, 3 * 3_100, 3 * 258];
    assert.deepEqual(counted(file("application/pdf", Buffer.alloc(120_000))), three);
    assert.deepEqual(counted({ type: "file", file: { file_id: "f" } }), [7_650, 31_000, 2_580]);
    assert.deepEqual(counted(file("text/plain", Buffer.alloc(400))), [100, 100, 100]);
    assert.deepEqual(counted(file("image/png", png(512, 512))), [255, 350, 258]);
  });

  it("a file without a media type counts by its name and its data", () => {
    const data = Buffer.alloc(120_000).toString("base64");
    const plain = (filename: string) =>
      counted({ type: "file", file: { filename, file_data: data } });
    assert.deepEqual(plain("a.PDF"), counted(file("application/pdf", Buffer.alloc(120_000))));
    assert.deepEqual(plain("a.txt"), [30_000, 30_000, 30_000]);
    const address = { type: "file", file: { file_data: "https://example.com/a.pdf" } };
    assert.deepEqual(counted(address), [7_650, 31_000, 2_580]);
  });

  it("are counted by OpenAI's rules if no others are known", () => {
    const chat = chatOf([image(png(512, 512))]);
    assert.equal(mediaTokens(chat, "another"), mediaTokens(chat, "openai"));
  });

  it("ten megabytes of images made of the smallest segments are cheap to read", () => {
    // 10 MiB: each image consists of empty segments, none of which states a size.
    const ofSegments = (count: number) =>
      image(Buffer.from(`ffd8${"fffe0002".repeat(count)}`, "hex"));
    for (const parts of [Array(6_000).fill(ofSegments(300)), [ofSegments(2_000_000)]]) {
      const chat = chatOf(parts);
      const effort = startEffort();
      mediaTokens(chat, "openai");
      const took = effort();
      assert.ok(took < 250, `${took} units`);
    }
  });
});
