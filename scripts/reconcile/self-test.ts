// The self-test: spoils what was collected, in one way at a time, and looks whether the judge finds
// it, and by which violation. A judge that finds nothing wrong with any books would be of no use.

import { isDeepStrictEqual } from "node:util";
import { countsOf } from "./books.ts";
import type { House, Line } from "./house.ts";
import { judge } from "./judge.ts";
import { amountOf, costOf, pico } from "./money.ts";
import { CONTINUED, priceFor } from "./plan.ts";

/** Spoils the copy of a phase, or changes nothing if it has nothing to spoil like that. */
type Apply = (house: House) => unknown;

/** All ways, each with the violation that must be among those that are found. */
const SPOILS: { readonly name: string; readonly by: RegExp; readonly apply: Apply }[] = [];
const spoil = (name: string, by: RegExp, apply: Apply) => SPOILS.push({ name, by, apply });

/** Adds one pico-unit to an amount of an object, if there is one. */
function more(object: Line | undefined, name = "cost"): void {
  if (object) object[name] = amountOf(pico(object[name]) + 1n);
}

const isBilled = ({ type = "settle", cost }: Line): boolean => type === "settle" && cost !== "0";

/** The line in the middle of those that fit, and where it stands. */
function placeIn(files: readonly { readonly lines: Line[] }[], fits = isBilled) {
  const places = files.flatMap(({ lines }) => lines.map((line, at) => ({ line, lines, at })));
  const found = places.filter(({ line }) => fits(line));
  return found[found.length >> 1]!;
}

const settledIn = ({ estates }: House, fits = isBilled) =>
  placeIn(
    estates.flatMap(({ segments }) => segments),
    fits,
  );
const recordIn = ({ estates, rows: lines }: House) =>
  placeIn(lines ? [{ lines }] : estates.flatMap(({ usageFiles }) => usageFiles));

type Place = ReturnType<typeof placeIn>;
const remove = ({ lines, at }: Place): Line[] => lines.splice(at, 1);
const repeat = ({ lines, at, line }: Place): Line[] => lines.splice(at, 0, line);

const receiptIn = ({ receipts }: House, fits: (receipt: Line) => boolean): Line | undefined =>
  receipts.flatMap(({ body }) => body["data"] ?? []).find(fits);

/** The request of a whole reply in one call, with figures that its client was told. */
const answered = ({ asked, calls }: House) =>
  asked.find(({ serial, verdict, usage, model }) => {
    const [call, ...others] = calls.get(serial) ?? [];
    const isPlain = verdict === "whole" && model !== CONTINUED && others.length === 0;
    return isPlain && usage && call?.stated;
  })!;

// The spend log, and the usage records, which are made of it.
spoil("a request that was not settled", /opened and never settled/, (house) =>
  remove(settledIn(house)),
);
spoil("a request settled twice", /settled twice/, (house) => repeat(settledIn(house)));
spoil("a changed line in a segment", /usage record sp_\w+, log/, (house) => {
  settledIn(house).line["notes"] = ["changed"];
});
spoil("a segment missing", /has no record/, ({ estates }) => estates[0]!.segments.pop());
spoil("a usage record missing", /has no usage record/, (house) => remove(recordIn(house)));
spoil("a usage record twice", /is there twice/, (house) => repeat(recordIn(house)));
spoil("a usage record with one pico-unit more", /usage record sp_\w+, cost/, (house) =>
  more(recordIn(house).line),
);
spoil("a record file by the name of another day", /the file of usage record/, ({ estates }) => {
  const [file] = estates.flatMap(({ usageFiles }) => usageFiles);
  if (file) file.name = "2026-01-31.jsonl";
});

// What is billed, against the ledger of the provider and the clients.
spoil("one pico-unit more in the spend log", /: costs .* not by|: its parts together/, (house) =>
  more(settledIn(house).line),
);
spoil("the prices of the other period", /: costs .* not by the ledger/, (house) => {
  const isPlain = (each: Line) => isBilled(each) && each["model_served"] === "plain";
  const { line } = settledIn(house, isPlain);
  const price = priceFor(1, "plain", 0);
  line["prices"] = price;
  line["cost"] = amountOf(costOf(countsOf(line["usage"]), price));
});
spoil(
  "a call that the provider has billed and nobody was charged for",
  /request -1 of .* has no record/,
  (house) => {
    const whole = answered(house);
    house.asked.push({ ...whole, serial: -1, id: "own--1" });
    house.calls.set(-1, house.calls.get(whole.serial)!);
  },
);
spoil("a provider that stated one token more", /with provider figures/, (house) => {
  const { stated } = house.calls.get(answered(house).serial)![0]!;
  Object.assign(stated!, { completion: stated!.completion + 1 });
});
spoil("a client that was told other figures", /what the client was told/, (house) => {
  const { usage } = answered(house);
  Object.assign(usage!, { prompt: usage!.prompt! + 1 });
});
spoil("a client that was shown another text", /the text of the reply/, (house) =>
  Object.assign(answered(house), { text: "another" }),
);
spoil("kills that never were", /by no kill/, ({ disturbances }) => disturbances.splice(0));
spoil("a purse that had less than was spent", /the account purse has spent/, (house) => {
  house.purse = "0.000000000001";
});

// What the gateway and its commands say.
spoil("a receipt with one pico-unit more", /receipt of .*, cost/, (house) =>
  more(receiptIn(house, isBilled)),
);
spoil("a receipt with another price", /receipt of .*, prices/, (house) => {
  const receipt = receiptIn(house, (one) => isBilled(one) && one["prices"]);
  if (receipt) receipt["prices"].output = "0.000001";
});
spoil("a receipt that another line of days.jsonl proves", /receipt of .*the seal/, (house) => {
  const sealed = receiptIn(house, ({ seal }) => seal);
  if (sealed) sealed["seal"].number += 1;
});
spoil("a receipt that another account is shown", /receipt of .*404/, ({ receipts }) => {
  const stranger = receipts.find(({ status }) => status === 404);
  if (stranger) stranger.status = 200;
});
spoil("a statement off by one pico-unit", /statement of .*the total/, ({ statements }) =>
  more(statements[0]?.json["total"]),
);
spoil("a line of a statement off by one token", /statement of [^,]*, \d{4}-\d\d:/, (house) => {
  house.statements[0]!.json["lines"].at(-1).completion_tokens += 1;
});
spoil("a row of a statement as CSV missing", /as CSV/, ({ statements: [statement] }) => {
  statement!.csv = statement!.csv.replace(/[^\n]*\n$/, "");
});
spoil("a sealed statement with another bill", /bill in the sealed one/, ({ statements }) => {
  const bill = statements[0]?.sealed?.text["bill"];
  if (bill) bill.total.requests += 1;
});
spoil("a budget with one pico-unit more spent", /budget show .*spent/, ({ budgets }) =>
  more(budgets[0]?.shown["budgets"][0], "spent"),
);
spoil("a running gateway that counted one pico-unit more", /\/status of/, ({ estates }) =>
  more(estates[0]?.live[0], "spent"),
);
spoil("an audit that holds one pico-unit", /audit of gateway/, ({ estates }) =>
  more(estates[0]?.audit, "held"),
);

// The lines of days.jsonl, and the proof of them.
spoil("a line of a day with one record more", /the line of /, ({ estates }) => {
  const [line] = estates[0]!.days;
  if (line) line["records"] += 1;
});
spoil("the line of the last day missing", /what no line of/, ({ estates }) =>
  estates[0]!.days.pop(),
);
spoil("heads that another key has signed", /seal verify of gateway 0/, ({ estates }) =>
  estates[0]!.verify["findings"]?.push("a head whose signature is wrong"),
);

/**
 * Tries each spoil on a copy of a phase: of another one for each, and, by `seed`, in each run.
 * `tell` hears of each. Returns the names of those that were not found.
 */
export function selfTest(
  houses: readonly House[],
  seed: number,
  tell: (text: string) => void,
): readonly string[] {
  const missed = SPOILS.filter(({ name, by, apply }, at) => {
    const first = (seed + at) % houses.length;
    const spoilt = spoiltOf([...houses.slice(first), ...houses.slice(0, first)], apply);
    const violation = spoilt && judge(spoilt).violations.find((each) => by.test(each));
    tell(`spoilt in ${spoilt?.phase}: ${name}: found as: ${violation?.slice(0, 160)}`);
    return violation === undefined;
  });
  tell(`self-test: ${SPOILS.length - missed.length} spoils found, ${missed.length} not`);
  return missed.map(({ name }) => name);
}

/** A copy of the first phase in which there was something to spoil, spoilt. */
function spoiltOf(houses: readonly House[], apply: Apply): House | undefined {
  for (const house of houses) {
    const copy = structuredClone(house);
    apply(copy);
    if (!isDeepStrictEqual(copy, house)) return copy;
  }
  return undefined;
}
