// Bounds the memory that a log uses while its reader is slow: further lines are dropped, counted
// and reported. Lines that cannot be written are counted too.
import type { Writable } from "node:stream";
import type { Installer } from "../../../core/extension/installer.ts";
import { slots, type DropEvents } from "../../../core/extension/places.ts";
import type { WriteLines } from "../../../core/http/line-log.ts";

/** The most characters that wait for the reader. */
export const MAX_BACKLOG = 8 * 1024 * 1024;

export function install(gateway: Installer): void {
  gateway.fill(slots.boundLog, boundLog);
}

/** Lines that are written in one call are kept or dropped together. */
export function boundLog(stream: Writable, events: DropEvents): WriteLines {
  let droppedLines = 0;
  /** Whether the last write failed. A full disk may have taken the beginning of a line. */
  let isCut = false;

  /** After a dropped line, all lines are dropped until the backlog is empty: one gap, not many. */
  function mustDrop(lines: string): boolean {
    if (droppedLines > 0) return true;
    const backlog = stream.writableLength;
    return backlog > 0 && backlog + lines.length > MAX_BACKLOG;
  }

  function countDropped(lines: string): number {
    const count = lines.split("\n").length - 1;
    for (let i = 0; i < count; i += 1) events.dropped();
    return count;
  }

  function drop(lines: string): void {
    if (droppedLines === 0) stream.once("drain", recover);
    droppedLines += countDropped(lines);
  }

  function recover(): void {
    stream.off("drain", recover);
    const lines = droppedLines;
    droppedLines = 0;
    events.recovered(lines);
  }

  return (lines) => {
    if (mustDrop(lines)) drop(lines);
    else
      stream.write(isCut ? `\n${lines}` : lines, (error) => {
        isCut = Boolean(error);
        if (!error) return;
        countDropped(lines); // the reader has closed its pipe, or the disk is full
        if (droppedLines > 0) recover(); // the error ends the backlog without "drain"
      });
  };
}
