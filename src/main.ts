#!/usr/bin/env node
// The process: the only file that touches it (environment, standard streams, signals, exit codes).
// A signal without a listener ends a process, so this file listens before it loads the program, and
// imports nothing but types.
import type { Process, Signals } from "./command-line/terminal.ts";

refuseOtherRuntimes();
const signals = listenForSignals();

/** Ends the process where the program would fail later, with an error that does not say why. */
function refuseOtherRuntimes(): void {
  const { bun, node } = process.versions;
  if (bun === undefined && "getBuiltinModule" in process) return;
  const found = bun === undefined ? `Node ${node}` : `Bun ${bun}`;
  process.stderr.write(`chat-gateway needs Node 20.19, 22.3 or later: this is ${found}\n`);
  process.exit(1);
}

/** Listens at once. A signal that arrives before the program listens is kept for it. */
function listenForSignals(): Signals {
  const received = new Set<NodeJS.Signals>();
  const stop = new AbortController();
  let hangUp = (): void => undefined;

  /** The first SIGTERM or SIGINT drains the gateway; the second ends the process at once. */
  function onSignal(name: NodeJS.Signals): void {
    received.add(name);
    if (name === "SIGHUP") hangUp();
    else if (stop.signal.aborted) process.exit(1);
    else stop.abort();
  }

  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, onSignal);
  return {
    stopped: stop.signal,
    onHangup(listener) {
      hangUp = listener;
      if (received.has("SIGHUP")) listener();
    },
    restoreDefault(names) {
      for (const name of names) {
        process.removeListener(name, onSignal);
        if (received.has(name)) process.kill(process.pid, name);
      }
    },
  };
}

function switchUser({ uid, gid }: { readonly uid: number; readonly gid: number }): void {
  if (uid === 0 || process.getuid?.() !== 0) return;
  process.setgroups?.([gid]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}

/** How long the readers of the logs may take for the last lines, in milliseconds. */
const LAST_LINES_MS = 3_000;

/** Ends the process once the logs are written: lines that wait for a full pipe would be lost. */
function exit(code: number): void {
  const logs = [process.stdout, process.stderr];
  const written = logs.map((log) => new Promise<unknown>((resolve) => log.write("", resolve)));
  const end = (): never => process.exit(code);
  setTimeout(end, LAST_LINES_MS);
  Promise.all(written).then(end);
}

async function main(argv: readonly string[]): Promise<number | void> {
  // If the reader of our output closes its pipe, the gateway must keep running.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const [{ run }, { extensions }] = await Promise.all([
    import("./program.ts"),
    import("./extensions.ts"),
  ]);
  const currentProcess: Process = {
    env: process.env,
    signals,
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: () => process.stdin,
    print: (text) =>
      new Promise<void>((resolve, reject) =>
        process.stdout.write(text, (error) => (error ? reject(error) : resolve())),
      ),
    switchUser,
    exit,
  };
  return await run(argv, currentProcess, extensions);
}

// No top-level await: the one-file build is CommonJS.
process.exitCode = 1; // stays if the event loop is empty before main() has ended
main(process.argv.slice(2)).then((code) => {
  process.exitCode = code || 0;
});
