// What the network says, and the code that it becomes.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { fromNetwork } from "../../../src/core/routing/attempt-errors.ts";
import { ConnectTimeout } from "../../../src/core/upstream/transport.ts";

const withCode = (code: string, message = "failed") => Object.assign(new Error(message), { code });

describe("an error of the network", () => {
  const CASES: readonly [name: string, error: unknown, code: string, message: string][] = [
    [
      "a refused connection",
      withCode("ECONNREFUSED"),
      "model_unavailable",
      "the connection failed: ECONNREFUSED",
    ],
    [
      "an unknown host",
      withCode("ENOTFOUND"),
      "model_unavailable",
      "the connection failed: ENOTFOUND",
    ],
    [
      "a bad certificate",
      withCode("CERT_HAS_EXPIRED"),
      "model_unavailable",
      "the connection failed: CERT_HAS_EXPIRED",
    ],
    [
      "a reset connection",
      withCode("ECONNRESET"),
      "upstream_error",
      "the connection failed: ECONNRESET",
    ],
    [
      "an error that fetch wraps",
      new TypeError("fetch failed", { cause: withCode("ECONNREFUSED") }),
      "model_unavailable",
      "the connection failed: ECONNREFUSED",
    ],
    [
      "fetch without a code",
      new TypeError("fetch failed"),
      "upstream_error",
      "the connection failed: fetch failed",
    ],
    [
      "fetch without a code, whose cause says more",
      new TypeError("fetch failed", { cause: new Error("bad port") }),
      "upstream_error",
      "the connection failed: bad port",
    ],
    [
      "several addresses, of which the first counts",
      new AggregateError([withCode("ECONNREFUSED"), withCode("ECONNRESET")]),
      "model_unavailable",
      "the connection failed: ECONNREFUSED",
    ],
    [
      "a connection that takes too long",
      new ConnectTimeout("no connection"),
      "upstream_timeout",
      "no connection",
    ],
    [
      "a bound that was exceeded",
      new RangeError("an event of too many characters"),
      "upstream_error",
      "an event of too many characters",
    ],
  ];
  for (const [name, error, code, message] of CASES)
    it(`becomes ${code}: ${name}`, () => {
      const result = fromNetwork(error);
      assert.ok(result instanceof ProviderError);
      assert.deepEqual([result.code, result.message], [code, message]);
      assert.equal(result.cause, error);
    });

  it("stays what it is if it is a bug, a ProviderError, or no Error", () => {
    for (const error of [
      new TypeError("x is undefined"),
      Object.assign(new TypeError("wrong argument"), { code: "ERR_INVALID_ARG_TYPE" }),
      new ProviderError("upstream_error", "a"),
      "text",
    ])
      assert.equal(fromNetwork(error), error);
  });
});
