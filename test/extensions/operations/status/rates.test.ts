// What `top` makes of two looks at the metrics.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Snapshot, ShownStatus } from "../../../../src/extensions/operations/status/look.ts";
import { samplesIn } from "../../../../src/extensions/operations/status/metrics-text.ts";
import { countsBetween } from "../../../../src/extensions/operations/status/rates.ts";

const look = (at: number, text: string): Snapshot => ({
  at,
  status: {} as ShownStatus,
  samples: samplesIn(text),
});

describe("the samples of a text", () => {
  it("are its lines with names, labels and values; comments are none", () => {
    const text =
      '# HELP a_total Help.\n# TYPE a_total counter\na_total{m="x",s="200"} 3\nb 0.5\n\n';
    assert.deepEqual(samplesIn(text), [
      { name: "a_total", labels: { m: "x", s: "200" }, value: 3 },
      { name: "b", labels: {}, value: 0.5 },
    ]);
  });

  it("have their labels without the escapes of the format", () => {
    const [sample] = samplesIn('a{m="say \\"hi\\" \\\\ there\\n",b="}"} +Inf');
    assert.deepEqual(sample, {
      name: "a",
      labels: { m: 'say "hi" \\ there\n', b: "}" },
      value: Infinity,
    });
  });
});

describe("the counts between two looks", () => {
  it("are what was added, and since the start without an earlier look", () => {
    const first = look(1_000, 'n{m="a"} 5\nn{m="b"} 1');
    const second = look(3_000, 'n{m="a"} 7\nn{m="b"} 1\nn{m="c"} 4');
    const counts = countsBetween(first, second);
    assert.equal(counts.seconds, 2);
    assert.equal(counts.sum("n"), 6);
    assert.equal(
      counts.sum("n", ({ m }) => m === "a"),
      2,
    );
    assert.equal(countsBetween(undefined, second).sum("n"), 12);
    assert.equal(countsBetween(undefined, second).seconds, undefined);
  });

  it("begin anew with a counter that fell, because its process was started anew", () => {
    assert.equal(countsBetween(look(0, "n 100"), look(1, "n 3")).sum("n"), 3);
  });

  it("have the quantiles of a histogram as bounds of its buckets, over all labels", () => {
    const text = (a: readonly number[], b: readonly number[]) =>
      [a, b]
        .map((counts, at) =>
          ["0.1", "1", "+Inf"]
            .map((bound, n) => `h_bucket{m="${at}",le="${bound}"} ${counts[n]}`)
            .join("\n"),
        )
        .join("\n");
    const counts = countsBetween(
      look(0, text([9, 9, 9], [0, 0, 0])),
      look(1, text([9, 9, 9], [1, 3, 4])),
    );
    assert.equal(counts.quantile("h", 0.25), 0.1);
    assert.equal(counts.quantile("h", 0.5), 1);
    assert.equal(counts.quantile("h", 0.95), Infinity);
    assert.equal(countsBetween(undefined, look(0, "")).quantile("h", 0.5), undefined);
  });
});
