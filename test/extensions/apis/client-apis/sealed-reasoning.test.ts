// The bound on the sealed texts of one request.

import assert from "node:assert/strict";
import { it } from "node:test";
import { createOpener } from "../../../../src/extensions/apis/client-apis/index.ts";

it("a request's ten thousandth sealed text is opened, and the next one refused", () => {
  const open = createOpener((sealed) => sealed.toUpperCase());
  for (let index = 0; index < 9_999; index += 1) open("x", []);
  assert.equal(open("a", ["input", 9_999]), "A");
  assert.throws(() => open("b", ["input", 10_000]), {
    message: "input[10000]: is one more than the 10000 sealed texts allowed",
  });
});
