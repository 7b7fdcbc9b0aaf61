// What Amazon's own library, botocore 1.44.8, made of the same requests: its signatures, and a frame
// of an event stream that it reads as this event.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventStream } from "../../../../src/extensions/providers/converse/event-stream.ts";
import { signedHeaders } from "../../../../src/extensions/providers/credentials/aws/signature.ts";
import { eventFrame } from "../../../support/event-stream.ts";

const PROFILE = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x-v1%3A0";
const NAMES = "content-type;host;x-amz-date";

const FRAME =
  "000000760000005296d5fade0b3a6576656e742d7479706507000c6d65737361676553746172740d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b22726f6c65223a22617373697374616e74227d6fa8c599";

describe("botocore", () => {
  for (const [path, service, sessionToken, names, signature] of [
    [
      `/model/${PROFILE}/converse`,
      "bedrock",
      "a/b==",
      `${NAMES};x-amz-security-token`,
      "3c87b1aadf60793e8f9e30d76c271a388891fde643198e5b4e7595d6c4151295",
    ],
    [
      "/v1/chat/completions",
      "bedrock-mantle",
      undefined,
      NAMES,
      "349bc6085f29fd2ed5d7a98e24fee7b33b8432afdfeaf8b41c4db3f6f5009f74",
    ],
    [
      "/v1/chat?b=2&a=1%202",
      "bedrock",
      undefined,
      NAMES,
      "a17d8fb16c49e6ca60892c73f3fde67d251d3c00778a734d4319557a2ede3fee",
    ],
  ] as const)
    it(`signs ${path} as the gateway does`, () => {
      const request = {
        url: `https://bedrock-runtime.us-east-1.amazonaws.com${path}`,
        headers: { "Content-Type": "application/json" },
        body: '{"text":"Grüße, 世界"}',
      };
      const keys = { accessKeyId: "AKID", secretAccessKey: "s3cret/Key+", sessionToken };
      const now = Date.parse("2026-07-01T12:30:00Z");
      const signed = signedHeaders(request, keys, { service, region: "us-east-1", now });
      const scope = `AKID/20260701/us-east-1/${service}/aws4_request`;
      assert.deepEqual(
        [signed["X-Amz-Date"], signed["Authorization"]],
        [
          "20260701T123000Z",
          `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=${names}, Signature=${signature}`,
        ],
      );
    });

  it("reads the frames that the tests make, as the gateway does", () => {
    const bytes = eventFrame("messageStart", { role: "assistant" });
    assert.equal(bytes.toString("hex"), FRAME);
    assert.deepEqual(eventStream.createReader().push(bytes), [
      '{"messageStart":{"role":"assistant"}}',
    ]);
  });
});
