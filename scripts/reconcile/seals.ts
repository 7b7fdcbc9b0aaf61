// The chain of each segment and the signed heads, computed anew by the definitions of seals.md, and
// what `seal verify` says of them.

import { createHash, createPublicKey, verify } from "node:crypto";
import type { Findings } from "./findings.ts";
import type { Estate, House, Line, TextFile } from "./house.ts";

const sha256 = (data: string): Buffer => createHash("sha256").update(data, "utf8").digest();
const NO_SEAL = "0".repeat(64);

/** The seals of a segment's lines, one a line. */
function chainOf({ name, text }: TextFile, findings: Findings): string[] {
  const seals: string[] = [];
  for (const [index, line] of text.split("\n").slice(0, -1).entries()) {
    const at = line.lastIndexOf(',"seal":"');
    const body = `${line.slice(0, at)}}`;
    const seal = sha256(`${seals.at(-1) ?? NO_SEAL}${body}`).toString("hex");
    findings.check(
      line.slice(at) === `,"seal":"${seal}"}`,
      () => `${name}, line ${index + 1}: its seal does not continue the line before`,
    );
    seals.push(seal);
  }
  return seals;
}

/** Each first line names earlier segments by a seal that they have. */
function judgeTips(
  segments: readonly TextFile[],
  chains: ReadonlyMap<string, string[]>,
  findings: Findings,
): void {
  for (const { name, text } of segments) {
    const first = /^(.*)\n/.exec(text)?.[1] ?? "{}";
    let chain: Line | undefined;
    try {
      chain = JSON.parse(first).chain;
    } catch {
      // The line itself is a violation already.
    }
    findings.check(chain !== undefined, () => `${name}: its first line has no chain`);
    for (const { segment, seal } of chain?.["previous"] ?? [])
      findings.check(
        chains.get(segment)?.includes(seal) === true,
        () => `${name}: it continues ${segment} at ${seal}, which is not there`,
      );
  }
}

function judgeHead(
  text: string,
  { publicKey, segments }: Estate,
  chains: ReadonlyMap<string, string[]>,
  findings: Findings,
): Line {
  const head: Line = JSON.parse(text);
  const what = `head of ${head["made_at"]}`;
  const at = text.lastIndexOf(',"signature":"');
  const key = createPublicKey(publicKey);
  const signature = Buffer.from(head["signature"], "hex");
  findings.check(
    at > 0 && verify(null, sha256(`${text.slice(0, at)}}`), key, signature),
    () => `${what}: its signature is wrong`,
  );
  const raw = key.export({ type: "spki", format: "der" }).subarray(-32).toString("hex");
  findings.equal(head["public_key"], raw, `${what}: its public key`);
  for (const { segment, first, lines, seal } of head["segments"]) {
    const file = segments.find(({ name }) => name === segment);
    findings.equal(chains.get(segment)?.[lines - 1], seal, `${what}: ${segment}, line ${lines}`);
    findings.check(
      file?.text.includes(`"spend_id":"${first}"`) === true,
      () => `${what}: ${segment} does not begin with ${first}`,
    );
  }
  return head;
}

function judgeVerification(house: House, estate: Estate, findings: Findings, what: string): void {
  const { verify: said, segments } = estate;
  findings.equal(
    [said["ok"], said["findings"], said["key_stated"], said["awaited"]],
    [true, [], true, 0],
    what,
  );
  const expected = segments.map(({ name, text }) => {
    const lines = text.split("\n").length - 1;
    return { file: `spend/${name}`, lines, sealed: lines, unsealed: 0, torn_bytes: 0 };
  });
  const actual = said["segments"].map(({ file, lines, sealed, unsealed, torn_bytes }: Line) => ({
    file,
    lines,
    sealed,
    unsealed,
    torn_bytes,
  }));
  findings.equal(actual, expected, `${what}: its segments`);
  for (const { head, file } of said["segments"])
    findings.check(/kept/.test(head ?? ""), () => `${what}: no kept head has all of ${file}`);
  if (house.rows) return;
  const records = estate.usageFiles.map(({ name, text }) => {
    const lines = text.split("\n").length - 1;
    return { file: `usage/${name}`, records: lines, proved: lines, not_proved: 0 };
  });
  const months = said["months"].map(({ file, records, by_head, by_log, not_proved }: Line) => ({
    file,
    records,
    proved: by_head + by_log,
    not_proved,
  }));
  findings.equal(months, records, `${what}: its months`);
}

export function judgeSeals(house: House, findings: Findings): void {
  house.estates.forEach((estate, gateway) => {
    const { segments, heads } = estate;
    const chains = new Map(segments.map((each) => [each.name, chainOf(each, findings)]));
    judgeTips(segments, chains, findings);
    const judged = heads.map((text) => judgeHead(text, estate, chains, findings));
    // The last head was made at rest, so it must have every line of every segment.
    const lines = new Map(
      judged.at(-1)?.["segments"].map(({ segment, lines }: Line) => [segment, lines]),
    );
    for (const [name, seals] of chains)
      findings.equal(lines.get(name), seals.length, `the last head: lines of ${name}`);
    judgeVerification(house, estate, findings, `seal verify of gateway ${gateway}`);
  });
}
