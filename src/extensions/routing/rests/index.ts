// A library: how long models and keys are to be left alone, because their providers said so. What
// one process learns, all of them keep to.
import type { GatewayContext } from "../../../core/extension/installer.ts";
import { talkToOthers } from "../../scale/cluster/index.ts";

/** The pause of one model or key. */
export interface Rest {
  /** Milliseconds that are left of it. 0: it may be asked. */
  left(): number;
  /** Begins a pause of so many milliseconds, in the place of one that ends earlier. */
  begin(ms: number): void;
}

/** A provider that states an absurd time does not take anything away for longer. */
const MAX_REST_MS = 3_600_000;

/** What the processes tell each other. */
interface Note {
  readonly name: string;
  readonly ms: number;
}

/** Finds the pause of what has a name. `subject`: names these pauses among those of others. */
export function sharedRests(
  { clock, on }: Pick<GatewayContext, "clock" | "on">,
  subject: string,
): (name: string) => Rest {
  /** When pauses end, by the monotonic clock. */
  const ends = new Map<string, number>();

  function begin({ name, ms }: Note): void {
    const end = clock.monotonic() + Math.min(ms, MAX_REST_MS);
    ends.set(name, Math.max(end, ends.get(name) ?? end));
  }
  const others = talkToOthers<Note>(subject, begin);
  on("close", others.close);
  return (name) => ({
    left: () => Math.max(0, (ends.get(name) ?? -Infinity) - clock.monotonic()),
    begin(ms) {
      begin({ name, ms });
      others.tell({ name, ms });
    },
  });
}
