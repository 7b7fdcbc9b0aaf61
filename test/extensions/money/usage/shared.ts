// Books with one segment that no process writes, as parts of a process share them an hour before
// the end of the day.

import type { Config } from "../../../../src/core/config.ts";
import type { Diagnose } from "../../../../src/core/diagnose.ts";
import { shareBooks, type SharedBooks } from "../../../../src/extensions/money/usage/index.ts";
import { handMade, textOf, type Line } from "../../../support/books.ts";
import { checkConfig, installed } from "../../../support/config.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { folder } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";

export function siteOf(lines: readonly Line[]) {
  const dir = folder();
  handMade(dir, "2026-01-31.0001.jsonl", textOf(lines), "let go");
  const clock = createFakeClock(Date.parse("2026-01-31T23:00:00Z"));
  const config = checkConfig(demo({ data_dir: dir }), {});
  const events: string[] = [];
  const diagnose: Diagnose = ({ event }) => events.push(String(event));
  const open = (own: Config): SharedBooks => shareBooks(own, { clock, diagnose, installed });
  /** Opens the books as one more part of the process. */
  const share = () => open(config);
  /** Opens the books as another process. */
  const other = () => open({ ...config });
  return { dir, clock, events, share, other };
}
