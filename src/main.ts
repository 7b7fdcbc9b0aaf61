#!/usr/bin/env node
// The process: the only file that touches it (environment, standard streams, signals, exit codes).
// A signal without a listener ends a process, so this file listens before it loads the program, and
// imports nothing but types.
import type { Process, Signals } from "./command-line/terminal.ts";

const signals = listenForSignals();

/**
 * From the first moment on. A signal that comes before the program has said what it does about it
 * is kept.
 */
function listenForSignals(): Signals {
  const received: NodeJS.Signals[] = []; // none of these has been acted on
  let hangup: (() => void) | undefined;
  let stop: (() => void) | undefined;
  let stops = 0;

  function onHangup(signal: NodeJS.Signals): void {
    if (hangup) hangup();
    else received.push(signal);
  }
  /** The first one stops the program, the second ends the process at once. */
  function onStop(signal: NodeJS.Signals): void {
    stops += 1;
    if (stops > 1) process.exit(1);
    if (stop) stop();
    else received.push(signal);
  }
  /** Whether one of these has been received, and not acted on until now. */
  function take(names: readonly NodeJS.Signals[]): boolean {
    const kept = received.filter((name) => !names.includes(name));
    return kept.length < received.splice(0, received.length, ...kept).length;
  }

  const stopping: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT"];
  for (const name of stopping) process.on(name, onStop);
  process.on("SIGHUP", onHangup);
  return {
    onHangup(listener) {
      hangup = listener;
      if (take(["SIGHUP"])) listener();
    },
    onStop(listener) {
      stop = listener;
      if (take(stopping)) listener();
    },
    stopRequested: () => stops > 0,
    leaveToSystem(names) {
      for (const name of names) {
        process.removeListener(name, onHangup);
        process.removeListener(name, onStop);
        if (take([name])) process.kill(process.pid, name);
      }
    },
  };
}

function actAs({ uid, gid }: { readonly uid: number; readonly gid: number }): void {
  if (uid === 0 || process.getuid?.() !== 0) return;
  process.setgroups?.([gid]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}

async function main(argv: readonly string[]): Promise<number | void> {
  // A reader of our output that goes away must not take the gateway with it.
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
    actAs,
    exit: (code) => process.exit(code),
  };
  return await run(argv, currentProcess, extensions);
}

process.exitCode = (await main(process.argv.slice(2))) || 0;
