// The extensions of src/extensions/money that bill and answer, in the place of others of their kind.

import type { ProgramEntry, ProgramExtension } from "../../src/command-line/command.ts";
import { createLoader } from "../../src/config/loader.ts";
import { extensions } from "../../src/extensions.ts";
import { runHere } from "./run-here.ts";

const MONEY: readonly ProgramEntry[] = [
  {
    name: "usage",
    settings: ["spend", "usage"],
    commands: ["usage sync"],
    serves: true,
    load: () => import("../../src/extensions/money/usage/index.ts"),
  },
  {
    name: "billing",
    commands: ["billing statement", "billing trace"],
    serves: true,
    load: () => import("../../src/extensions/money/billing/index.ts"),
  },
  {
    name: "receipts",
    serves: true,
    load: () => import("../../src/extensions/money/receipts/index.ts"),
  },
];
/** These read or write the same books. */
const OTHERS = [
  ...["books", "budgets", "shared-budgets", "seals", "seal-verify", "rebuild", "audit"],
  ...["proof", "postgres", ...MONEY.map(({ name }) => name)],
];

export const moneyEntries: readonly ProgramEntry[] = [
  ...MONEY,
  ...extensions.filter(({ name }) => !OTHERS.includes(name)),
];
export const moneyExtensions = await createLoader<ProgramExtension, ProgramEntry>(
  moneyEntries,
).load(() => true);

/** As runHere(). */
export const runMoney = (
  args: readonly string[],
  more: readonly ProgramEntry[] = [],
): ReturnType<typeof runHere> => runHere(args, { entries: [...moneyEntries, ...more] });
