// A spend log of many requests as a gateway would have written it, to have something to add up.

import { handMade, openLine, settleLine, textOf } from "../../../support/books.ts";
import { createRandom } from "../../../support/random.ts";

const ACCOUNTS = ["acme", "beta", 'Çelik, "Söhne" & 李'];
const STATUSES = ["completed", "completed", "completed", "failed", "cancelled", "interrupted"];

/** What careless copying would change. */
const requestIdsOf = (n: number): string[] => [
  `req-${n}`,
  `"quoted", \\backslashed\\ ${n}`,
  "the same for all",
  `${"long ".repeat(100)}${n}`,
  `=1+1 ' ; -- ${n}`,
  `{"json":${n}}`,
  ` ${n} `,
];

/** So many requests between two times, each opened and settled, in the order of their times. */
export function writeSpend(dir: string, requests: number, [from, to]: [string, string]): void {
  const { between, pick } = createRandom(7);
  const step = (Date.parse(to) - Date.parse(from)) / requests;
  const lines = Array.from({ length: requests }, (_, n) => {
    const begun = Math.floor(Date.parse(from) + n * step);
    const about = {
      gateway_request_id: pick(requestIdsOf(n)),
      account: pick(ACCOUNTS),
      key_id: `key_${n.toString(16).padStart(16, "0")}`,
      model_requested: pick(["some", "other", "any/of them"]),
    };
    const status = pick(STATUSES);
    const isServed = status === "completed" || status === "cancelled";
    const most = (tokens: number): number => (isServed ? between(0, tokens) : 0);
    const [hit, miss, completion_tokens] = [most(9_000), most(90_000), most(900_000)];
    const usage = {
      prompt_tokens: hit + miss,
      completion_tokens,
      total_tokens: hit + miss + completion_tokens,
      prompt_cache_hit_tokens: hit,
      prompt_cache_miss_tokens: miss,
      reasoning_tokens: between(0, completion_tokens),
      ...(n % 3 === 0 && miss > 1 && { cache_write_tokens: Math.floor(miss / 2) }),
    };
    const settled = {
      time: new Date(begun + between(0, 5_000)).toISOString(),
      model_served: isServed ? pick(["some", "other"]) : null,
      provider: isServed ? "lab" : null,
      status,
      usage,
      usage_source: isServed ? "provider" : "none",
      cost: isServed ? `${between(0, 99)}${pick(["", ".5", ".000000000001", ".1234561"])}` : "0",
    };
    return [
      openLine(n, { ...about, time: new Date(begun).toISOString() }),
      settleLine(n, { ...about, ...settled }),
    ];
  });
  handMade(dir, `${from}.0001.jsonl`, textOf(lines.flat()), "let go");
}
