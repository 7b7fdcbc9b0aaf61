// A library: pauses of models and keys that providers ask for. All processes observe them.
import type { GatewayContext } from "../../../core/extension/installer.ts";
import { openBroadcast } from "../../scale/cluster/index.ts";

/** The pause of one model or key. */
export interface Pause {
  /** Milliseconds until the pause ends. 0: there is no pause now. */
  left(): number;
  /** Begins a pause of `ms` milliseconds, at most an hour, unless the present one ends later. */
  begin(ms: number): void;
}

/** The longest pause, even if a provider asks for more. */
const MAX_PAUSE_MS = 3_600_000;

/** The message that tells the other processes of a pause. */
interface PauseNote {
  readonly name: string;
  readonly ms: number;
}

/**
 * Returns a function that finds a pause by its name. `subject` keeps the pauses of different
 * extensions apart.
 */
export function sharedPauses(
  { clock, on }: Pick<GatewayContext, "clock" | "on">,
  subject: string,
): (name: string) => Pause {
  /** The ends of pauses, in milliseconds of the monotonic clock, by name. */
  const ends = new Map<string, number>();

  function begin({ name, ms }: PauseNote): void {
    const end = clock.monotonic() + Math.min(ms, MAX_PAUSE_MS);
    ends.set(name, Math.max(end, ends.get(name) ?? end));
  }
  const broadcast = openBroadcast<PauseNote>(subject, begin);
  on("close", broadcast.close);
  return (name) => ({
    left: () => Math.max(0, (ends.get(name) ?? -Infinity) - clock.monotonic()),
    begin(ms) {
      begin({ name, ms });
      broadcast.send({ name, ms });
    },
  });
}
