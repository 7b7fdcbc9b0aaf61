// Amazon's own Python library beside this gateway: the same signature from botocore, and the same
// events from its reader of frames.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { signedHeaders } from "../../src/extensions/providers/credentials/aws/signature.ts";
import { eventStream } from "../../src/extensions/providers/converse/event-stream.ts";
import { eventFrame } from "../support/event-stream.ts";
import { noPython, runPython, scriptAt } from "./lab.ts";

async function ask(what: string, given: object): Promise<unknown> {
  const args = [scriptAt("clouds.py"), what, JSON.stringify(given)];
  const { code, output } = await runPython(`botocore's ${what}`, args);
  assert.equal(code, 0, output);
  return JSON.parse(output);
}

describe("botocore", { skip: noPython() }, () => {
  it("signs each request as the gateway does", async () => {
    const host = "https://bedrock-runtime.us-east-1.amazonaws.com";
    for (const [path, service, token] of [
      [
        "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x-v1%3A0/converse",
        "bedrock",
        "a/b==",
      ],
      ["/v1/chat/completions", "bedrock-mantle", undefined],
      ["/v1/chat?b=2&a=1%202", "bedrock", undefined],
    ] as const) {
      const given = {
        url: host + path,
        body: '{"text":"Grüße, 世界"}',
        service,
        region: "us-east-1",
        now: Date.parse("2026-07-01T12:30:00Z"),
      };
      const keys = { accessKeyId: "AKID", secretAccessKey: "s3cret/Key+", sessionToken: token };
      const own = signedHeaders(
        { ...given, headers: { "Content-Type": "application/json" } },
        keys,
        given,
      );
      const theirs = await ask("signature", { ...given, id: "AKID", secret: "s3cret/Key+", token });
      const { "X-Amz-Date": date, Authorization } = own;
      assert.deepEqual(theirs, { "X-Amz-Date": date, Authorization }, path);
    }
  });

  it("reads the same events from the same frames", async () => {
    const bytes = Buffer.concat([
      eventFrame("messageStart", { role: "assistant" }),
      eventFrame("contentBlockDelta", { delta: { text: "Grüße" } }),
    ]);
    const theirs = (await ask("frames", { hex: bytes.toString("hex") })) as [string, string][];
    const own = eventStream.createReader().push(bytes);
    assert.deepEqual(
      own,
      theirs.map(([type, payload]) => `{"${type}":${payload}}`),
    );
  });
});
