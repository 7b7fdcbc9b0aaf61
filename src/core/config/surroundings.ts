// What a configuration needs of the machine that serves with it: certificates that can be used, and a folder for the books. Looked at
// before anything starts, so that a fault is told beside all others and not found out by the first request.
import {
  accessSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmdirSync,
  statSync,
} from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { ValidationError, type ValidationIssue } from "../schema/checker.ts";
import { asObject } from "../schema/untrusted-json.ts";
import { readTls } from "../../extensions/tls/certificate.ts";

/** Looks at the raw JSON, so that a fault of shape elsewhere hides none. Leaves the disk as it is. */
export function surroundingFaults(json: unknown): ValidationIssue[] {
  const root = asObject(json);
  const dataDir = root["data_dir"] ?? "./data";
  return [
    ...tlsFaults("server", root["server"]),
    ...tlsFaults("admin", root["admin"]),
    ...(typeof dataDir === "string" && dataDir !== "" ? folderFaults(dataDir) : []),
  ];
}

function tlsFaults(section: string, settings: unknown): readonly ValidationIssue[] {
  const { cert_file, key_file } = asObject(asObject(settings)["tls"]);
  if (typeof cert_file !== "string" || typeof key_file !== "string") return [];
  if (cert_file === "" || key_file === "") return []; // a fault of shape already
  try {
    readTls({ cert_file, key_file }, section);
    return [];
  } catch (error) {
    if (error instanceof ValidationError) return error.issues;
    throw error;
  }
}

/** data_dir and the folder of the spend log in it: each must be a folder in which this user may write, or one that can be made. */
function folderFaults(dataDir: string): ValidationIssue[] {
  const why = whyUnusable(resolve(dataDir)) ?? whyUnusable(resolve(dataDir, "spend"));
  return why === undefined ? [] : [dataDirFault(why)];
}

const dataDirFault = (message: string): ValidationIssue => ({
  path: ["data_dir"],
  code: "invalid_value",
  message,
});

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
    const { code = "" } = error as NodeJS.ErrnoException;
    if (PASSING.includes(code)) return undefined;
    return `${there === folder ? "cannot be written" : `cannot be made in ${there}`}: ${code}`;
  }
}

/** Makes a folder of a name that nobody else uses and takes it away again: where the system makes folders itself (/proc), permissions
 * say nothing. */
function tryFolderIn(folder: string): void {
  rmdirSync(mkdtempSync(join(folder, ".chat-gateway-")));
}

/** The path of one name more than `there` on the way to `folder`. */
function firstBelow(there: string, folder: string): string {
  const [name = ""] = folder.slice(there.length).split(sep).filter(Boolean);
  return resolve(there, name);
}

/** The path itself, or the nearest above it at which there is something, if only a link to nothing, or what cannot be looked at. */
function nearest(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    if (at === dirname(at)) return at;
    try {
      if (lstatSync(at, { throwIfNoEntry: false })) return at;
    } catch (error) {
      // Below a file there is nothing: what is in the way is further up.
      if ((error as NodeJS.ErrnoException).code !== "ENOTDIR") return at;
    }
  }
}

/** What passes by itself. The gateway starts in spite of it, refuses requests with 503, and serves as soon as it can write. */
const PASSING = ["ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM"];

/** Makes the folders of the books for a gateway that is about to start. Throws a ValidationError if that can never succeed. One folder after
 * the other: where a folder cannot be made although the one above it is there, Node 20's own loop never ends. */
export function makeDataDir(dataDir: string): void {
  const folder = resolve(dataDir, "spend");
  try {
    for (let there = nearest(folder); there !== folder; ) {
      there = firstBelow(there, folder);
      mkdirSync(there, { mode: 0o700 });
    }
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") {
      makeDataDir(dataDir); // another process has just made it
      return;
    }
    if (!PASSING.includes(code))
      throw new ValidationError([dataDirFault(`cannot be made: ${code}`)]);
  }
}
