// The self-test: corrupts a copy of the evidence in one way at a time, and checks that the judge
// reports the expected violation. Otherwise a judge that accepts anything would go unnoticed.

import { isDeepStrictEqual } from "node:util";
import { countsOf } from "./books.ts";
import type { Evidence, JsonObject } from "./evidence.ts";
import { judge } from "./judge.ts";
import { amountOf, costOf, pico } from "./money.ts";
import { CONTINUED, priceFor } from "./plan.ts";

/** Corrupts the evidence about a phase, or leaves it unchanged if there is nothing to corrupt. */
type Apply = (evidence: Evidence) => unknown;

/** All corruptions, each with a violation that the judge must report. */
const CORRUPTIONS: (readonly [name: string, violation: RegExp, apply: Apply])[] = [];
const corrupt = (...corruption: (typeof CORRUPTIONS)[number]) => CORRUPTIONS.push(corruption);

/** Adds one pico-unit to an amount of an object, if there is an object. */
function addPico(object: JsonObject | undefined, name = "cost"): void {
  if (object) object[name] = amountOf(pico(object[name]) + 1n);
}

const isBilled = ({ type = "settle", cost }: JsonObject): boolean =>
  type === "settle" && cost !== "0";

/** The middle one of the lines that fit, and its place. */
function placeIn(files: readonly { readonly lines: JsonObject[] }[], fits = isBilled) {
  const places = files.flatMap(({ lines }) => lines.map((line, at) => ({ line, lines, at })));
  const found = places.filter(({ line }) => fits(line));
  return found[found.length >> 1]!;
}

const settledIn = ({ gateways }: Evidence, fits = isBilled) =>
  placeIn(
    gateways.flatMap(({ segments }) => segments),
    fits,
  );
const recordIn = ({ gateways, rows: lines }: Evidence) =>
  placeIn(lines ? [{ lines }] : gateways.flatMap(({ usageFiles }) => usageFiles));

type Place = ReturnType<typeof placeIn>;
const remove = ({ lines, at }: Place): JsonObject[] => lines.splice(at, 1);
const repeat = ({ lines, at, line }: Place): JsonObject[] => lines.splice(at, 0, line);

const receiptIn = ({ receipts }: Evidence, fits: (receipt: JsonObject) => boolean) =>
  receipts.flatMap(({ body }) => body["data"] ?? []).find(fits);

/** A request with a complete reply by one call, whose client and provider both recorded figures. */
const plainRequestIn = ({ requests, calls }: Evidence) =>
  requests.find(({ serial, outcome, usage, model }) => {
    const [call, ...others] = calls.get(serial) ?? [];
    const isPlain = outcome === "complete" && model !== CONTINUED && others.length === 0;
    return isPlain && usage && call?.stated;
  })!;

// The spend log and the usage records.
corrupt("a request that was not settled", /opened and never settled/, (copy) =>
  remove(settledIn(copy)),
);
corrupt("a request settled twice", /settled twice/, (copy) => repeat(settledIn(copy)));
corrupt("a changed line in a segment", /usage record sp_\w+, log/, (copy) => {
  settledIn(copy).line["notes"] = ["changed"];
});
corrupt("a segment missing", /has no record/, ({ gateways }) => gateways[0]!.segments.pop());
corrupt("a usage record missing", /has no usage record/, (copy) => remove(recordIn(copy)));
corrupt("a usage record twice", /is there twice/, (copy) => repeat(recordIn(copy)));
corrupt("a usage record with one pico-unit more", /usage record sp_\w+, cost/, (copy) =>
  addPico(recordIn(copy).line),
);
corrupt("a record file by the name of another day", /the file of usage record/, ({ gateways }) => {
  const [file] = gateways.flatMap(({ usageFiles }) => usageFiles);
  if (file) file.name = "2026-01-31.jsonl";
});

// Bills that contradict the provider's ledger or the clients.
corrupt("one pico-unit more in the spend log", / costs .* not by|: the sum of its shares/, (copy) =>
  addPico(settledIn(copy).line),
);
corrupt("the prices of the other period", / costs .* not by the ledger/, (copy) => {
  const isPlain = (each: JsonObject) => isBilled(each) && each["model_served"] === "plain";
  const { line } = settledIn(copy, isPlain);
  const price = priceFor(1, "plain", 0);
  line["prices"] = price;
  line["cost"] = amountOf(costOf(countsOf(line["usage"]), price));
});
corrupt(
  "a call of the provider for which nobody was charged",
  /request -1 of .* has no record/,
  (copy) => {
    const request = plainRequestIn(copy);
    copy.requests.push({ ...request, serial: -1, id: "own--1" });
    copy.calls.set(-1, copy.calls.get(request.serial)!);
  },
);
corrupt("a provider that stated one token more", /with provider figures/, (copy) => {
  const { stated } = copy.calls.get(plainRequestIn(copy).serial)![0]!;
  Object.assign(stated!, { completion: stated!.completion + 1 });
});
corrupt("a client that got other figures", /the usage that the client got/, (copy) => {
  const { usage } = plainRequestIn(copy);
  Object.assign(usage!, { prompt: usage!.prompt! + 1 });
});
corrupt("a client that got another text", /the text of the reply/, (copy) =>
  Object.assign(plainRequestIn(copy), { text: "another" }),
);
corrupt("kills that never happened", /by no kill/, ({ disturbances }) => disturbances.splice(0));
corrupt("a budget smaller than what was spent", /the account \w+ has spent/, (copy) => {
  copy.cappedBudget = "0.000000000001";
});

// Contradictions in the output of the gateway and its commands.
corrupt("a receipt with one pico-unit more", /receipt of .*, cost/, (copy) =>
  addPico(receiptIn(copy, isBilled)),
);
corrupt("a receipt with another price", /receipt of .*, prices/, (copy) => {
  const receipt = receiptIn(copy, (one) => isBilled(one) && one["prices"]);
  if (receipt) receipt["prices"].output = "0.000001";
});
corrupt("a receipt with the seal of another day", /receipt of .*the seal/, (copy) => {
  const sealed = receiptIn(copy, ({ seal }) => seal);
  if (sealed) sealed["seal"].number += 1;
});
corrupt("a receipt that another account gets", /receipt of .*404/, ({ receipts }) => {
  const stranger = receipts.find(({ status }) => status === 404);
  if (stranger) stranger.status = 200;
});
corrupt("a statement off by one pico-unit", /statement of .*the total/, ({ statements }) =>
  addPico(statements[0]?.json["total"]),
);
corrupt("a line of a statement off by one token", /statement of [^,]*, \d{4}-\d\d:/, (copy) => {
  copy.statements[0]!.json["lines"].at(-1).completion_tokens += 1;
});
corrupt("a row of a statement as CSV missing", /as CSV/, ({ statements: [statement] }) => {
  statement!.csv = statement!.csv.replace(/[^\n]*\n$/, "");
});
corrupt("a sealed statement with another bill", /bill in the sealed one/, ({ statements }) => {
  const bill = statements[0]?.sealed?.text["bill"];
  if (bill) bill.total.requests += 1;
});
corrupt("a budget with one pico-unit more spent", /budget show .*spent/, ({ budgets }) =>
  addPico(budgets[0]?.shown["budgets"][0], "spent"),
);
corrupt("a running gateway that counted one pico-unit more", /\/status of/, ({ gateways }) =>
  addPico(gateways[0]?.live[0], "spent"),
);
corrupt("an audit that holds one pico-unit", /audit of gateway/, ({ gateways }) =>
  addPico(gateways[0]?.audit, "held"),
);

// The lines of days.jsonl and their seals.
corrupt("a line of a day with one record more", /the line of /, ({ gateways }) => {
  const [line] = gateways[0]!.days;
  if (line) line["records"] += 1;
});
corrupt("the line of the last day missing", /what no line of/, ({ gateways }) =>
  gateways[0]!.days.pop(),
);
corrupt("heads that another key has signed", /seal verify of gateway 0/, ({ gateways }) =>
  gateways[0]!.verify["findings"]?.push("a head whose signature is wrong"),
);

/**
 * Tries each corruption on a copy of one phase; which one depends on the corruption and on `seed`.
 * Calls `print` for each. Returns the names of the corruptions that were not found.
 */
export function selfTest(phases: readonly Evidence[], seed: number, print: (text: string) => void) {
  const missed = CORRUPTIONS.filter(([name, expected, apply], at) => {
    const first = (seed + at) % phases.length;
    const corrupted = corruptedCopy([...phases.slice(first), ...phases.slice(0, first)], apply);
    const violation = corrupted && judge(corrupted).violations.find((each) => expected.test(each));
    print(`corrupted in ${corrupted?.phase}: ${name}: found as: ${violation?.slice(0, 160)}`);
    return violation === undefined;
  });
  print(`self-test: ${CORRUPTIONS.length - missed.length} corruptions found, ${missed.length} not`);
  return missed.map(([name]) => name);
}

/** A corrupted copy of the first phase that has something to corrupt. */
function corruptedCopy(phases: readonly Evidence[], apply: Apply): Evidence | undefined {
  for (const evidence of phases) {
    const copy = structuredClone(evidence);
    apply(copy);
    if (!isDeepStrictEqual(copy, evidence)) return copy;
  }
  return undefined;
}
