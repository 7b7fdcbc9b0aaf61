// Which process is at work on a file, and is it still alive? A Unix socket tells: it answers as long as its process lives,
// however that ends, in another container too, but not on another machine: a data_dir belongs to one.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { linkSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname, join, relative } from "node:path";
import { fail } from "../protocol/checker.ts";

/** The path, or if it is too long the way from here: systems take 104 bytes or a little more for a socket's. */
const socketPath = (path: string): string =>
  [path, relative("", path)].find((each) => Buffer.byteLength(each) < 104) ??
  fail("invalid_value", `is ${Buffer.byteLength(path) - 103} bytes too long for the sockets in it`, ["data_dir"]);

/** Answers at `path` until it is released or the process ends; undefined if the path is taken. */
export async function announce(path: string): Promise<(() => void) | undefined> {
  const draft = join(dirname(path), `${randomBytes(6).toString("hex")}.new`);
  socketPath(path);
  const server = createServer((socket) => socket.destroy()).on("error", () => undefined).unref();
  await once(server.listen({ path: socketPath(draft), exclusive: true }), "listening");
  try {
    linkSync(draft, path); // it gets its name when it answers already, or it might be taken for dead
  } catch (error) {
    server.close();
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return () => {
    rmSync(path, { force: true });
    server.close();
  };
}

export async function isAlive(path: string): Promise<boolean> {
  const socket = connect(socketPath(path));
  // Any other error, such as too many waiting to be answered, is no proof of death.
  const isDead = ({ code }: NodeJS.ErrnoException) => ["ECONNREFUSED", "ENOENT", "ENOTSOCK"].includes(String(code));
  return await once(socket, "connect").then(() => true, (error) => !isDead(error)).finally(() => socket.destroy());
}
