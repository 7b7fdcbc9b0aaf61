// The sliding window of tokens against a simple count, and the limits of accounts and keys over
// real sockets.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  createTokenWindows,
  type Admission,
} from "../../../../src/extensions/money/token-windows/index.ts";
import { priced } from "../../../support/books.ts";
import { json, KEY } from "../../../support/gateway.ts";
import { speak, status } from "../../../support/provider.ts";
import { createRandom } from "../../../support/random.ts";

const MINUTE = 60_000;

const limitOf = (limit: number) => [{ name: "account a", limit }];
const WIDE = limitOf(1_000_000);

describe("a window of tokens", () => {
  it("counts like a list of all admissions, also after corrections", () => {
    const seed = 20_261_122;
    console.log(`seed ${seed}`);
    const { between } = createRandom(seed);
    let time = 0;
    const windows = createTokenWindows(() => time);
    const all: { time: number; tokens: number; admission?: Admission | undefined }[] = [];
    for (let round = 0; round < 3_000; round += 1) {
      time += between(0, 900);
      const count = (at = time) =>
        all.reduce((sum, each) => sum + (each.time + MINUTE > at ? each.tokens : 0), 0);
      assert.equal(1_000_000 - windows.state(WIDE)!.remaining, count());
      const wanted = between(1, 400);
      const limit = between(1_000, 30_000);
      if (count() + wanted <= limit) {
        assert.equal(windows.msUntilRoom(limitOf(limit), wanted), 0);
        all.push({ time, tokens: wanted, admission: windows.admit(WIDE, wanted) });
      } else {
        const wait = windows.msUntilRoom(limitOf(limit), wanted);
        assert.ok(count(time + wait) + wanted <= limit, "there is room after the wait");
        assert.ok(count(time + wait - 1) + wanted > limit, "and no room before it");
      }
      const earlier = all[between(0, all.length)];
      if (!earlier?.admission || between(0, 2) === 0) continue;
      earlier.tokens = between(0, 500);
      windows.correct(WIDE, earlier.admission, earlier.tokens);
      earlier.admission = undefined;
    }
    assert.ok(all.length > 500);
    assert.ok(windows.state(WIDE)!.resetMs > 0);
    time += MINUTE;
    assert.equal(windows.state(WIDE)!.resetMs, 0);
    assert.equal(windows.msUntilRoom(limitOf(10), 11), MINUTE, "more than the whole limit");
  });

  it("retains nothing of withdrawn requests, which would slow down later ones", () => {
    let time = 0;
    const windows = createTokenWindows(() => time);
    const kept = windows.admit(WIDE, 5);
    for (time = 1; time <= 50_000; time += 1) windows.withdraw(WIDE, windows.admit(WIDE, 3));
    assert.deepEqual(windows.state(WIDE), { limit: 1e6, remaining: 999_995, resetMs: 9_999 });
    windows.withdraw(WIDE, kept);
    assert.deepEqual(windows.state(WIDE), { limit: 1e6, remaining: 1e6, resetMs: 0 });
    const old = windows.admit(WIDE, 5);
    time += MINUTE;
    windows.withdraw(WIDE, old);
    assert.equal(windows.state(WIDE)!.remaining, 1e6, "it had expired already");
  });
});

const ASK = { max_tokens: 7 };

describe("tokens per minute", () => {
  it("count the estimate at first, and then the actual tokens", async (t) => {
    let now = 1_000;
    const over = { accounts: { acme: { tokens_per_minute: 40 } } };
    const { ask } = await priced(t, { m: speak("Fine.") }, over, { monotonic: () => now });
    const header = ({ headers }: { readonly headers: Headers }, name: string) =>
      headers.get(`x-ratelimit-${name}-tokens`);
    // 14 bytes are 4 tokens, and up to 7 may follow: 11 at first, 27 at the end.
    const first = await ask(ASK);
    const shown = ["limit", "remaining", "reset"].map((name) => header(first, name));
    assert.deepEqual([first.status, ...shown], [200, "40", "29", "60s"]);
    now += 20_000;
    assert.equal((await ask(ASK)).status, 200);
    now += 39_999;
    const refused = await ask(ASK);
    assert.deepEqual([refused.status, header(refused, "remaining")], [429, "0"]);
    assert.equal(refused.headers.get("retry-after"), "1");
    const { type, code, message } = JSON.parse(refused.text).error;
    assert.deepEqual([type, code], ["rate_limit_error", "tokens_per_minute_exceeded"]);
    assert.match(message, /Retry after 1 seconds\.$/);
    now += 1;
    assert.equal((await ask(ASK)).status, 200);
  });

  it("do not count a request for rpm if they or the budget reject it", async (t) => {
    const budget = { amount: "0.0015", period: "total" };
    const acme = { tokens_per_minute: 60, rpm: 3, budget };
    const { gw, ask } = await priced(t, { m: speak("Fine.") }, { accounts: { acme } });
    const asked = async (body: object) => {
      const { status, headers } = await ask(body);
      return [status, headers.get("x-ratelimit-remaining-requests")];
    };
    assert.deepEqual(await asked(ASK), [200, "2"]);
    for (let round = 0; round < 5; round += 1) {
      assert.deepEqual(await asked({ max_tokens: 60 }), [429, "2"]);
      assert.deepEqual(await asked({ max_tokens: 1_000 }), [402, "2"]);
    }
    assert.deepEqual(await asked({ max_tokens: 1 }), [200, "1"]);
    const { limits: shown } = await json(await fetch(`${gw.gateway.adminAddress()}/status`));
    assert.equal(shown.accounts[0].used, 2);
  });

  it("of a key are separate, and a request that was not served takes none", async (t) => {
    const over = { keys: [{ account: "acme", key: KEY, tokens_per_minute: 11 }] };
    const { ask } = await priced(t, { m: speak("Fine."), bad: status(500) }, over);
    assert.equal((await ask({ ...ASK, model: "bad" })).status, 503);
    assert.deepEqual([(await ask(ASK)).status, (await ask(ASK)).status], [200, 429]);
  });
});
