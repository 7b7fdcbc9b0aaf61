// The result of the last reload, in a line.
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";
import type { ShownStatus } from "./look.ts";

/** "configuration gateway.json of 2026-11-22T12:00:00.000Z". */
export function configurationText(status: ShownStatus): string {
  const file = asString(status["config_file"]);
  return `configuration${file === undefined ? "" : ` ${file}`} of ${status.config_loaded_at}`;
}

/** The files that could not be read again, a line each. Empty: there are none. */
export function reloadLines(status: ShownStatus): readonly string[] {
  const lines: string[] = [];
  const fault = status["config_fault"];
  if (fault) lines.push(configurationLine(asObject(fault)));
  const keys = asString(asObject(status["keys"])["fault"]);
  if (keys !== undefined)
    lines.push(`keys.json cannot be read, and the keys before it stay in force: ${keys}`);
  return lines;
}

function configurationLine({ time, path, message, count }: Record<string, unknown>): string {
  const where = path ? `${path}: ` : "";
  const more = Number(count) > 1 ? ` (${Number(count)} faults in all)` : "";
  const state = `reload failed at ${time}, and the configuration before it stays in force`;
  return `${state}: ${where}${message}${more}`;
}
