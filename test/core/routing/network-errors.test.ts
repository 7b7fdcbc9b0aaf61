// What the network says, and the code that it becomes.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { fromNetwork } from "../../../src/core/routing/attempt-errors.ts";
import { ConnectTimeout } from "../../../src/core/upstream/transport.ts";

const withCode = (code: string) => Object.assign(new Error("failed"), { code });
const ofFetch = (cause?: Error) => new TypeError("fetch failed", { cause });
const REFUSED = withCode("ECONNREFUSED");
const FAILED = "the connection failed: ";

describe("an error of the network", () => {
  for (const [name, error, code, message] of [
    ["a refused connection", REFUSED, "model_unavailable", `${FAILED}ECONNREFUSED`],
    ["an unknown host", withCode("ENOTFOUND"), "model_unavailable", `${FAILED}ENOTFOUND`],
    [
      "a bad certificate",
      withCode("CERT_HAS_EXPIRED"),
      "model_unavailable",
      `${FAILED}CERT_HAS_EXPIRED`,
    ],
    [
      "an answer without TLS to https",
      withCode("ERR_SSL_WRONG_VERSION_NUMBER"),
      "model_unavailable",
      `${FAILED}ERR_SSL_WRONG_VERSION_NUMBER`,
    ],
    ["a reset connection", withCode("ECONNRESET"), "upstream_error", `${FAILED}ECONNRESET`],
    ["an error that fetch wraps", ofFetch(REFUSED), "model_unavailable", `${FAILED}ECONNREFUSED`],
    ["fetch without a code", ofFetch(), "upstream_error", `${FAILED}fetch failed`],
    [
      "fetch without a code, whose cause says more",
      ofFetch(new Error("bad port")),
      "upstream_error",
      `${FAILED}bad port`,
    ],
    [
      "several addresses, of which the first counts",
      new AggregateError([REFUSED, withCode("ECONNRESET")]),
      "model_unavailable",
      `${FAILED}ECONNREFUSED`,
    ],
    ["a slow connection", new ConnectTimeout("none"), "upstream_timeout", "none"],
    ["a bound that was exceeded", new RangeError("too large"), "upstream_error", "too large"],
  ] as const)
    it(`becomes ${code}: ${name}`, () => {
      const result = fromNetwork(error);
      assert.ok(result instanceof ProviderError);
      assert.deepEqual([result.code, result.message, result.cause], [code, message, error]);
    });

  it("is a reply that broke off if its answer had begun, although TLS reads no version in it", () => {
    const error = fromNetwork(withCode("ERR_SSL_WRONG_VERSION_NUMBER"), true);
    assert.equal((error as ProviderError).code, "upstream_error");
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
