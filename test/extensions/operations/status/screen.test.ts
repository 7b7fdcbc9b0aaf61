// A terminal's whole screen: taken, filled, given back.

import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { createScreen } from "../../../../src/extensions/operations/status/screen.ts";

/** A terminal of this size, with a keyboard that tells whether it is in raw mode. */
function bench(size: object) {
  const stdout = Object.assign(new PassThrough({ encoding: "utf8" }), { isTTY: true, ...size });
  let isRaw = false;
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode(mode: boolean) {
      isRaw = mode;
    },
  });
  const screen = createScreen(stdout, () => stdin);
  assert.ok(screen);
  return { screen, stdout, stdin, isRaw: () => isRaw, written: () => String(stdout.read() ?? "") };
}

describe("a screen", () => {
  it("is not there where the output is no terminal", () =>
    assert.equal(createScreen(new PassThrough()), undefined));

  it("has the size of the terminal, or a usual one where that says none", () => {
    assert.deepEqual(bench({ columns: 100, rows: 30 }).screen.size(), { columns: 100, rows: 30 });
    assert.deepEqual(bench({ columns: 0, rows: 0 }).screen.size(), { columns: 80, rows: 24 });
  });

  it("shows no more than fits", () => {
    const { screen, written } = bench({ columns: 5, rows: 2 });
    const opened = screen.open({ key: () => undefined, resized: () => undefined });
    written();
    opened.show(["one two", "three", "four"]);
    assert.equal(written(), "\u001b[Hone t\u001b[K\r\nthree\u001b[K\u001b[J");
    opened.close();
  });

  it("hears keys and changes of its size while it is open, and nothing afterwards", () => {
    const { screen, stdout, stdin, isRaw } = bench({ columns: 80, rows: 24 });
    const heard: string[] = [];
    const opened = screen.open({
      key: (character) => heard.push(character),
      resized: () => heard.push("resized"),
    });
    assert.ok(isRaw());
    stdin.emit("data", Buffer.from("aé"));
    stdout.emit("resize");
    opened.close();
    assert.ok(!isRaw());
    stdin.emit("data", Buffer.from("b"));
    stdout.emit("resize");
    assert.deepEqual(heard, ["a", "é", "resized"]);
  });
});
