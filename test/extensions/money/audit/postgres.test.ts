// The same proof, where the usage records are in PostgreSQL. Skipped where PostgreSQL or the package
// `pg` is not installed.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gatewayInstanceId } from "../../../../src/extensions/scale/data-files/index.ts";
import * as postgres from "../../../../src/extensions/money/postgres/index.ts";
import { noPostgres, PG_FOLDER, startPostgres, type Postgres } from "../../../support/postgres.ts";
import { createScene, request, type Scene } from "../../../support/projection.ts";
import { command, copyOf, signing } from "../../../support/sealed-books.ts";

const A = "2026-01-31.0001.jsonl";
const B = "2026-02-01.0001.jsonl";

let db: Postgres;
let scene: Scene;
let address: string;
let cwd: string;

async function run(dir: string, ...args: string[]) {
  return await command(dir, args, { usage: { store: address } });
}

async function counts(dir: string): Promise<number[]> {
  const { stdout, stderr } = await run(dir, "books", "rebuild", "--json");
  assert.notEqual(stdout, "", stderr);
  const { added, changed, removed, unchanged, left } = JSON.parse(stdout);
  return [added, changed, removed, unchanged, left];
}

describe("books in PostgreSQL", { skip: noPostgres() }, () => {
  before(async () => {
    // The package is looked for from the working directory.
    cwd = process.cwd();
    db = await startPostgres();
    address = await db.database("proof");
    process.chdir(PG_FOLDER);
    scene = createScene({
      store: address,
      extensions: [{ name: "postgres", ...postgres }, signing],
    });
    const id = gatewayInstanceId(scene.dir).slice(0, 8);
    const own = (n: number, time: string) =>
      request(n, time).map((line) => ({ ...line, spend_id: line["spend_id"].replace(/0{8}/, id) }));
    for (let n = 1; n <= 20; n += 1) {
      scene.write(A, ...own(n, `2026-01-31T12:00:${n + 10}.000Z`));
      scene.write(B, ...own(n + 20, `2026-02-01T12:00:${n + 10}.000Z`));
    }
    await scene.pass();
    await scene.passUntil("2026-02-01T12:30:00.000Z");
    assert.equal(scene.closed().length, 1);
  });
  after(async () => {
    await scene?.books.store.close();
    process.chdir(cwd);
    await db?.close();
  });

  it("are right, and nobody has changed them", async () => {
    const audit = await run(scene.dir, "audit");
    assert.equal(audit.code, 0, audit.stdout);
    assert.match(
      audit.stdout,
      /^settled 40 for .*\nproved: 40 requests .*\nthe books are right\n$/,
    );
    const verify = await run(scene.dir, "seal", "verify");
    assert.equal(verify.code, 0, verify.stdout + verify.stderr);
    assert.match(verify.stdout, /\n {2}2026-01-31 +20 +true +20\n/);
  });

  it("are wrong if a row was changed or deleted, until they are made anew", async () => {
    await db.query(address, "UPDATE usage_records SET cost = '9' WHERE usage_id LIKE '%05'");
    await db.query(address, "DELETE FROM usage_records WHERE usage_id LIKE '%1e'");
    const { code, stdout } = await run(scene.dir, "audit");
    assert.equal(code, 1);
    assert.match(
      stdout,
      /usage records of 2026-01-31, line 5, and spend\/.*: in the usage records cost is "9"/,
    );
    assert.match(
      stdout,
      /line 20 \(opened in line 19\): \S+ settled, and not in usage records of 2026-02-01, line 10/,
    );
    assert.equal((await run(scene.dir, "seal", "verify")).code, 1);
    assert.deepEqual(await counts(scene.dir), [1, 1, 0, 38, 0]);
    assert.deepEqual(await counts(scene.dir), [0, 0, 0, 40, 0]);
    assert.equal((await run(scene.dir, "audit")).code, 0);
  });

  it("have no records in a folder alone, of which nothing is said", async () => {
    const copy = copyOf(scene.dir);
    rmSync(join(copy, "usage"), { recursive: true, force: true });
    const { stdout } = await command(copy, ["seal", "verify", copy]);
    assert.match(
      stdout,
      /\nusage records: there are none in files here, and nothing is said of others\n/,
    );
    assert.match(stdout, /\nnothing was changed\n$/);
  });
});
