// Lines without a seal behind sealed ones: a gateway without seals may have recovered the segment.
// Whatever else such a line says is found.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { splitSeal } from "../../../src/extensions/seals/chain/chain.ts";
import { keptBooks, type Copy, type KeptBooks } from "./tampered-books.ts";

let books: KeptBooks;
before(async () => {
  books = await keptBooks();
});

/** The segment of the open day. It has eight lines: four requests that are settled at once. */
const SEGMENT = "spend/2026-03-04.0001.jsonl";

/** The settle line that a recovery writes for the request of the last line but one. */
function recoveryOf(copy: Copy, over: object = {}): string {
  const lines = copy.read(SEGMENT).split("\n");
  const settle = JSON.parse(splitSeal(lines[7]!)!.body);
  const none = Object.fromEntries(Object.keys(settle.usage).map((name) => [name, 0]));
  return JSON.stringify({
    ...settle,
    model_served: null,
    provider: null,
    status: "interrupted",
    http_status: null,
    finish_reason: null,
    attempts: [],
    usage: none,
    usage_source: "none",
    cost: "0",
    first_token_ms: null,
    ...over,
  });
}

/** The findings of the segment, if its last line is another. `keep`: lines that stay before it. */
async function findingsWith(last: (copy: Copy) => string, keep = 7): Promise<string> {
  const findings = await books.findings((copy) => {
    const text = last(copy);
    copy.lines(SEGMENT, (line, number) => (number > keep ? undefined : line));
    copy.write(SEGMENT, `${copy.read(SEGMENT)}${text}\n`);
  });
  return findings.filter((text) => text.includes("seal, as lines before it")).join("\n");
}

describe("a line without a seal behind sealed ones", () => {
  it("that settles an open request of the segment at no cost is the line of a recovery", async () => {
    assert.equal(await findingsWith(recoveryOf), "");
  });

  for (const [name, over] of Object.entries({
    "has a cost": { cost: "500" },
    "has usage": { usage: { prompt_tokens: 1 } },
    "has a provider": { provider: "lab" },
    "is of another account": { account: "other" },
    "is of another key": { key_id: "key_f" },
    "is of another request": { gateway_request_id: "other" },
    "ended before it began": { time: "2026-03-01T00:00:00.000Z" },
    "settles a request that nobody opened": { spend_id: `sp_${"0".repeat(32)}` },
  }))
    it(`that ${name} is found`, async () => {
      const changed = (copy: Copy): string => {
        const line = JSON.parse(recoveryOf(copy));
        const usage = { ...line.usage, ...("usage" in over ? over.usage : {}) };
        return JSON.stringify({ ...line, ...over, usage });
      };
      assert.match(
        await findingsWith(changed),
        /^spend\/2026-03-04\.0001\.jsonl, line 8: has no seal/,
      );
    });

  it("that settles a request which is settled already is found", async () => {
    assert.match(await findingsWith(recoveryOf, 8), /line 9: has no seal/);
  });

  it("that has a second cost is found", async () => {
    const doubled = (copy: Copy): string => recoveryOf(copy).replace("{", '{"cost":"5",');
    const behind = (copy: Copy): string => `${recoveryOf(copy).slice(0, -1)},"cost":"5"}`;
    assert.match(await findingsWith(doubled), /line 8: has no seal/);
    assert.match(await findingsWith(behind), /line 8: has no seal/);
  });

  it("that is the second for one request is found", async () => {
    const twice = (copy: Copy): string => `${recoveryOf(copy)}\n${recoveryOf(copy)}`;
    assert.match(await findingsWith(twice), /line 9: has no seal/);
  });
});
