// The self-test: spoils what was collected, in one way at a time, and looks whether the judge finds
// it, and by which violation. A judge that finds nothing wrong with any books would be of no use.

import type { House } from "./house.ts";
import { judge } from "./judge.ts";
import { CONTINUED } from "./plan.ts";
import {
  changeEstate,
  changeLine,
  changeRecord,
  changeSegment,
  first,
  isBilled,
  lessBy1,
  more,
  otherDigit,
  otherPrices,
  rebill,
  receiptOf,
  segmentsOf,
} from "./spoiling.ts";

interface Spoil {
  readonly name: string;
  /** The violation that must be among those that are found. */
  readonly by: RegExp;
  /** Changes the copy of a phase. False: this phase has nothing to spoil like that. */
  readonly apply: (house: House) => boolean;
}

const spoil = (name: string, by: RegExp, apply: Spoil["apply"]): Spoil => ({ name, by, apply });

/** The spend log. */
const LOG = [
  spoil("a request missing in the spend log", /opened and never settled/, (house) =>
    changeLine(segmentsOf(house), isBilled, () => ""),
  ),
  spoil("a request settled twice", /settled twice/, (house) =>
    changeLine(segmentsOf(house), isBilled, (text) => `${text}\n${text}\n`),
  ),
  spoil("a changed byte in a segment", /days.jsonl, line \d+, anew/, (house) =>
    changeLine(segmentsOf(house), isBilled, (text) =>
      otherDigit(`${text}\n`, /"duration_ms":\d*(\d)/),
    ),
  ),
  spoil("a segment without its last line", /days.jsonl: lines of/, ({ estates }) =>
    changeSegment(estates, (text) => text.replace(/[^\n]*\n$/, "")),
  ),
  spoil("a segment missing", /days.jsonl has .*, which is not there/, ({ estates }) =>
    changeEstate(estates, ({ segments }) => segments.pop()),
  ),
];

/** The files that are made of the spend log. */
const PROJECTION = [
  spoil("a usage record missing", /has no usage record/, (house) => changeRecord(house, () => [])),
  spoil("a usage record twice", /is there twice/, (house) =>
    changeRecord(house, (one) => [one, one]),
  ),
  spoil("a usage record with one pico-unit more", /usage record sp_/, (house) =>
    changeRecord(house, (one) => [{ ...one, cost: more(one["cost"]) }]),
  ),
  spoil("a usage record of another day", /usage record sp_.*"day"/, (house) =>
    changeRecord(house, (one) => [{ ...one, day: "2026-01-31" }]),
  ),
  spoil("a record file by the name of another day", /the file of usage record/, ({ estates }) =>
    changeEstate(estates, ({ usageFiles }) => {
      const file = usageFiles.pop();
      if (file) usageFiles.push({ ...file, name: "2026-01-31.jsonl" });
      return file;
    }),
  ),
];

/** What is billed, against the ledger of the provider and the clients. */
const BILL = [
  spoil(
    "one pico-unit more in the spend log and the usage record",
    /no right record: .*costs .*by the ledger/,
    (house) => rebill(house, (line) => ({ ...line, cost: more(line["cost"]) })),
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
      return true;
    },
  ),
  spoil(
    "a provider that stated one token more",
    /no right record: .*with provider figures/,
    ({ asked, calls }) => {
      const whole = asked.find(
        // Of several calls together the figures may be estimated, with room for one token more.
        ({ serial, verdict, usage, model }) => {
          const own = calls.get(serial) ?? [];
          return (
            verdict === "whole" &&
            !usage &&
            model !== CONTINUED &&
            own.length === 1 &&
            own[0]?.stated
          );
        },
      );
      const call = whole && calls.get(whole.serial)!.at(-1)!;
      if (call) call.stated = { ...call.stated!, completion: call.stated!.completion + 1 };
      return call !== undefined;
    },
  ),
  spoil(
    "a client that was told other figures",
    /no right record: .*the client was told/,
    ({ asked }) => {
      const at = asked.findIndex(({ usage }) => usage);
      const { usage, ...told } = asked[at]!;
      asked[at] = { ...told, usage: { ...usage!, prompt: usage!.prompt! + 1 } };
      return true;
    },
  ),
  spoil("an interrupted request without a kill", /interrupted by no kill/, (house) => {
    house.kills.length = 0;
    return house.asked.some(({ verdict }) => verdict === "cut");
  }),
];

/** What the gateway and its commands say. */
const ANSWERS = [
  spoil("a receipt with one pico-unit more", /receipts of/, (house) =>
    first(receiptOf(house), (receipt) => (receipt["cost"] = more(receipt["cost"]))),
  ),
  spoil("a receipt that another line of days.jsonl proves", /receipts of .*the seal/, (house) =>
    first(
      receiptOf(house, true).filter(({ seal }) => seal !== null),
      ({ seal }) => (seal.number += 1),
    ),
  ),
  spoil("a receipt that another account is shown", /receipts of .*404/, (house) =>
    first(
      house.receipts.filter(({ status }) => status === 404),
      (stranger) => Object.assign(stranger, { status: 200, body: { data: receiptOf(house) } }),
    ),
  ),
  spoil("a statement off by one pico-unit", /statement of .*the total/, ({ statements }) =>
    first(statements, ({ json }) => (json["total"].cost = more(json["total"].cost))),
  ),
  spoil(
    "a line of a statement off by one token",
    /statement of [^,]*, \d{4}-\d\d:/,
    ({ statements }) =>
      first(statements, ({ json }) => (json["lines"].at(-1).completion_tokens += 1)),
  ),
  spoil("a row of a statement as CSV missing", /as CSV/, ({ statements }) =>
    first(statements, (statement) => {
      statement.csv = statement.csv.replace(/[^\n]*\n$/, "");
    }),
  ),
  spoil("a sealed statement with another bill", /the bill in the sealed one/, ({ statements }) =>
    first(statements, ({ sealed }) => (sealed!["bill"].total.requests += 1)),
  ),
  spoil("a budget with one pico-unit more spent", /budget show .*spent/, ({ budgets }) =>
    first([...budgets.values()], ({ budgets: [budget] }) => (budget.spent = more(budget.spent))),
  ),
  spoil("a running gateway that counted one pico-unit less", /\/status of gateway/, ({ estates }) =>
    first(estates, ({ live }) => {
      const budget = live.find(({ spent }) => spent !== "0")!;
      budget["spent"] = lessBy1(budget["spent"]);
    }),
  ),
  spoil("an audit that holds one pico-unit", /audit of gateway/, ({ estates }) =>
    first(estates, ({ audit }) => (audit["held"] = "0.000000000001")),
  ),
];

/** days.jsonl, and the heads of the moment. */
const DAYS = [
  spoil("a line of a day with one record more", /days.jsonl, line \d+, anew/, ({ estates }) =>
    first(estates, ({ days }) => {
      days.text = otherDigit(days.text, /"records":\d*(\d)/);
    }),
  ),
  spoil("the line of the last day missing", /days.jsonl has no line of/, ({ estates }) =>
    first(estates, ({ days }) => {
      days.text = days.text.replace(/[^\n]*\n$/, "");
    }),
  ),
  spoil("a head with another root", /head of .*, anew/, ({ estates }) =>
    first(estates, ({ heads }) => (heads[0] = otherDigit(heads[0]!, /"root":"(.)/))),
  ),
  spoil("a head signed by another key", /its signature is wrong/, ({ estates }) =>
    first(estates, ({ heads }) => (heads[0] = otherDigit(heads[0]!, /"signature":"(.)/))),
  ),
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
function spoiltOf(houses: readonly House[], apply: (house: House) => boolean): House | undefined {
  for (const house of houses) {
    const copy = structuredClone(house);
    if (apply(copy)) return copy;
  }
  return undefined;
}
