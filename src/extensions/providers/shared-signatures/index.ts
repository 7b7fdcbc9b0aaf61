// Several workers keep the same signed reasoning, because the results of a call may reach another
// worker than the one that passed the call on.
import { openBroadcast } from "../../scale/cluster/index.ts";
import { shareSignatures } from "../turns/index.ts";

export function install(): void {
  const others = openBroadcast<readonly [id: string, text: string]>("signatures", (note) =>
    keep(...note),
  );
  const keep = shareSignatures((...note) => others.send(note));
}
