// The picture of README.md is what a gateway does today: made anew, it is the same.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { DYING, STEADY } from "../scripts/picture/record.ts";
import { folder } from "./support/folder.ts";

describe("the picture of README.md", () => {
  it("shows a stream that breaks and is continued, both attempts and their cost", async () => {
    const file = join(folder(), "recovery.svg");
    const args = ["--import", "tsx", "scripts/picture.ts", file];
    await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
    const picture = readFileSync(file, "utf8");
    for (const shown of [DYING, STEADY, "upstream_error", "[DONE]", "cost"])
      assert.ok(picture.includes(shown), shown);
    assert.equal(
      picture,
      readFileSync("scripts/recovery.svg", "utf8"),
      "run node --import tsx scripts/picture.ts",
    );
  });
});
