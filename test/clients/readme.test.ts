// The README's programs in JavaScript and Python, as they stand, against the demo configuration on
// another port.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, it, type TestContext } from "node:test";
import { demo, startGateway } from "../support/gateway.ts";
import { blocksOf } from "../support/readme.ts";
import { within } from "../support/wait.ts";
import { notInstalled, noPython, PYTHON } from "./lab.ts";

/** Runs the README's one block in `language`, with the address replaced; its standard output. */
async function run(
  t: TestContext,
  language: string,
  command: string,
  ending: string,
): Promise<string> {
  const [block, ...others] = blocksOf(language);
  assert.equal(others.length, 0);
  assert.ok(block!.includes("http://127.0.0.1:8080"));
  const gateway = await startGateway(t, demo());
  const file = fileURLToPath(new URL(`.readme-${process.pid}${ending}`, import.meta.url));
  writeFileSync(file, block!.replace("http://127.0.0.1:8080", gateway.url));
  t.after(() => rmSync(file));
  const child = spawn(command, [file], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  child.stdout.on("data", (data: Buffer) => (output += data.toString()));
  child.stderr.on("data", (data: Buffer) => (errors += data.toString()));
  const code = await within(
    new Promise((resolve) => child.once("close", resolve)),
    `the end of the ${language} program`,
  );
  assert.equal(code, 0, errors);
  return output;
}

describe("README's programs", () => {
  it("JavaScript", { skip: notInstalled() }, async (t) => {
    assert.match(
      await run(t, "js", process.execPath, ".mjs"),
      /^You said: “Say hello”\.\n\nThis is the demo model/,
    );
  });

  it("Python", { skip: noPython() }, async (t) => {
    assert.match(
      await run(t, "python", PYTHON, ".py"),
      /^The question is: “What is 6 times 7\?”[^\n]*\nYou said: “What is 6 times 7\?”[\s\S]*\nreq_[0-9a-f]{32}\n$/,
    );
  });
});
