// What the self-test spoils, one thing at a time, and by which violation the judge must find it.

import type { House } from "./house.ts";
import { decimal, pico } from "./money.ts";
import { CONTINUED } from "./plan.ts";
import {
  changeLine,
  changeRecord,
  first,
  isBilled,
  more,
  otherPrices,
  rebill,
  receiptOf,
  segmentsOf,
} from "./spoiling.ts";

export interface Spoil {
  readonly name: string;
  /** The violation that must be among those that are found. */
  readonly by: RegExp;
  /** Changes the copy of a phase. False: this phase has nothing to spoil like that. */
  readonly apply: (house: House) => boolean;
}

export const SPOILS: readonly Spoil[] = [
  {
    name: "a request missing in the spend log",
    by: /opened and never settled/,
    apply: (house) => changeLine(segmentsOf(house), isBilled, () => ""),
  },
  {
    name: "a request settled twice",
    by: /settled twice/,
    apply: (house) => changeLine(segmentsOf(house), isBilled, (text) => `${text}\n${text}\n`),
  },
  {
    name: "a changed byte in a segment",
    by: /its seal does not continue/,
    apply: (house) =>
      changeLine(segmentsOf(house), isBilled, (text) =>
        `${text}\n`.replace(
          /"duration_ms":(\d)/,
          (_, digit) => `"duration_ms":${(Number(digit) + 1) % 10}`,
        ),
      ),
  },
  {
    name: "two lines of a segment swapped",
    by: /its seal does not continue/,
    apply: (house) =>
      first(segmentsOf(house), (file) => {
        const lines = file.text.split("\n");
        [lines[1], lines[2]] = [lines[2]!, lines[1]!];
        file.text = lines.join("\n");
      }),
  },
  {
    name: "a segment without its last line",
    by: /seal verify of gateway|the last head/,
    apply: (house) =>
      first(segmentsOf(house), (file) => {
        file.text = file.text.replace(/[^\n]*\n$/, "");
      }),
  },
  {
    name: "a usage record missing",
    by: /has no usage record/,
    apply: (house) => changeRecord(house, () => []),
  },
  {
    name: "a usage record twice",
    by: /is there twice/,
    apply: (house) => changeRecord(house, (one) => [one, one]),
  },
  {
    name: "a usage record with one pico-unit more",
    by: /usage record sp_/,
    apply: (house) => changeRecord(house, (one) => [{ ...one, cost: more(one["cost"]) }]),
  },
  {
    name: "a usage record of another account",
    by: /usage record sp_/,
    apply: (house) =>
      changeRecord(house, (one) => [
        { ...one, account: one["account"] === "beta" ? "acme" : "beta" },
      ]),
  },
  {
    name: "one pico-unit more in the spend log and the usage record",
    by: /no right record: .*costs .*by the ledger/,
    apply: (house) => rebill(house, (line) => ({ ...line, cost: more(line["cost"]) })),
  },
  {
    name: "the prices of the other period, in the spend log and the usage record",
    by: /no right record: .*costs .*by the ledger/,
    apply: (house) => rebill(house, (line) => otherPrices(house, line)),
  },
  {
    name: "a call that the provider has billed and nobody was charged for",
    by: /request -1 of .* has no right record/,
    apply: ({ asked, calls }) => {
      const whole = asked.find(({ serial }) => calls.get(serial)?.at(-1)?.stated)!;
      const copy = { ...whole, serial: -1, sentId: "own--1", id: "own--1" };
      asked.push(copy);
      calls.set(-1, calls.get(whole.serial)!);
      return true;
    },
  },
  {
    name: "a provider that stated one token more",
    by: /no right record: .*with provider figures/,
    apply: ({ asked, calls }) => {
      const whole = asked.find(
        // Of several calls together the figures may be estimated, with room for one token more.
        ({ serial, verdict, usage, model }) =>
          verdict === "whole" && !usage && model !== CONTINUED && calls.get(serial)?.at(-1)?.stated,
      );
      const call = whole && calls.get(whole.serial)!.at(-1)!;
      if (call) call.stated = { ...call.stated!, completion: call.stated!.completion + 1 };
      return call !== undefined;
    },
  },
  {
    name: "a client that was told other figures",
    by: /no right record: .*the client was told/,
    apply: ({ asked }) => {
      const at = asked.findIndex(({ usage }) => usage);
      const { usage, ...told } = asked[at]!;
      asked[at] = { ...told, usage: { ...usage!, prompt: usage!.prompt! + 1 } };
      return true;
    },
  },
  {
    name: "an interrupted request without a kill",
    by: /interrupted by no kill/,
    apply: (house) => {
      house.kills.length = 0;
      return house.asked.some(({ verdict }) => verdict === "cut");
    },
  },
  {
    name: "a receipt with one pico-unit more",
    by: /receipts of/,
    apply: (house) => {
      const receipt = receiptOf(house);
      if (receipt) receipt["cost"] = more(receipt["cost"]);
      return receipt !== undefined;
    },
  },
  {
    name: "a receipt with another token",
    by: /receipts of/,
    apply: (house) => {
      const receipt = receiptOf(house);
      if (receipt) receipt["usage"].reasoning_tokens += 1;
      return receipt !== undefined;
    },
  },
  {
    name: "a receipt that another account is shown",
    by: /receipts of .*404/,
    apply: ({ receipts }) => {
      const [own, stranger] = [200, 404].map((code) =>
        receipts.find(({ status }) => status === code),
      );
      if (own && stranger) [stranger.status, stranger.body] = [200, own.body];
      return own !== undefined && stranger !== undefined;
    },
  },
  {
    name: "a statement off by one pico-unit",
    by: /statement of .*the total/,
    apply: ({ statements }) =>
      first(statements, ({ json }) => {
        json["total"].cost = more(json["total"].cost);
      }),
  },
  {
    name: "a line of a statement off by one token",
    by: /statement of [^,]*, \d{4}-\d\d:/,
    apply: ({ statements }) =>
      first(statements, ({ json }) => {
        json["lines"].at(-1).completion_tokens += 1;
      }),
  },
  {
    name: "a row of a statement as CSV missing",
    by: /as CSV/,
    apply: ({ statements }) =>
      first(statements, (statement) => {
        statement.csv = statement.csv.replace(/[^\n]*\n$/, "");
      }),
  },
  {
    name: "a sealed statement with another bill",
    by: /the bill in the sealed one/,
    apply: ({ statements }) =>
      first(statements, ({ sealed }) => {
        sealed["bill"].total.requests += 1;
      }),
  },
  {
    name: "a budget with one pico-unit more spent",
    by: /budget show .*spent/,
    apply: ({ budgets }) =>
      first([...budgets.values()], ({ budgets: [budget] }) => {
        budget.spent = more(budget.spent);
      }),
  },
  {
    name: "a budget of which something is held at rest",
    by: /budget show .*held/,
    apply: ({ budgets }) =>
      first([...budgets.values()], ({ budgets: [budget] }) => {
        budget.held = "0.000000000001";
      }),
  },
  {
    name: "a running gateway that counted one pico-unit less",
    by: /\/status of gateway/,
    apply: ({ estates }) =>
      first(estates, ({ live }) => {
        const budget = live.find(({ spent }) => spent !== "0")!;
        budget["spent"] = decimal(pico(budget["spent"]) - 1n).replace(/\.?0+$/, "");
      }),
  },
  {
    name: "an audit that holds one pico-unit",
    by: /audit of gateway/,
    apply: ({ estates }) =>
      first(estates, ({ audit }) => {
        audit["held"] = "0.000000000001";
      }),
  },
  {
    name: "an audit with one request more",
    by: /audit of gateway/,
    apply: ({ estates }) =>
      first(estates, ({ audit }) => {
        audit["settled"] += 1;
      }),
  },
  {
    name: "a head with another seal",
    by: /head of .*(line|first)/,
    apply: ({ estates }) =>
      first(estates, ({ heads }) => {
        heads[0] = heads[0]!.replace(
          /"seal":"(.)/,
          (_, digit) => `"seal":"${digit === "0" ? "1" : "0"}`,
        );
      }),
  },
  {
    name: "a head signed by another key",
    by: /its signature is wrong/,
    apply: ({ estates }) =>
      first(estates, ({ heads }) => {
        heads[0] = heads[0]!.replace(
          /"signature":"(.)/,
          (_, digit) => `"signature":"${digit === "0" ? "1" : "0"}`,
        );
      }),
  },
  {
    name: "a seal verify that counts a line less",
    by: /its segments/,
    apply: ({ estates }) =>
      first(estates, ({ verify }) => {
        verify["segments"][0].sealed -= 1;
      }),
  },
];
