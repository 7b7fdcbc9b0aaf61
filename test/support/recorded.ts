// Recorded traffic of providers: where it is kept, beside the project, and what it is. One place
// says so: a wrong path would only skip tests.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Folders of recordings, one a vendor. */
export const RECORDINGS = process.env["RECORDINGS"] ?? resolve("../shared/fixtures");

/** Why tests on recordings are skipped. False: they are not. */
export const noRecordings = !existsSync(RECORDINGS) && `there are no recordings at ${RECORDINGS}`;

const vendors = noRecordings ? [] : readdirSync(RECORDINGS, { withFileTypes: true });

/** Whole bodies, and streams: each line is the JSON of one event. */
export const recordings = vendors
  .filter((entry) => entry.isDirectory())
  .flatMap(({ name: vendor }) =>
    readdirSync(join(RECORDINGS, vendor))
      .filter((name) => /\.json$|\.chunks\.txt$/.test(name))
      .map((name) => ({
        vendor,
        name,
        text: readFileSync(join(RECORDINGS, vendor, name), "utf8"),
      })),
  );
