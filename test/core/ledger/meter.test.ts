// The meter: which of a provider's figures count as its own, what an estimate takes from them, and what media are estimated at.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mediaTokens } from "../../../src/core/ledger/media-tokens.ts";
import type { MediaRules } from "../../../src/core/openai/usage.ts";
import { createMeter, estimatePrompt } from "../../../src/core/ledger/meter.ts";
import { chatRequest } from "../../../src/core/openai/request.ts";
import type { Part } from "../../../src/core/openai/parts.ts";

const chatOf = (content: unknown) =>
  chatRequest({ model: "m", messages: [{ role: "user", content }] }, true);
const text = (length: number): Part => ({ type: "text", text: "x".repeat(length) });
const thinking = (length: number): Part => ({ type: "reasoning", text: "x".repeat(length) });
const usage = (
  prompt: number | undefined,
  completion: number | undefined,
  { cacheHit = 0, reasoning = 0 } = {},
): Part => ({ type: "usage", usage: { prompt, completion, cacheHit, reasoning } });
const finish: Part = { type: "finish", reason: "stop" };

/** Prompt, completion, source after these parts; the prompt itself would be estimated at 2. */
function metered(parts: readonly Part[]) {
  const meter = createMeter(chatOf("12345678"));
  parts.forEach(meter.observe);
  const { usage, source } = meter.usage("openai");
  return [usage.prompt_tokens, usage.completion_tokens, source];
}

describe("the meter", () => {
  const CASES: [name: string, parts: readonly Part[], expected: (number | string)[]][] = [
    ["nothing came", [], [0, 0, "none"]],
    ["a text without figures", [text(40), finish], [2, 10, "estimated"]],
    ["a figure after the last text", [text(40), usage(9, 7), finish], [9, 7, "provider"]],
    ["a figure after the last text of a cut stream", [text(40), usage(9, 7)], [9, 7, "provider"]],
    ["a figure before the text, cut", [usage(9, 1), text(400)], [9, 100, "estimated"]],
    ["an early figure, finished", [text(4), usage(9, 1), text(400), finish], [9, 101, "estimated"]],
    ["an early figure above the estimate", [usage(9, 70), text(40), finish], [9, 70, "estimated"]],
    ["a prompt count alone", [text(40), usage(9, undefined), finish], [9, 10, "estimated"]],
    ["a completion count alone", [text(40), usage(undefined, 7), finish], [2, 7, "estimated"]],
    [
      "the two counts apart",
      [usage(9, undefined), text(40), usage(undefined, 7)],
      [9, 7, "provider"],
    ],
    [
      "a later count of the prompt alone",
      [usage(9, 3), text(40), usage(8, undefined)],
      [8, 10, "estimated"],
    ],
    ["0 tokens for a text that is there", [text(1), usage(9, 0), finish], [9, 1, "estimated"]],
    ["0 tokens where nothing came", [usage(9, 0), finish], [9, 0, "provider"]],
    ["zeros", [text(40), usage(0, 0), finish], [2, 10, "estimated"]],
    ["zeros, and nothing came", [usage(0, 0)], [0, 0, "none"]],
    ["a figure of 10^9", [text(40), usage(1, 999_999_999)], [1, 999_999_999, "provider"]],
    ["a figure beyond 10^9", [text(40), usage(1_000_000_001, 0)], [2, 10, "estimated"]],
    ["a sum beyond 10^9", [text(40), usage(999_999_999, 2)], [2, 10, "estimated"]],
    ["a sum beyond 2^53", [text(40), usage(Number.MAX_SAFE_INTEGER, 10)], [2, 10, "estimated"]],
    [
      "a cached count beyond 10^9",
      [text(40), usage(9, 7, { cacheHit: 1e300 })],
      [2, 10, "estimated"],
    ],
    ["thinking beyond 10^9", [text(40), usage(9, 7, { reasoning: 1e12 })], [2, 10, "estimated"]],
    [
      "a good figure, then an absurd one",
      [text(40), usage(9, 7), usage(1e10, 1)],
      [9, 7, "provider"],
    ],
    ["thinking, shown or not", [thinking(40), text(40), finish], [2, 20, "estimated"]],
    [
      "thinking counted without the text",
      [text(40), usage(9, undefined, { reasoning: 30 })],
      [9, 40, "estimated"],
    ],
  ];
  for (const [name, parts, expected] of CASES)
    it(`${name}: ${expected.join(", ")}`, () => assert.deepEqual(metered(parts), expected));

  it("an estimate of a text that is there is never 0", () => {
    for (let length = 1; length < 20; length += 1)
      assert.ok(Number(metered([text(length)])[1]) > 0, `${length} bytes`);
  });

  it("is final when the provider has finished and counted all that came", () => {
    const meter = createMeter(chatOf("hi"));
    const seen = [text(4), usage(9, 7), finish, text(4), usage(9, 9)].map((part) => {
      meter.observe(part);
      return meter.isFinal();
    });
    assert.deepEqual(seen, [false, false, true, false, true]);
  });
});

// ---- media

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
/** With a segment of this length before the one that states the size, as photographs have. */
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
const RULES: MediaRules[] = ["openai", "anthropic", "gemini"];
const counted = (...parts: object[]) =>
  RULES.map((rules) => mediaTokens(chatOf([{ type: "text", text: "x" }, ...parts]), rules));

describe("media in an estimate", () => {
  const SIZES: [
    width: number,
    height: number,
    openai: number,
    anthropic: number,
    gemini: number,
  ][] = [
    [512, 512, 255, 350, 258],
    [300, 384, 255, 154, 258],
    [1_024, 1_024, 765, 1_399, 1_032],
    [2_048, 4_096, 1_105, 1_600, 258 * 18],
    [1_568, 100, 765, 210, 258 * 3],
    [1, 1, 255, 1, 258],
  ];
  for (const [width, height, ...expected] of SIZES)
    it(`an image of ${width} x ${height}: ${expected.join(", ")} tokens by OpenAI's, Anthropic's and Gemini's rules`, () =>
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

  it("an image of low detail is 85 tokens for OpenAI, and no different for the others", () => {
    const [, ...others] = counted(image(png(2_000, 2_000)));
    assert.deepEqual(counted(image(png(2_000, 2_000), "low")), [85, ...others]);
  });

  it("an image that is only an address, or of no known format, counts as 1024 x 1024", () => {
    const default_ = counted(image(png(1_024, 1_024)));
    for (const url of [
      "https://example.com/a.png",
      "data:,",
      "data:image/png;base64,AAAA",
      "data:image/png;base64,!",
    ])
      assert.deepEqual(counted(at(url)), default_, url);
    assert.deepEqual(counted(image(jpeg(10, 10).subarray(0, 100))), default_);
    assert.deepEqual(counted(image(png(0, 0))), default_);
  });

  it("a header that claims more than any vendor takes counts as 8192 pixels a side", () =>
    assert.deepEqual(counted(image(png(4e9, 4e9))), counted(image(png(8_192, 8_192)))));

  it("audio counts by its length: a WAV's from its header, else 128 kbit/s", () => {
    const wav = Buffer.alloc(32_000 * 5);
    wav.write("RIFF\0\0\0\0WAVEfmt ", "latin1");
    wav.writeUInt32LE(32_000, 28);
    assert.deepEqual(counted(audio(wav, "wav")), [50, 50, 160]);
    assert.deepEqual(counted(audio(Buffer.alloc(16_000 * 10))), [100, 100, 320]);
  });

  it("a PDF counts by its size, a named file as ten pages, a text as its text, an image as an image", () => {
    assert.deepEqual(counted(file("application/pdf", Buffer.alloc(120_000))), [
      3 * 765,
      3 * 3_100,
      3 * 258,
    ]);
    assert.deepEqual(counted({ type: "file", file: { file_id: "f" } }), [7_650, 31_000, 2_580]);
    assert.deepEqual(counted(file("text/plain", Buffer.alloc(400))), [100, 100, 100]);
    assert.deepEqual(counted(file("image/png", png(512, 512))), [255, 350, 258]);
  });

  it("24 images are in the estimate of the prompt", () =>
    assert.equal(
      estimatePrompt(
        chatOf([{ type: "text", text: "1234" }, ...Array(24).fill(image(png(512, 512)))]),
        "openai",
      ),
      1 + 24 * 255,
    ));

  it("an estimate stays within what can be a count of tokens, whatever the headers claim", () => {
    const many = Array.from({ length: 50_000 }, () => image(png(4e9, 4e9)));
    assert.equal(estimatePrompt(chatOf(many), "gemini"), 500_000_000);
  });

  it("ten megabytes of images made of the smallest segments cost little to look at", () => {
    // 10 MiB: each image is segments without content, none of which states a size.
    const segments = Buffer.concat([
      Buffer.from([0xff, 0xd8]),
      ...Array(300).fill(Buffer.from([0xff, 0xfe, 0, 2])),
    ]);
    const one = Buffer.concat([
      Buffer.from([0xff, 0xd8]),
      ...Array(2_000_000).fill(Buffer.from([0xff, 0xfe, 0, 2])),
    ]);
    for (const parts of [Array(6_000).fill(image(segments)), [image(one)]]) {
      const chat = chatOf(parts);
      const began = performance.now();
      mediaTokens(chat, "openai");
      const ms = performance.now() - began;
      assert.ok(ms < 1_000, `${ms} ms`);
    }
  });
});
