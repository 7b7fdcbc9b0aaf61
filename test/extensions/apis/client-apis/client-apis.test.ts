// The setting `apis`: which further formats clients may ask in.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { apiEnabled } from "../../../../src/extensions/apis/client-apis/index.ts";
import { ValidationError } from "../../../../src/core/schema/checker.ts";
import { checkConfig } from "../../../support/config.ts";
import { demo } from "../../../support/gateway.ts";

const withApis = (apis: unknown) => checkConfig({ ...demo(), apis });

describe("apis", () => {
  it("switches on those that it names", () => {
    const config = withApis(["responses"]);
    assert.equal(apiEnabled(config, "responses"), true);
    assert.equal(apiEnabled(config, "messages"), false);
  });

  it("has none by default", () => {
    for (const absent of [undefined, null, []])
      for (const name of ["messages", "responses"] as const)
        assert.equal(apiEnabled(withApis(absent), name), false);
  });

  it("has both in the demo configuration", () => {
    const config = checkConfig(demo());
    assert.ok(apiEnabled(config, "messages") && apiEnabled(config, "responses"));
  });

  it("refuses an unknown name at its place", () => {
    assert.throws(
      () => withApis(["messages", "completions"]),
      (error) =>
        error instanceof ValidationError &&
        error.issues[0]!.path.join(".") === "apis.1" &&
        error.issues[0]!.message === 'expected one of "messages", "responses", got "completions"',
    );
  });
});
