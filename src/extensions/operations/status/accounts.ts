// The accounts of a gateway with their limits, as a table for people.
import { table } from "../../../command-line/table.ts";
import type { ShownStatus } from "./look.ts";

/** The busiest first. The requests of an account without a limit are not counted. */
export const accountTable = ({ limits }: ShownStatus): string =>
  table(
    ["account", "requests a minute", "of at most"],
    [...limits.accounts]
      .sort((one, other) => other.used - one.used)
      .map(({ account, rpm, used }) => ({
        account,
        "requests a minute": rpm === null ? undefined : used,
        "of at most": rpm ?? "unlimited",
      })),
  );
