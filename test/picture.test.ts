// The picture of README.md is what a gateway does today: made anew, it is the same.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { draw } from "../scripts/picture/draw.ts";
import {
  configOf,
  DYING,
  record,
  startDying,
  startSteady,
  STEADY,
} from "../scripts/picture/record.ts";
import { startGateway } from "./support/gateway.ts";

describe("the picture of README.md", () => {
  it("shows a stream that breaks and is continued, both attempts and their cost", async (t) => {
    const [dying, steady] = await Promise.all([startDying(), startSteady()]);
    for (const { close } of [dying, steady]) t.after(close);
    const ports = { server: { port: 0 }, admin: { port: 0 } };
    const gateway = await startGateway(t, { ...configOf(dying, steady), ...ports });
    const recording = await record(gateway.url);
    const { status, attempts } = recording.receipt;
    assert.equal(recording.end, "data: [DONE]");
    assert.deepEqual(
      [status, attempts.map(({ model, outcome }) => [model, outcome])],
      [
        "completed",
        [
          [DYING, "upstream_error"],
          [STEADY, "ok"],
        ],
      ],
    );
    assert.equal(
      draw(recording),
      readFileSync("scripts/recovery.svg", "utf8"),
      "run node --import tsx scripts/picture.ts",
    );
  });
});
