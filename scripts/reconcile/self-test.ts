// The self-test: spoils what was collected, in one way at a time, and looks whether the judge finds
// it, and by which violation. A judge that finds nothing wrong with any books would be of no use.

import { isDeepStrictEqual } from "node:util";
import type { House } from "./house.ts";
import { judge } from "./judge.ts";
import { CONTINUED } from "./plan.ts";
import {
  changeLine,
  changeRecord,
  isBilled,
  longestOf,
  more,
  otherDigit,
  otherPrices,
  rebill,
  receiptOf,
  segmentsOf,
  withoutLastLine,
} from "./spoiling.ts";

/** A way to spoil the copy of a phase, and the violation that must be among those that are found. */
interface Spoil {
  readonly name: string;
  readonly by: RegExp;
  /** Changes nothing if the phase has nothing to spoil like that. */
  readonly apply: (house: House) => unknown;
}

const spoil = (name: string, by: RegExp, apply: Spoil["apply"]): Spoil => ({ name, by, apply });

/** The spend log. */
const LOG = [
  spoil("a request missing in the spend log", /opened and never settled/, (house) =>
    changeLine(segmentsOf(house), isBilled, () => ""),
  ),
  spoil("a request settled twice", /settled twice/, (house) =>
    changeLine(segmentsOf(house), isBilled, (text) => text + text),
  ),
  spoil("a changed byte in a segment", /days.jsonl, line \d+, anew/, (house) =>
    changeLine(segmentsOf(house), isBilled, (text) => otherDigit(text, /"duration_ms":\d*(\d)/)),
  ),
  spoil("a segment without its last line", /days.jsonl: all segments/, (house) =>
    withoutLastLine(longestOf(house)),
  ),
  spoil("a segment missing", /days.jsonl: all segments/, ({ estates }) =>
    estates[0]!.segments.pop(),
  ),
];

/** The files that are made of the spend log. */
const PROJECTION = [
  spoil("a usage record missing", /has no usage record/, (house) => changeRecord(house, () => [])),
  spoil("a usage record twice", /is there twice/, (house) =>
    changeRecord(house, (one) => [one, one]),
  ),
  spoil("a usage record with one pico-unit more", /usage record sp_/, (house) =>
    changeRecord(house, (one) => [more({ ...one })]),
  ),
  spoil("a usage record of another day", /usage record sp_.*"day"/, (house) =>
    changeRecord(house, (one) => [{ ...one, day: "2026-01-31" }]),
  ),
  spoil("a record file by the name of another day", /the file of usage record/, ({ estates }) => {
    const [file] = estates.flatMap(({ usageFiles }) => usageFiles);
    if (file) file.name = "2026-01-31.jsonl";
  }),
];

/** What is billed, against the ledger of the provider and the clients. */
const BILL = [
  spoil(
    "one pico-unit more in the spend log and the usage record",
    /no right record: .*costs .*by the ledger/,
    (house) => rebill(house, (line) => more({ ...line })),
  ),
  spoil(
    "the prices of the other period, in the spend log and the usage record",
    /no right record: .*costs .*by the ledger/,
    (house) => rebill(house, (line) => otherPrices(house, line)),
  ),
  spoil(
    "a call that the provider has billed and nobody was charged for",
    /request -1 of .* has no right record/,
    ({ asked, calls }) => {
      const whole = asked.find(({ serial }) => calls.get(serial)?.at(-1)?.stated)!;
      asked.push({ ...whole, serial: -1, sentId: "own--1", id: "own--1" });
      calls.set(-1, calls.get(whole.serial)!);
    },
  ),
  spoil(
    "a provider that stated one token more",
    /no right record: .*with provider figures/,
    ({ asked, calls }) => {
      // Of several calls together the figures may be estimated, with room for one token more.
      const whole = asked.find(
        ({ serial, verdict, usage, model }) =>
          verdict === "whole" &&
          !usage &&
          model !== CONTINUED &&
          calls.get(serial)?.length === 1 &&
          calls.get(serial)?.[0]?.stated,
      );
      const call = whole && calls.get(whole.serial)!.at(-1)!;
      if (call) call.stated = { ...call.stated!, completion: call.stated!.completion + 1 };
    },
  ),
  spoil(
    "a client that was told other figures",
    /no right record: .*the client was told/,
    ({ asked }) => {
      const at = asked.findIndex(({ usage }) => usage);
      const { usage, ...told } = asked[at]!;
      asked[at] = { ...told, usage: { ...usage!, prompt: usage!.prompt! + 1 } };
    },
  ),
  spoil("an interrupted request without a kill", /interrupted by no kill/, ({ kills }) => {
    kills.length = 0;
  }),
];

/** What the gateway and its commands say. */
const ANSWERS = [
  spoil("a receipt with one pico-unit more", /receipts of/, (house) => more(receiptOf(house))),
  spoil("a receipt that another line of days.jsonl proves", /receipts of .*the seal/, (house) => {
    const sealed = receiptOf(house, ({ seal }, { isLate }) => isLate && seal !== null);
    if (sealed) sealed["seal"].number += 1;
  }),
  spoil("a receipt that another account is shown", /receipts of .*404/, (house) => {
    const stranger = house.receipts.find(({ status }) => status === 404);
    if (stranger) Object.assign(stranger, { status: 200, body: { data: [receiptOf(house)] } });
  }),
  spoil("a statement off by one pico-unit", /statement of .*the total/, ({ statements }) =>
    more(statements[0]?.json["total"]),
  ),
  spoil(
    "a line of a statement off by one token",
    /statement of [^,]*, \d{4}-\d\d:/,
    ({ statements: [statement] }) => (statement!.json["lines"].at(-1).completion_tokens += 1),
  ),
  spoil("a row of a statement as CSV missing", /as CSV/, ({ statements: [statement] }) => {
    statement!.csv = statement!.csv.replace(/[^\n]*\n$/, "");
  }),
  spoil(
    "a sealed statement with another bill",
    /the bill in the sealed one/,
    ({ statements: [statement] }) => (statement!.sealed!.text["bill"].total.requests += 1),
  ),
  spoil("a budget with one pico-unit more spent", /budget show .*spent/, ({ budgets }) =>
    more([...budgets.values()][0]?.["budgets"][0], "spent"),
  ),
  spoil("a running gateway that counted one pico-unit more", /\/status of gateway/, ({ estates }) =>
    more(
      estates[0]?.live.find(({ spent }) => spent !== "0"),
      "spent",
    ),
  ),
  spoil("an audit that holds one pico-unit", /audit of gateway/, ({ estates }) =>
    more(estates[0]?.audit, "held"),
  ),
];

/** days.jsonl, and the heads of the moment. */
const DAYS = [
  spoil("a line of a day with one record more", /days.jsonl, line \d+, anew/, ({ estates }) => {
    const { days } = estates[0]!;
    days.text = otherDigit(days.text, /"records":\d*(\d)/);
  }),
  spoil("the line of the last day missing", /in no day: \["sp_/, ({ estates }) =>
    withoutLastLine(estates[0]!.days),
  ),
  spoil("a head with another root", /head of .*, anew/, ({ estates: [estate] }) => {
    estate!.heads[0] = otherDigit(estate!.heads[0]!, /"root":"(.)/);
  }),
  spoil("a head signed by another key", /its signature is wrong/, ({ estates: [estate] }) => {
    estate!.heads[0] = otherDigit(estate!.heads[0]!, /"signature":"(.)/);
  }),
];

const SPOILS: readonly Spoil[] = [...LOG, ...PROJECTION, ...BILL, ...ANSWERS, ...DAYS];

export interface SelfTest {
  /** How often a spoil was tried and found. */
  readonly found: number;
  /** What was spoilt, and not found. */
  readonly missed: readonly string[];
}

/**
 * Tries each spoil on a copy of a phase: of another one for each, and, by `seed`, in each run.
 * `tell` hears of each.
 */
export function selfTest(
  houses: readonly House[],
  seed: number,
  tell: (text: string) => void,
): SelfTest {
  const missed: string[] = [];
  let found = 0;
  for (const [at, { name, by, apply }] of SPOILS.entries()) {
    const first = (seed + at) % houses.length;
    const spoilt = spoiltOf([...houses.slice(first), ...houses.slice(0, first)], apply);
    const violation = spoilt && judge(spoilt).violations.find((each) => by.test(each));
    if (violation !== undefined) found += 1;
    else missed.push(spoilt ? `${spoilt.phase}: ${name}` : `${name}: there was nothing to spoil`);
    tell(`spoilt in ${spoilt?.phase}: ${name}: found as: ${violation?.slice(0, 160)}`);
  }
  return { found, missed };
}

/** A copy of the first phase in which there was something to spoil, spoilt. */
function spoiltOf(houses: readonly House[], apply: Spoil["apply"]): House | undefined {
  for (const house of houses) {
    const copy = structuredClone(house);
    apply(copy);
    if (!isDeepStrictEqual(copy, house)) return copy;
  }
  return undefined;
}
