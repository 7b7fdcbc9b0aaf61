// A terminal's whole screen: taken, filled, given back.

import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { openScreen } from "../../../../src/extensions/operations/status/screen.ts";

/** A terminal of this size, with a keyboard that tells whether it is in raw mode. */
function bench(size: object) {
  const stdout = Object.assign(new PassThrough({ encoding: "utf8" }), { isTTY: true, ...size });
  const heard: string[] = [];
  let isRaw = false;
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode(mode: boolean) {
      isRaw = mode;
    },
  });
  const screen = openScreen(stdout, stdin, (key) => heard.push(key));
  const written = () => String(stdout.read() ?? "");
  written();
  return { screen, stdout, stdin, heard, written, isRaw: () => isRaw };
}

describe("a screen", () => {
  it("shows no more than fits, and again when it has another size", () => {
    const { screen, stdout, written } = bench({ columns: 5, rows: 2 });
    screen.show(["one two", "three", "four"]);
    assert.equal(written(), "\u001b[Hone t\u001b[K\r\nthree\u001b[K\u001b[J");
    Object.assign(stdout, { columns: 3 }).emit("resize");
    assert.equal(written(), "\u001b[Hone\u001b[K\r\nthr\u001b[K\u001b[J");
  });

  it("has a usual size where the terminal says none", () => {
    const { screen, written } = bench({ columns: 0, rows: 0 });
    screen.show(Array(30).fill("x".repeat(100)));
    assert.deepEqual([written().split("\r\n").length, written().length], [24, 0]);
  });

  it("hears keys while it is open, and nothing afterwards", () => {
    const { screen, stdout, stdin, heard, written, isRaw } = bench({ columns: 80, rows: 24 });
    assert.ok(isRaw());
    stdin.emit("data", Buffer.from("aé"));
    screen.close();
    assert.ok(!isRaw());
    assert.equal(written(), "\u001b[?25h\u001b[?1049l");
    stdin.emit("data", Buffer.from("b"));
    stdout.emit("resize");
    assert.deepEqual([heard, written()], [["a", "é"], ""]);
  });
});
