// data_dir and the folder of the spend log in it: whether this user can write there, looked at
// before anything starts, so that a fault is reported beside all others; and their making.
import { accessSync, constants, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ValidationError, type ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";

/**
 * Errors that pass by themselves. The gateway starts in spite of them, refuses requests with 503,
 * and serves as soon as it can write.
 */
const PASSING = ["ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM"];

/** Whether an error of the system passes by itself. */
export const passesByItself = (error: unknown): boolean => PASSING.includes(codeOf(error));

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "";

/**
 * Looks at the raw JSON, so that an issue of shape elsewhere hides none. Leaves the disk as it is.
 */
export function dataDirIssues(json: unknown): ValidationIssue[] {
  const dataDir = asObject(json)["data_dir"] ?? "./data";
  if (typeof dataDir !== "string" || dataDir === "") return []; // an issue of shape already
  const why = whyUnusable(resolve(dataDir)) ?? whyUnusable(resolve(dataDir, "spend"));
  return why === undefined ? [] : [dataDirIssue(why)];
}

const dataDirIssue = (message: string): ValidationIssue => ({
  path: ["data_dir"],
  code: "invalid_value",
  message,
});

/** Undefined: this user can write in the folder, or make it where there is none yet. */
function whyUnusable(folder: string): string | undefined {
  let there = folder;
  while (!existsSync(there) && there !== dirname(there)) there = dirname(there);
  try {
    if (!statSync(there).isDirectory()) return `${there} is not a folder`;
    accessSync(there, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    if (passesByItself(error)) return undefined;
    const subject = there === folder ? "cannot be written" : `cannot be made in ${there}`;
    return `${subject}: ${codeOf(error)}`;
  }
}

/**
 * Makes the folders of the books for a gateway that is about to start. Throws a ValidationError if
 * that can never succeed.
 */
export function makeDataDir(dataDir: string): void {
  try {
    makeFolder(resolve(dataDir, "spend"));
  } catch (error) {
    if (!passesByItself(error))
      throw new ValidationError([dataDirIssue(`cannot be made: ${codeOf(error)}`)]);
  }
}

/**
 * Makes a folder, and before it those above it: Node 20's own loop never ends where a folder cannot
 * be made although its parent is there.
 */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error; // another process has just made it
  }
}
