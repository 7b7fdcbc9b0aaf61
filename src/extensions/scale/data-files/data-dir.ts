// data_dir and the folder of the spend log in it: checks before the start whether this user can
// write there, so that the fault is reported with all others; and creates the folders.
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
 * Errors that may pass without a restart. The gateway starts in spite of them, refuses requests
 * with 503, and serves as soon as it can write.
 */
const TRANSIENT = ["ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM"];

const isTransient = (error: unknown): boolean => TRANSIENT.includes(codeOf(error));

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "";

/**
 * Reads the raw JSON, so that it works in spite of issues elsewhere. Leaves the disk unchanged.
 */
export function dataDirIssues(json: unknown): ValidationIssue[] {
  const dataDir = asObject(json)["data_dir"] ?? "./data";
  if (typeof dataDir !== "string" || dataDir === "") return []; // an issue of shape already
  const spend = resolve(dataDir, "spend");
  const why = whyUnusable(resolve(dataDir)) ?? whyUnusable(spend) ?? whyTooLong(spend);
  return why === undefined ? [] : [dataDirIssue(why)];
}

const dataDirIssue = (message: string): ValidationIssue => ({
  path: ["data_dir"],
  code: "invalid_value",
  message,
});

/** Undefined: this user can write in the folder, or make it. */
function whyUnusable(folder: string): string | undefined {
  const there = nearest(folder);
  try {
    if (lstatSync(there).isSymbolicLink() && !statSync(there, { throwIfNoEntry: false }))
      return `${there} is a link to something that is not there`;
    if (!statSync(there).isDirectory()) return `${there} is not a folder`;
    accessSync(there, constants.W_OK | constants.X_OK);
    if (there !== folder) tryFolderIn(there);
    return undefined;
  } catch (error) {
    if (isTransient(error)) return undefined;
    const code = codeOf(error);
    const what = there === folder ? `${folder} cannot be written` : `cannot be made in ${there}`;
    return `${what}: ${code}`;
  }
}

/**
 * Creates a folder with a random name and removes it. Needed because in virtual file systems
 * (/proc) permissions prove nothing.
 */
function tryFolderIn(folder: string): void {
  rmdirSync(mkdtempSync(join(folder, ".chat-gateway-")));
}

/**
 * The path itself, or its nearest ancestor, that exists, even as a dangling link, or whose
 * existence cannot be determined.
 */
function nearest(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    if (at === dirname(at)) return at;
    try {
      if (lstatSync(at, { throwIfNoEntry: false })) return at;
    } catch (error) {
      // Below a file there is nothing: the obstacle is further up.
      if (codeOf(error) !== "ENOTDIR") return at;
    }
  }
}

/**
 * Makes the folders of the books for a gateway that is about to start. Throws a ValidationError if
 * that can never succeed.
 */
export function makeDataDir(dataDir: string): void {
  const folder = resolve(dataDir, "spend");
  try {
    // Not `recursive`: in Node 20 that never returns if a folder cannot be made in its parent.
    const there = nearest(folder);
    const missing: string[] = [];
    for (let at = folder; at !== there; at = dirname(at)) missing.unshift(at);
    for (const path of missing) mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const code = codeOf(error);
    if (code === "EEXIST")
      makeDataDir(dataDir); // another process has just made it
    else if (!isTransient(error))
      throw new ValidationError([dataDirIssue(`${folder} cannot be made: ${code}`)]);
  }
}
