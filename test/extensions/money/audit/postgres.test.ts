// The same audit with usage records in PostgreSQL. Skipped if PostgreSQL or the package `pg` is not
// installed.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { noPostgres, PG_FOLDER, startPostgres } from "../../../support/postgres.ts";
import { command, copyOf, signing } from "../../../support/sealed-books.ts";
import { own, scene } from "../postgres/scene.ts";

/** Twenty requests on each of two days. The first day is closed. */
async function twoDays(t: TestContext) {
  const db = await startPostgres();
  const address = await db.database("proof");
  const at = scene(t, address, { extensions: [signing] });
  t.after(db.close);
  for (let n = 1; n <= 20; n += 1) {
    at.write("2026-01-31.0001.jsonl", ...own(at, n, `2026-01-31T12:00:${n + 10}.000Z`));
    at.write("2026-02-01.0001.jsonl", ...own(at, n + 20, `2026-02-01T12:00:${n + 10}.000Z`));
  }
  await at.pass();
  await at.passUntil("2026-02-01T12:30:00.000Z");
  assert.equal(at.closed().length, 1);
  // The package is resolved from the working directory.
  const cwd = process.cwd();
  process.chdir(PG_FOLDER);
  t.after(() => process.chdir(cwd));
  const run = (...args: string[]) => command(at.dir, args, { usage: { store: address } });
  return { db, address, dir: at.dir, run };
}

it("books in PostgreSQL are proved, and rebuilt if rows were changed or deleted", {
  skip: noPostgres(),
}, async (t) => {
  const { db, address, dir, run } = await twoDays(t);
  const right = await run("audit");
  assert.equal(right.code, 0, right.stdout);
  assert.match(right.stdout, /^settled 40 for .*\nproved: 40 requests .*\nthe books are right\n$/);
  const verify = await run("seal", "verify");
  assert.equal(verify.code, 0, verify.stdout + verify.stderr);
  assert.match(verify.stdout, /\n {2}2026-01-31 +20 +true +20\n/);

  await db.query(address, "UPDATE usage_records SET cost = '9' WHERE usage_id LIKE '%05'");
  await db.query(address, "DELETE FROM usage_records WHERE usage_id LIKE '%1e'");
  const { code, stdout } = await run("audit");
  assert.equal(code, 1);
  for (const expected of [
    /usage records of 2026-01-31, line 5, and spend\/.*: in the usage records cost is "9"/,
    /line 20 \(opened in line 19\): \S+ settled, and not in usage records of 2026-02-01, line 10/,
  ])
    assert.match(stdout, expected);
  assert.equal((await run("seal", "verify")).code, 1);
  for (const counts of [
    [1, 1, 0, 38, 0],
    [0, 0, 0, 40, 0],
  ]) {
    const rebuilt = JSON.parse((await run("books", "rebuild", "--json")).stdout);
    const { added, changed, removed, unchanged, left } = rebuilt;
    assert.deepEqual([added, changed, removed, unchanged, left], counts);
  }
  assert.equal((await run("audit")).code, 0);

  await db.query(address, "UPDATE usage_sums SET cost = '9', model = 'x', requests = 99");
  const { stdout: wrong } = await run("audit");
  for (const day of ["2026-01-31", "2026-02-01"])
    assert.match(wrong, new RegExp(`the sums of ${day}: are not those of its usage`));
  assert.equal((await run("books", "rebuild")).code, 0);
  const sums = await db.query(address, "SELECT requests FROM usage_sums");
  assert.deepEqual(sums, [{ requests: "20" }, { requests: "20" }], "also of the open day");
  assert.equal((await run("audit")).code, 0);

  // The folder alone has no records, and audit reports none missing.
  const copy = copyOf(dir);
  rmSync(join(copy, "usage"), { recursive: true, force: true });
  const alone = (await command(copy, ["seal", "verify", copy])).stdout;
  assert.match(
    alone,
    /\nusage records: there are none in files here; those in a database are not verified\n/,
  );
  assert.match(alone, /\nnothing was changed\n$/);
});
