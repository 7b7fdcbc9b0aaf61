// data_dir and its folder of the spend log. Checks whether this user can write there, when the rest
// of a configuration is checked; creates the folders at the start.
import {
  accessSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmdirSync,
  statSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ValidationError, type ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { whyTooLong } from "./process-lock.ts";

/**
 * Errors that may disappear without a restart. The gateway starts in spite of them, refuses
 * requests with 503, and serves as soon as it can write.
 */
const TRANSIENT = ["ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM"];

const isTransient = (error: unknown): boolean => TRANSIENT.includes(codeOf(error));

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "";

/** Reads the raw JSON, so that issues elsewhere do not matter. Leaves the disk unchanged. */
export function dataDirIssues(json: unknown): ValidationIssue[] {
  const dataDir = asObject(json)["data_dir"] ?? "./data";
  if (typeof dataDir !== "string" || dataDir === "") return []; // the schema's check reports it
  const spend = resolve(dataDir, "spend");
  const why = whyUnusable(resolve(dataDir)) ?? whyUnusable(spend) ?? whyTooLong(spend);
  return why === undefined ? [] : [dataDirIssue(why)];
}

const dataDirIssue = (message: string): ValidationIssue => ({
  path: ["data_dir"],
  code: "invalid_value",
  message,
});

/** Why this user can neither write in the folder nor create it. Undefined: the user can. */
function whyUnusable(folder: string): string | undefined {
  const existing = nearestExisting(folder);
  try {
    if (lstatSync(existing).isSymbolicLink() && !statSync(existing, { throwIfNoEntry: false }))
      return `${existing} is a link to something that is not there`;
    if (!statSync(existing).isDirectory()) return `${existing} is not a folder`;
    accessSync(existing, constants.W_OK | constants.X_OK);
    if (existing !== folder) tryFolderIn(existing);
    return undefined;
  } catch (error) {
    if (isTransient(error)) return undefined;
    const code = codeOf(error);
    const what =
      existing === folder ? `${folder} cannot be written` : `cannot be made in ${existing}`;
    return `${what}: ${code}`;
  }
}

/**
 * Creates a folder with a random name and removes it, because the permissions of virtual file
 * systems (/proc) prove nothing.
 */
function tryFolderIn(folder: string): void {
  rmdirSync(mkdtempSync(join(folder, ".chat-gateway-")));
}

/**
 * The path or its nearest ancestor that exists, even as a dangling link, or whose existence cannot
 * be determined.
 */
function nearestExisting(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    if (at === dirname(at)) return at;
    try {
      if (lstatSync(at, { throwIfNoEntry: false })) return at;
    } catch (error) {
      // ENOTDIR: an ancestor is a file, so continue with the parent.
      if (codeOf(error) !== "ENOTDIR") return at;
    }
  }
}

/**
 * Creates the folders of the books when a gateway starts. Throws a ValidationError unless the error
 * is transient.
 */
export function makeDataDir(dataDir: string): void {
  const folder = resolve(dataDir, "spend");
  try {
    // Not `recursive`: in Node 20 that never returns if a folder cannot be created in its parent.
    const existing = nearestExisting(folder);
    const missing: string[] = [];
    for (let at = folder; at !== existing; at = dirname(at)) missing.unshift(at);
    for (const path of missing) mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const code = codeOf(error);
    if (code === "EEXIST")
      makeDataDir(dataDir); // another process has just created a folder: create the rest
    else if (!isTransient(error))
      throw new ValidationError([dataDirIssue(`${folder} cannot be made: ${code}`)]);
  }
}
