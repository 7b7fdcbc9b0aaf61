// What a configuration needs of the machine that serves with it: certificates that can be used, and a folder for the books. Looked at
// before anything starts, so that a fault is told beside all others and not found out by the first request.
import { accessSync, constants, mkdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { CheckError, type Fault } from "../protocol/checker.ts";
import { asObject } from "../protocol/foreign.ts";
import { readTls } from "./certificate.ts";

/** Looks at the raw JSON, so that a fault of shape elsewhere hides none. Changes nothing on the disk. */
export function surroundingFaults(json: unknown): Fault[] {
  const root = asObject(json);
  const dataDir = root["data_dir"] ?? "./data";
  return [
    ...tlsFaults("server", root["server"]),
    ...tlsFaults("admin", root["admin"]),
    ...(typeof dataDir === "string" && dataDir !== "" ? folderFaults(dataDir) : []),
  ];
}

function tlsFaults(section: string, settings: unknown): readonly Fault[] {
  const { cert_file, key_file } = asObject(asObject(settings)["tls"]);
  if (typeof cert_file !== "string" || typeof key_file !== "string") return [];
  if (cert_file === "" || key_file === "") return []; // a fault of shape already
  try {
    readTls({ cert_file, key_file }, section);
    return [];
  } catch (error) {
    if (error instanceof CheckError) return error.faults;
    throw error;
  }
}

/** data_dir and the folder of the spend log in it: each must be a folder in which this user may write, or one that can be made. */
function folderFaults(dataDir: string): Fault[] {
  const why = whyUnusable(resolve(dataDir)) ?? whyUnusable(resolve(dataDir, "spend"));
  return why === undefined ? [] : [dataDirFault(why)];
}

const dataDirFault = (message: string): Fault => ({
  path: ["data_dir"],
  code: "invalid_value",
  message,
});

function whyUnusable(folder: string): string | undefined {
  const there = nearest(folder);
  try {
    if (!statSync(there).isDirectory()) return `${there} is not a folder`;
    accessSync(there, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return `${there === folder ? "cannot be written" : `cannot be made in ${there}`}: ${code}`;
  }
}

/** The path itself, or the nearest above it at which there is something, if only what cannot be looked at. */
function nearest(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    if (at === dirname(at)) return at;
    try {
      if (statSync(at, { throwIfNoEntry: false })) return at;
    } catch (error) {
      // Below a file there is nothing: what is in the way is further up.
      if ((error as NodeJS.ErrnoException).code !== "ENOTDIR") return at;
    }
  }
}

/** What passes by itself. The gateway starts in spite of it, refuses requests with 503, and serves as soon as it can write. */
const PASSING = ["ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM"];

/** Makes the folders of the books for a gateway that is about to start. Throws a CheckError if that can never succeed. */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(join(resolve(dataDir), "spend"), { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!PASSING.includes(code)) throw new CheckError([dataDirFault(`cannot be made: ${code}`)]);
  }
}
