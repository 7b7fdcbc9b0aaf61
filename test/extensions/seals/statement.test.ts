// Sealed statements: what one proves on a machine that has nothing but the file and the public key.

import assert from "node:assert/strict";
import { createPrivateKey, sign } from "node:crypto";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { configFile } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";
import { runHere } from "../../support/run-here.ts";
import { threeDays, type SealedBooks } from "./sealed-books.ts";

const statementOf = (books: SealedBooks, ...args: string[]) =>
  books.command("billing", "statement", "--account", "acme", "--month", "2026-03", ...args);

/** The files that travel: the statement, the public key, and a head that was kept. */
async function travel(books: SealedBooks) {
  const place = folder();
  const file = (name: string, text: string): string => {
    const path = join(place, name);
    writeFileSync(path, text);
    return path;
  };
  const { stdout, code, stderr } = await statementOf(books, "--sealed");
  assert.equal(code, 0, stderr);
  return {
    text: stdout,
    statement: file("statement.json", stdout),
    key: file("key.pem", (await books.command("seal", "public-key")).stdout),
    head: file("head.json", (await books.command("seal", "head", "--day", "2026-03-02")).stdout),
    write: file,
  };
}

/** Signs a changed statement anew, as somebody could who has the installation's key. */
function signedAnew(books: SealedBooks, text: string, change: (json: any) => void): string {
  const { signature: _, ...json } = JSON.parse(text);
  change(json);
  const body = JSON.stringify(json);
  const secret = readFileSync(join(books.dir, "keys.seal"), "utf8");
  const der = Buffer.from(`302e020100300506032b657004220420${secret}`, "hex");
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const signature = sign(null, createHash("sha256").update(body).digest(), key).toString("hex");
  return `${body.slice(0, -1)},"signature":"${signature}"}\n`;
}

const verify = async (...args: string[]) => {
  const { code, stdout, stderr } = await runHere(["seal", "verify", ...args, "--json"]);
  assert.ok(stdout !== "", stderr);
  const result = JSON.parse(stdout);
  assert.equal(result.ok, code === 0);
  return result;
};

describe("billing statement --sealed", () => {
  it("is the bill of the same command without it, and verifies elsewhere", async () => {
    const books = await threeDays(6);
    const { text, statement, key, head } = await travel(books);
    const plain = await statementOf(books, "--json");
    assert.deepEqual(JSON.parse(text).bill, JSON.parse(plain.stdout));
    const result = await verify(statement, "--public-key", key, "--head", head);
    const { ok, account, month, records, by_head, not_proved, compared, key_stated } = result;
    assert.deepEqual(
      [ok, account, month, records, by_head, not_proved, compared, key_stated],
      [true, "acme", "2026-03", 18, 12, 6, ["2026-03-02"], true],
    );
    assert.ok(!text.includes("beta"), "nothing of other accounts is in it");
  });

  it("says for people what is proved", async () => {
    const books = await threeDays(1);
    const { statement, key } = await travel(books);
    const { stdout } = await runHere(["seal", "verify", statement, "--public-key", key]);
    assert.match(stdout, /statement of acme for 2026-03: 3 records: 2 proved by heads, 1 of days/);
    assert.match(stdout, /\nnothing was changed\n$/);
  });

  it("made with the right key, but not of what was sealed, is found", async () => {
    const books = await threeDays(3);
    const { text, key, head, write } = await travel(books);
    const changes: Readonly<Record<string, [RegExp, (json: any) => void]>> = {
      "a record with another cost": [
        /^the records of 2026-03-02 in the statement: are not those/m,
        (json) => {
          json.days[0].records[0].record.cost = "9";
        },
      ],
      "a record that is not there": [
        /^the total: is not the sum/m,
        (json) => {
          json.not_proved.pop();
        },
      ],
      "a record twice": [
        /^record sp_\w+: is in the statement twice/m,
        (json) => {
          json.not_proved.push(json.days[0].records[0].record);
        },
      ],
      "a record of another account": [
        /^record sp_\w+: is of another account/m,
        (json) => {
          json.not_proved[0].account = "beta";
        },
      ],
      "another total": [
        /^the total: is not the sum/m,
        (json) => {
          json.bill.total.cost = "0";
        },
      ],
      "another line": [
        /^the line of odd: is not the sum/m,
        (json) => {
          json.bill.lines.find((line: any) => line.model === "odd").completion_tokens += 1;
        },
      ],
      "a late record that no head has": [
        /^record sp_\w+: is in no head/m,
        (json) => {
          json.late.push(json.not_proved.pop());
        },
      ],
      "another head of the day that was kept": [
        /^the head of 2026-03-02 in the statement: is not the one that was kept/m,
        (json) => {
          json.heads[0] = signedAnew(books, json.heads[0], (each) => {
            each.made_at = "2026-03-03T00:00:01.000Z";
          }).trimEnd();
        },
      ],
      "no head": [
        /^the records of 2026-03-02 in the statement: are not those/m,
        (json) => {
          json.heads.shift();
        },
      ],
      "fewer hashes": [
        /^the records of 2026-03-02 in the statement: are not those/m,
        (json) => {
          json.days[0].hashes.pop();
        },
      ],
    };
    for (const [name, [finding, change]] of Object.entries(changes)) {
      const changed = write("changed.json", signedAnew(books, text, change));
      const { findings } = await verify(changed, "--public-key", key, "--head", head);
      assert.match(findings.join("\n"), finding, name);
      assert.ok(!findings.join().includes("its signature is wrong"), name);
    }
  });

  it("with a record of a closed day that no head has is found", async () => {
    const books = await threeDays(3);
    const { text, key, head, write } = await travel(books);
    const unproved = (withHead: boolean) => (json: any) => {
      const { records } = json.days.shift();
      if (!withHead) json.heads.shift();
      json.not_proved.push(...records.map(({ record }: any) => record));
    };
    const finding = /^record sp_\w+: ended on 2026-03-02, which has a head, and none has it$/;
    const hidden = write("hidden.json", signedAnew(books, text, unproved(false)));
    const shown = write("shown.json", signedAnew(books, text, unproved(true)));
    assert.deepEqual((await verify(hidden, "--public-key", key)).findings, []);
    for (const args of [[hidden, "--head", head], [shown]]) {
      const { findings } = await verify(...args, "--public-key", key);
      assert.equal(findings.length, 3);
      for (const each of findings) assert.match(each, finding);
    }
  });

  it("is not verified by a head that is none, or has a wrong signature", async () => {
    const books = await threeDays(1);
    const { statement, key, write } = await travel(books);
    const { stdout: open } = await books.command("seal", "head");
    const { stdout: closed } = await books.command("seal", "head", "--day", "2026-03-02");
    const wrong = /^the head that was kept: of [\d-]+: its signature is wrong$/;
    const kept: readonly (readonly [string, RegExp | undefined])[] = [
      [open, undefined],
      [open.replace('"lines":', '"lines":1'), wrong],
      [closed.replace('"made_at":"2026', '"made_at":"2027'), wrong],
      [readFileSync(key, "utf8"), /^the head that was kept: is neither a head nor a line of/],
    ];
    for (const [text, finding] of kept) {
      const file = write("kept.json", text);
      const { findings } = await verify(statement, "--public-key", key, "--head", file);
      if (finding) assert.match(findings[0], finding);
      else assert.deepEqual(findings, []);
    }
  });

  it("that was cut off is told as such", async () => {
    const books = await threeDays(1);
    const { text, key, write } = await travel(books);
    const cut = await runHere([
      "seal",
      "verify",
      write("cut.json", text.slice(0, -40)),
      "--public-key",
      key,
    ]);
    assert.deepEqual([cut.code, cut.stdout], [1, ""]);
    assert.match(cut.stderr, /cut.json cannot be read: it was cut off or damaged/);
  });

  it("is refused without seals, and as csv", async () => {
    const books = await threeDays(1);
    const file = configFile(demo({ data_dir: books.dir }));
    const args = ["billing", "statement", "--account", "acme", "--month", "2026-03", "--sealed"];
    const without = await runHere([...args, "--config", file]);
    assert.deepEqual([without.code, without.stdout], [2, ""]);
    assert.match(without.stderr, /--sealed needs seals.enabled/);
    const csv = await statementOf(books, "--sealed", "--format", "csv");
    assert.deepEqual([csv.code, csv.stdout], [2, ""]);
  });
});

describe("seal verify", () => {
  it("of the configured books says what is proved of each file, and exits with 1 if one is changed", async () => {
    const books = await threeDays(2);
    const good = await books.command("seal", "verify");
    assert.equal(good.code, 0);
    const lines = good.stdout.split("\n");
    assert.match(lines[0]!, /^key: [0-9a-f]{64}, as the files state it: /);
    assert.deepEqual(lines.slice(1), [
      "heads: 2 of closed days, from 2026-03-02 to 2026-03-03",
      "spend/2026-03-02.0001.jsonl: 8 lines sealed, the head of 2026-03-02 has the last of them",
      "spend/2026-03-03.0001.jsonl: 8 lines sealed, the head of 2026-03-03 has the last of them",
      "spend/2026-03-04.0001.jsonl: 8 lines sealed, no head has the last of them yet",
      "usage/2026-03.jsonl: 12 records: 8 proved by heads, 4 by sealed lines of the spend log, 0 not proved",
      "nothing was changed",
      "",
    ]);
    const path = join(books.dir, "spend/2026-03-03.0001.jsonl");
    writeFileSync(path, readFileSync(path, "utf8").replace('"stream":false', '"stream":true '));
    const bad = await books.command("seal", "verify");
    assert.equal(bad.code, 1);
    assert.match(bad.stdout, /\n {2}spend\/2026-03-03.0001.jsonl, line 1: was changed, or/);
  });

  it("of one segment checks its chain, and of anything else says what it takes", async () => {
    const books = await threeDays(1);
    const path = join(books.dir, "spend/2026-03-03.0001.jsonl");
    assert.deepEqual((await verify(path)).findings, []);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.replace('"odd"', '"eve"'));
    assert.match((await verify(path)).findings.join(), /line 2: was changed/);
    const month = await runHere(["seal", "verify", join(books.dir, "usage/2026-03.jsonl")]);
    assert.equal(month.code, 2);
    assert.match(month.stderr, /usage records of a month are verified with their data_dir/);
    const nothing = await runHere(["seal", "verify", join(books.dir, "nothing")]);
    assert.deepEqual([nothing.code, nothing.stdout], [1, ""]);
    const noKey = await runHere(["seal", "verify", path, "--public-key", path]);
    assert.match(noKey.stderr, /holds no public key of seals/);
  });

  it("compares with lines of the log that name heads", async () => {
    const books = await threeDays(1);
    const log = join(folder(), "log");
    const events = books.events.map((event) => `${JSON.stringify(event)}\n`);
    writeFileSync(log, events.join(""));
    assert.deepEqual((await books.verify("--head", log)).findings, []);
    writeFileSync(log, events.join("").replace(/"head":"./, '"head":"x'));
    const { findings } = await books.verify("--head", log);
    assert.deepEqual(findings, [
      "the head that was kept: of 2026-03-02 is not in seals/heads.jsonl: heads were changed or removed",
    ]);
  });
});
