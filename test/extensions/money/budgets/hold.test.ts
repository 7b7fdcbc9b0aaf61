// What a request without limits costs the hook: no turn of the event loop, and no look at the
// accountant.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AcceptedRequest } from "../../../../src/core/chat/context.ts";
import { createKeyring, NO_CREATED_KEYS } from "../../../../src/core/accounts/keyring.ts";
import type { Accountant } from "../../../../src/extensions/money/budgets/index.ts";
import { createHold } from "../../../../src/extensions/money/budgets/hold.ts";
import { checkConfig } from "../../../support/config.ts";
import { configFor, KEY } from "../../../support/gateway.ts";

/** Grants nothing, and remembers what is settled. */
function bench(account: object) {
  const config = checkConfig(
    configFor("http://127.0.0.1:1", ["m"], { accounts: { acme: account } }),
  );
  const keyring = createKeyring(config, NO_CREATED_KEYS, Date.now);
  const settled: unknown[][] = [];
  const accountant: Accountant = {
    open: async () => undefined,
    reserve: () => assert.fail("the accountant is asked"),
    settle: (...words) => settled.push(words),
    standing: () => undefined,
    close: () => undefined,
  };
  const caller = keyring.authenticate(`Bearer ${KEY}`);
  const hold = createHold(accountant)({ caller, config } as AcceptedRequest);
  return { hold, settled };
}

describe("the hold of a request without limits", () => {
  it("is there at once, holds nothing, and counts what was spent", () => {
    const { hold, settled } = bench({});
    assert.ok(hold && !(hold instanceof Promise));
    assert.equal(hold.amount, undefined);
    hold.settle({ cost: "0.000000000005", usage: { total_tokens: 7 } } as never);
    const [[token, outcome] = []] = settled;
    assert.equal(token, undefined);
    assert.deepEqual(Object(outcome).cost, 5n);
    assert.deepEqual(Object(outcome).tokens, 7);
  });
});
