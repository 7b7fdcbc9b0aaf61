// The ids of a data_dir, and of a copy of it.

import assert from "node:assert/strict";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { gatewayInstanceId, placeOf } from "../../../../src/extensions/scale/data-files/index.ts";
import { folder } from "../../../support/folder.ts";

it("gatewayInstanceId names a data_dir for good", () => {
  const dir = folder();
  const id = gatewayInstanceId(dir);
  assert.match(id, /^[0-9a-f]{32}$/);
  assert.equal(readFileSync(join(dir, "gateway-id"), "utf8"), id);
  assert.equal(gatewayInstanceId(dir), id);
});

it("placeOf tells a data_dir from a copy with the same gateway-id", () => {
  const dir = folder();
  const copy = join(folder(), "copy");
  const place = placeOf(dir);
  cpSync(dir, copy, { recursive: true });
  assert.equal(placeOf(dir), place);
  assert.equal(gatewayInstanceId(copy), gatewayInstanceId(dir));
  assert.notEqual(placeOf(copy), place);
});
