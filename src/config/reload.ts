// The configuration file again whenever it changes, or somebody says so: all or nothing, a faulty file changes nothing.
import { readFileSync } from "node:fs";
import type { Diagnose } from "../http/log.ts";
import { CheckError, pathText } from "../protocol/checker.ts";
import type { Config } from "./schema.ts";

/** How often the file is looked at. Looking, and not being told, also works where an editor puts a new file in its place. */
const LOOK_MS = 500;
/** Faults as programs get them. */
export const toldFaults = ({ faults }: CheckError) => faults.map(({ path, message }) => ({ path: pathText(path), message }));

/** `load` reads and checks a configuration, or throws; the gateway puts it in force, or throws. What is wrong with it is told. */
export function reload(gateway: { readonly reload: (config: Config) => void; readonly diagnose: Diagnose }, load: () => Config): void {
  try {
    gateway.reload(load());
  } catch (error) {
    const faults = error instanceof CheckError ? toldFaults(error) : [{ path: "", message: (error as Error).message }];
    gateway.diagnose({ event: "reload_failed", level: "error", detail: "the configuration before it stays in force", faults });
  }
}

/** Calls `changed` soon after the file has other content, until it is closed. */
export function watchFile(file: string, changed: () => void) {
  let seen = contentOf(file);
  const timer = setInterval(() => {
    const content = contentOf(file);
    // A file that is not there is one that is being replaced, one that cannot be read any more is a change, one merely touched is none.
    if (content === "ENOENT" || content === seen) return;
    seen = content;
    changed();
  }, LOOK_MS).unref();
  return { close: () => clearInterval(timer) };
}

/** What stands in it, or why it cannot be read. */
function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
